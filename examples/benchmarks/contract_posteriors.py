"""The pairs of the contract table, and its exact posteriors: functions, objects, arrays.

theta is N(0, I), two parameters. x is theta with noise, of three shapes whose summary s is
N(theta, I): a vector, an image (its halves' means), ten trials (their mean). So theta given x is
N(s / 2, I / 2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor
from torch.distributions import Independent, MultivariateNormal, Normal

from simulators.random import isolated_rng, torch_generator
from validation import PerObservation, as_posterior

SPREAD = 0.5**0.5
PAIRS, STORED = 60, 300
PRIOR = MultivariateNormal(torch.zeros(2), torch.eye(2))
SHAPES = {
    "vectors": (2,), "images": (1, 8, 8), "trials": (10, 2), "three values": (3,),
    "large values": (2,),
}  # fmt: skip


@dataclass(frozen=True)
class Specimen:
    """A row of the table."""

    name: str
    library: str
    build: Callable[[], Any]
    x: str = "vectors"
    """Which shape an x has, of ``SHAPES``."""
    exact: bool = False
    """Whether theta given x is as it says."""
    shared: bool = False
    """Whether it is so slow that its draws are made once, as ``validate`` does."""
    frames: bool = False
    """Whether theta and x are data frames."""
    misuse: bool = False
    """Whether every test must refuse it."""
    order: str = "q theta x"
    """Of the arguments, as the user gives them."""


def pairs(kind: str, rows: int, seed: int) -> tuple[Tensor, Tensor]:
    """Parameters (n, 2) and what is observed of them (n, *SHAPES[kind])."""
    generator = torch_generator(seed)
    theta = torch.randn(rows, 2, generator=generator)
    noise = torch.randn(rows, *SHAPES[kind], generator=generator)
    if kind == "images":
        return theta, theta.repeat_interleave(4, dim=1)[:, None, None] + 32**0.5 * noise
    if kind == "trials":
        return theta, theta[:, None] + 10**0.5 * noise
    noise[:, :2] += theta
    return theta, 10 * noise if kind == "large values" else noise


def summary(x: Tensor) -> Tensor:
    """What x (n, *event) says of theta: N(theta, I), (n, 2)."""
    event = tuple(x.shape[1:])
    if event == SHAPES["images"]:
        return x.unflatten(-1, (2, 4)).mean(dim=(1, 2, 4))
    if event == SHAPES["trials"]:
        return x.mean(dim=1)
    if event != SHAPES["vectors"]:
        raise ValueError(f"x has the shape {event} of none of {SHAPES}")
    return x


def normal(num_samples: int, x: Any) -> Any:
    """Exact draws, as somebody who works with numpy would write them."""
    return np.asarray(x) / 2 + SPREAD * np.random.standard_normal(  # noqa: NPY002
        (num_samples, *np.shape(x))
    )


def of_summary(num_samples: int, x: Tensor) -> Tensor:
    """Exact draws at x of any shape."""
    mean = summary(x) / 2
    return mean + SPREAD * torch.randn(num_samples, *mean.shape)


# --- functions and objects ------------------------------------------------------------------------


def independent(x: Tensor) -> Independent:
    return Independent(Normal(summary(x) / 2, SPREAD), 1)


class ExactModule(torch.nn.Module):
    def forward(self, x: Tensor) -> Independent:
        return independent(x)


class SamplerModule(torch.nn.Module):
    def forward(self, x: Tensor, num_samples: int) -> Tensor:
        return of_summary(num_samples, x)


class OfShape:
    """``sample(shape, condition)`` for many x, as sbi's estimators."""

    def sample(self, sample_shape: torch.Size, condition: Tensor) -> Tensor:
        return condition / 2 + SPREAD * torch.randn(*sample_shape, *condition.shape)


class OfOne:
    """``sample(shape, x)`` for one x, as sbi's posteriors."""

    def sample(self, sample_shape: torch.Size, x: Tensor | None = None) -> Tensor:
        assert x is not None
        return MultivariateNormal(x.reshape(2) / 2, torch.eye(2) / 2).sample(sample_shape)


class XFirst:
    def sample(self, x: Tensor, n: int) -> Tensor:
        return of_summary(n, x)


class Protocol:
    """``sample(num_samples, x, seed)``, and a density."""

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        noise = torch.randn(num_samples, *x.shape, generator=torch_generator(seed))
        return x / 2 + SPREAD * noise

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        return independent(x).log_prob(theta)


class InBatches:
    """``sample_batched(shape, x)`` and its density, as ABI's."""

    def sample_batched(self, sample_shape: tuple[int, ...], x: Tensor, *, seed: int = 0) -> Tensor:
        return Protocol().sample(sample_shape[0], x, seed)

    def log_prob_batched(self, theta: Tensor, x: Tensor) -> Tensor:
        return independent(x).log_prob(theta)


