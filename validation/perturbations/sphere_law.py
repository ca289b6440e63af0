r"""The sphere in 100 dimensions: a flow's posterior, and the same flow from a base that is moved.

    y = (phi / pi, tau / (2 pi)) ~ U[0, 1]^2,   u = (sin phi cos tau, sin phi sin tau, cos phi),
    theta = W' u + e,   e ~ N(0, sigma^2 I),   W (3, 100) standard normal and fixed.

A RealNVP f(z; y) learns theta given y. The truth p is the flow itself, z ~ N(0, I); the estimate q
is the flow with z ~ N(a 1, I), a in every coordinate. Since the flow is one to one, the best score
is known, log p - log q = -a sum_k z_k + 50 a^2: two normal laws 10 a apart in its direction.

The paper does not print sigma, which is 0.1 here, nor the number of pairs that train the flow, nor
the strengths. Its angles are uniform, as here, which is not uniform on the sphere's surface.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from simulators.arguments import POSITIVE, count, layers, settle
from simulators.random import child_seed, torch_generator

from ..posteriors.protocol import progress_bar
from ..scores.classifiers import feature_scaling
from .kept import kept_network, name_with_settings
from .task import Failure

_DIM = 100
_SIGMA = 0.1
_ROWS_AT_ONCE = 2_000


@dataclass(frozen=True)
class FlowTraining:
    """The RealNVP and how it is trained; the first three values are the paper's."""

    num_transforms: int = 8
    """Affine couplings."""
    hidden: tuple[int, ...] = (512,)
    """Width of each hidden layer of a coupling's network."""
    epochs: int = 500
    """Passes over the pairs; 0 leaves the flow at its start."""
    num_pairs: int = 10_000
    """Joint draws."""
    learning_rate: float = 1e-3
    """Of Adam at the start; it falls to 0 along a cosine."""
    batch_size: int = 500
    """Pairs a step."""

    def __post_init__(self) -> None:
        settle(
            self,
            num_transforms=count(),
            hidden=layers(),
            epochs=count(0),
            num_pairs=count(2),
            learning_rate=POSITIVE,
            batch_size=count(),
        )


@dataclass(frozen=True, eq=False)
class FlowLaw:
    """theta = f(z; x) for z ~ N(shift 1, I)."""

    flow: Any
    """Of zuko; its transform takes theta in standard units to z."""
    theta_scaling: tuple[Tensor, Tensor]
    """Mean (d,) and standard deviation (d,)."""
    x_scaling: tuple[Tensor, Tensor]
    """Likewise, (p,)."""
    shift: float

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, d) given x (n, 2)."""
        mean, deviation = self.theta_scaling
        shape = (num_samples, len(x), len(mean))
        z = self.shift + torch.randn(shape, generator=torch_generator(child_seed(seed, 0)))
        parts = [self.flow(known).transform.inv(rows) for rows, known in self._chunks(z, x)]
        return torch.cat(parts).reshape(shape) * deviation + mean

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Normalised log density, theta (K, n, d), x (n, 2) -> (K, n)."""
        mean, deviation = self.theta_scaling
        parts = []
        for rows, known in self._chunks((theta - mean) / deviation, x):
            z, log_volume = self.flow(known).transform.call_and_ladj(rows)
            away = (z - self.shift).square().sum(dim=1) + len(mean) * math.log(2 * math.pi)
            parts.append(log_volume - 0.5 * away)
        return torch.cat(parts).reshape(theta.shape[:2]) - deviation.log().sum()

    def _chunks(self, values: Tensor, x: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows of values (K, n, d) with their x (n, 2) in standard units, some at a time."""
        standard = (x - self.x_scaling[0]) / self.x_scaling[1]
        known = standard.expand(len(values), *x.shape).flatten(0, 1)
        return zip(
            values.flatten(0, 1).split(_ROWS_AT_ONCE), known.split(_ROWS_AT_ONCE), strict=True
        )


def sphere(
    training: FlowTraining | None = None,
    *,
    folder: Path | str | None = None,
    seed: int = 0,
    progress: bool = False,
) -> Failure:
    """The sphere with a RealNVP posterior; its strength is the shift of the flow's base.

    Args:
        training: of the flow.
        folder: where the trained flow is kept and found again; nowhere when omitted.
        seed: of W, the flow and its training pairs.
        progress: whether to show a bar while it is trained.

    Source: "The surprising strength of weak classifiers for two-sample testing", Appendix C.
    """
    training = training or FlowTraining()
    x = _observe(training.num_pairs, child_seed(seed, 0))
    theta = sphere_draws(x, seed)
    scalings = feature_scaling(theta), feature_scaling(x)
    standard_theta, standard_x = (
        (values - mean) / deviation
        for values, (mean, deviation) in zip((theta, x), scalings, strict=True)
    )
    name = name_with_settings("sphere", training, seed)
    flow = kept_network(
        None if folder is None else Path(folder) / f"{name}.safetensors",
        lambda: _flow(training),
        lambda flow: _train(
            flow, standard_theta, standard_x, training, child_seed(seed, 3), progress
        ),
        child_seed(seed, 2),
    )
    return Failure(
        name,
        (0.0, 0.005, 0.01, 0.015, 0.02, 0.03),
        lambda a: (FlowLaw(flow, *scalings, 0.0), FlowLaw(flow, *scalings, a)),
        _observe,
        "The surprising strength of weak classifiers, Figure 5",
    )


def sphere_draws(x: Tensor, seed: int) -> Tensor:
    """Theta (n, 100) = W' u + e at angles x (n, 2), what the flow learns."""
    projection = torch.randn(3, _DIM, generator=torch_generator(child_seed(seed, 1)))
    noise = torch.randn(len(x), _DIM, generator=torch_generator(child_seed(seed, 4)))
    phi, tau = math.pi * x[:, 0], 2 * math.pi * x[:, 1]
    on_sphere = torch.stack([phi.sin() * tau.cos(), phi.sin() * tau.sin(), phi.cos()], dim=1)
    return on_sphere @ projection + _SIGMA * noise


def _observe(n: int, seed: int) -> Tensor:
    return torch.rand(n, 2, generator=torch_generator(seed))


def _flow(training: FlowTraining) -> nn.Module:
    from zuko.flows import NICE

    # zuko's NICE has affine couplings by default, which makes it a RealNVP.
    flow: nn.Module = NICE(
        _DIM, 2, transforms=training.num_transforms, hidden_features=training.hidden
    )
    return flow


def _train(
    flow: nn.Module, theta: Tensor, x: Tensor, training: FlowTraining, seed: int, progress: bool
) -> None:
    """Maximum likelihood, theta and x in standard units."""
    optimiser = torch.optim.Adam(flow.parameters(), lr=training.learning_rate)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, training.epochs)
    generator = torch_generator(seed)
    with progress_bar(training.epochs, "flow", progress) as advance:
        for _ in range(training.epochs):
            for rows in torch.randperm(len(x), generator=generator).split(training.batch_size):
                loss = -flow(x[rows]).log_prob(theta[rows]).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            falling.step()
            advance()