def langevin(num_samples: int, x: Tensor) -> Tensor:
    """Ten steps of the exact autoregressive kind, each with a gradient of the potential."""
    theta = x / 2 + torch.zeros(num_samples, 1, 1)
    for _ in range(10):
        theta = theta.detach().requires_grad_()
        potential = ((theta - x / 2) ** 2).sum()
        (slope,) = torch.autograd.grad(potential, theta)  # 2 (theta - x / 2)
        theta = theta - 0.25 * slope + (0.5 - 0.5 / 4) ** 0.5 * torch.randn_like(theta)
    return theta


def at_one(num_samples: int, x_o: Any) -> Any:
    return normal(num_samples, np.asarray(x_o).reshape(2))


def function_rows() -> list[Specimen]:
    def row(name: str, q: Any, library: str = "functions", **keywords: Any) -> Specimen:
        return Specimen(name, library, lambda: q, exact=True, **keywords)

    return [
        row("module, x -> distribution", ExactModule(), "torch"),
        row("module, (x, num_samples)", SamplerModule(), "torch"),
        row("x -> distribution", lambda x: Normal(x / 2, SPREAD), "torch"),
        row("x -> distribution, images", independent, "torch", x="images"),
        row("x -> frozen distribution", lambda x: stats.norm(x / 2, SPREAD), "scipy"),
        row("x -> newer distribution", lambda x: stats.Normal(mu=x.numpy() / 2, sigma=SPREAD),
            "scipy"),
        row("(num_samples, x), numpy", normal),
        row("(num_samples, x), images", of_summary, x="images"),
        row("(num_samples, x), trials", of_summary, x="trials"),
        row("(x, num_samples)", lambda x, num_samples: normal(num_samples, x)),
        row("(a, b), unnamed", lambda a, b: normal(int(a), b)),
        row("(b, a), unnamed", lambda b, a: normal(int(a), np.asarray(b))),
        row("(num_samples, x_o)", at_one),
        row("(size, y), scipy's rvs",
            lambda size, y: stats.norm(y / 2, SPREAD).rvs(size=(*size, len(y), 2)), "scipy"),
        row("with gradients (Langevin)", langevin),
        row("sample(shape, condition)", OfShape(), "objects"),
        row("sample(shape, x) of one x", OfOne(), "objects", shared=True),
        row("sample(x, n)", XFirst(), "objects"),
        row("sample(num_samples, x, seed)", Protocol(), "objects"),
        row("its bound `sample`", Protocol().sample, "objects"),
        row("sample_batched(shape, x)", InBatches(), "objects"),
    ]  # fmt: skip


# --- arrays, frames, ArviZ ------------------------------------------------------------------------


def stored(kind: str = "vectors") -> tuple[Tensor, Tensor, Tensor]:
    """The pairs that are tested, and draws at their x, (L, n, 2)."""
    theta, x = pairs(kind, PAIRS, 0)
    with isolated_rng(3):
        return theta, x, of_summary(STORED, x)


def second_axis() -> Any:
    theta, x, draws = stored()
    return as_posterior((theta, x, draws.transpose(0, 1)), layout="observations_first")


def weights() -> Any:
    """Draws twice as wide, with the weights that make them exact."""
    theta, x, draws = stored()
    wide = x / 2 + 2 * (draws - x / 2)
    log_ratio = Normal(x / 2, SPREAD).log_prob(wide) - Normal(x / 2, 2 * SPREAD).log_prob(wide)
    weight = log_ratio.sum(dim=2).exp()
    return as_posterior((theta, x, wide), layout="samples_first", weights=weight)


def frames_of_draws() -> Any:
    theta, x, draws = stored()
    return as_posterior(
        (pd.DataFrame(theta.numpy()), pd.DataFrame(x.numpy()), draws.numpy()),
        layout="samples_first",
    )


def fits_of_arviz() -> Any:
    import arviz

    _, x, draws = stored()
    return [
        arviz.from_dict(posterior={"theta": draws[None, :, i].numpy()},
                        observed_data={"x": x[i].numpy()})
        for i in range(len(x))
    ]  # fmt: skip


def fitted_by_arviz(x_o: Tensor) -> Any:
    import arviz

    return arviz.from_dict(posterior={"theta": normal(STORED, x_o)[None]})


def array_rows() -> list[Specimen]:
    row = partial(Specimen, exact=True)
    return [
        row("sample axis first", "arrays", lambda: as_posterior(stored(), layout="samples_first")),
        row("sample axis second", "arrays", second_axis),
        row("of images", "arrays", lambda: as_posterior(stored("images"), layout="samples_first"),
            x="images"),
        row("with weights", "arrays", weights),
        row("frames of theta and x", "pandas", lambda: normal, frames=True),
        row("frames beside stored draws", "pandas", frames_of_draws, frames=True),
        row("one fit an observation", "ArviZ", fits_of_arviz),
        row("PerObservation of ArviZ", "ArviZ", lambda: PerObservation(fitted_by_arviz)),
        row("PerObservation", "functions", lambda: PerObservation(lambda x_o: normal(STORED, x_o))),
    ]  # fmt: skip
