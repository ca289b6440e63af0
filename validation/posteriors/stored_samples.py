"""Posteriors that exist as samples only: drawn before, weighted, or one fit an observation."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from simulators.random import isolated_rng, torch_generator
from simulators.summary import summary

from ..seeds import part_seed
from .arviz_draws import arviz_draws, arviz_observation, is_arviz
from .pairs.arrays import as_numbers, flat_rows
from .pairs.independence import in_random_order
from .protocol import Posterior, progress_bar
from .signatures import seeded

Layout = Literal["samples_first", "observations_first"]


@dataclass(frozen=True, eq=False)
class StoredSamples(Posterior):
    """Samples that were drawn before, for the observations ``x`` and no others.

    Rows are found by the values of x. Where the same x occurs more than once (discrete data),
    its k-th occurrence in a request gets the k-th stored set, so that no draw is used twice.
    """

    x: Tensor
    """The observations, (n, p)."""
    samples: Tensor
    """(L, n, d)."""

    __repr__ = summary

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """The first ``num_samples`` stored draws for each row of x, (num_samples, n, d).

        Rows of x are taken flat, (n, p), and in their own shape.

        Raises:
            ValueError: if fewer draws are stored, or none for one of the observations.
        """
        if num_samples > len(self.samples):
            raise ValueError(
                f"`q` holds {len(self.samples)} pre-drawn samples for each observation; "
                f"{num_samples} are needed. Ask for fewer with num_samples, or store more."
            )
        rows = self.rows_of(x)
        first = self.samples[:num_samples]
        if torch.equal(rows, torch.arange(first.shape[1])):
            return first  # all of them, without a copy
        return first[:, rows]

    def rows_of(self, x: Tensor) -> Tensor:
        """Rows of the stored observations that equal the rows of x (m, p), as indices (m,)."""
        x = flat_rows(x, "x").float()
        if torch.equal(x, self.x):
            return torch.arange(len(x))
        stored: dict[bytes, list[int]] = {}
        for i, key in enumerate(_keys(self.x)):
            stored.setdefault(key, []).append(i)
        seen: dict[bytes, int] = {}
        rows = []
        for i, key in enumerate(_keys(x)):
            occurrence = seen.get(key, 0)
            if occurrence >= len(stored.get(key, [])):
                raise ValueError(
                    f"`q` holds pre-drawn samples for its own {len(self.x)} observations only; "
                    f"row {i} of `x` is not one of them. Store samples for it, or pass a "
                    "posterior that can be sampled."
                )
            rows.append(stored[key][occurrence])
            seen[key] = occurrence + 1
        return torch.tensor(rows, dtype=torch.long)


@dataclass(frozen=True, eq=False)
class WeightedSamples(Posterior):
    """Weighted draws (importance sampling, ABC): resampled by their weights.

    Particles are put in random order and taken at equal steps of their weight (systematic
    resampling): one that comes twice has neighbours that are itself. So no two parts of the draws
    share a particle, but for one at their border, and a test that learns from one part and ranks
    the other does not meet in it what it has learned.
    """

    stored: StoredSamples
    weights: Tensor
    """(L, n), not negative, each column with a positive sum."""

    __repr__ = summary

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, d) from the weighted particles of each row of x."""
        rows = self.stored.rows_of(x)
        chosen = _systematic(self.weights[:, rows], num_samples, part_seed(seed, 0))
        return self.stored.samples[chosen, rows]


def _systematic(weights: Tensor, num_samples: int, seed: int) -> Tensor:
    """Rows (num_samples, n) drawn from weights (L, n), those of one column together.

    Source: Kitagawa (1996), stratified and systematic resampling.
    """
    generator = torch_generator(seed)
    order = torch.rand(weights.shape, generator=generator).argsort(dim=0)
    heights = weights.double().gather(0, order).cumsum(dim=0)
    first = torch.rand(weights.shape[1], generator=generator, dtype=torch.float64)
    steps = (torch.arange(num_samples)[:, None] + first) / num_samples * heights[-1]
    found = torch.searchsorted(heights.T.contiguous(), steps.T.contiguous(), right=True)
    return order.gather(0, found.T.clamp(max=len(weights) - 1))


def _keys(x: Tensor) -> list[bytes]:
    """One key a row; adding zero makes -0.0 and 0.0 the same value."""
    return [row.tobytes() for row in (x + 0.0).numpy()]


def stored_posterior(
    theta: Any, x: Any, samples: Any, layout: Layout | None, weights: Any
) -> StoredSamples | WeightedSamples:
    """Make a posterior of samples drawn before, refusing a layout that is not stated."""
    if layout not in ("samples_first", "observations_first"):
        raise ValueError(
            "`layout` must say how pre-drawn samples lie: 'samples_first' for (L, n, d), as sbi "
            f"draws them, or 'observations_first' for (n, L, d), as BayesFlow does; got {layout!r}."
            " Pass as_posterior((theta, x, q_samples), layout=...)."
        )
    x, theta = flat_rows(x, "x").float(), as_numbers(theta, "theta")
    given = as_numbers(samples, "q_samples").float()
    # A frame or matrix of one parameter's samples leaves no doubt what its two axes are.
    values = given[..., None] if given.ndim == 2 and theta.shape[1:] in ((), (1,)) else given
    if values.ndim != 3:
        raise ValueError(
            f"pre-drawn samples must have three axes (L, n, d); got shape {tuple(given.shape)}."
            " A table of them must be reshaped first."
        )
    swap = layout == "observations_first"
    values = values.transpose(0, 1) if swap else values
    if values.shape[1] != len(x):
        raise ValueError(
            f"pre-drawn samples laid out {layout!r} must hold one set for each of the {len(x)} "
            f"rows of `x`; got {values.shape[1]} sets in shape "
            f"{tuple(given.shape)}. Is the other layout meant?"
        )
    shape = (len(theta), 1) if theta.ndim == 1 else tuple(theta.shape)
    if shape != tuple(values.shape[1:]):
        raise ValueError(
            f"`theta` must pair with the pre-drawn samples, shape {tuple(values.shape[1:])}; "
            f"got {tuple(theta.shape)}."
        )
    if weights is None:
        return StoredSamples(x, in_random_order(values, part_seed(0, 0)).contiguous())
    stored = StoredSamples(x, values.contiguous())
    weight = as_numbers(weights, "weights").float()
    weight = check_weights(weight.T if swap else weight, tuple(values.shape[:2]))
    return WeightedSamples(stored, weight)


def stored_fits(fits: Sequence[Any], var_names: Sequence[str] | None) -> StoredSamples:
    """ArviZ data, one fit an observation, each with a posterior and an ``observed_data`` group.

    Chains are joined and their draws shuffled, for the first draws of a chain are neighbours; where
    the fits hold different numbers, the least counts.
    """
    draws = [arviz_draws(fit, var_names) for fit in fits]
    x = [arviz_observation(fit) for fit in fits]
    for name, widths in (("parameters", {p.shape[1] for p in draws}), ("values", {*map(len, x)})):
        if len(widths) > 1:
            raise ValueError(
                f"`q` must hold as many {name} in every fit; got {sorted(widths)}. Choose "
                "parameters with var_names."
            )
    least = min(map(len, draws))
    shuffled = [_shuffled(part, part_seed(0, k))[:least] for k, part in enumerate(draws)]
    return StoredSamples(torch.stack(x), torch.stack(shuffled, dim=1))


def _shuffled(draws: Tensor, seed: int) -> Tensor:
    return draws[torch.randperm(len(draws), generator=torch_generator(seed))]


def check_weights(weights: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return weights of the given shape, or say what is wrong with them."""
    if tuple(weights.shape) != shape:
        raise ValueError(
            f"`weights` must hold one weight a sample, shape {shape}; got {tuple(weights.shape)}."
        )
    bad = ~torch.isfinite(weights) | (weights < 0)
    if bad.any() or (weights.sum(dim=0) <= 0).any():
        raise ValueError(
            f"`weights` must be finite, not negative, and positive in sum; "
            f"{int(bad.sum())} of {weights.numel()} are not."
        )
    return weights


@dataclass(frozen=True, eq=False)
class PerObservation(Posterior):
    """A method that is fitted to one observation at a time, as a posterior that can be tested.

    It fits anew at every x of the pairs. With a fit of one minute, 100 pairs take 100 minutes;
    there is no cheaper way, for a fit at one x_o says nothing about another.

    Args:
        fit: ``fit(x_o)`` or ``fit(x_o, seed=...)``, where x_o is one observation, (p,) or in its
            own shape. It returns an object with ``sample((num_samples,))``; draws (L, d); a pair
            of draws (L, d) and weights (L,); or ArviZ data (``idata.posterior[["a", "b"]]`` chooses
            parameters). Its random numbers must differ from x to x: with the same ones everywhere,
            all ranks move together and an exact posterior is rejected.
        progress: show a progress bar over the observations.
    """

    fit: Callable[..., Any]
    progress: bool = False

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Fit and draw for each row of x (n, ...): (num_samples, n, d).

        Raises:
            ValueError: if a fit returns too few draws or draws of another shape.
        """
        x = as_numbers(x, "x").float()
        columns = []
        with progress_bar(len(x), "fitting each observation", self.progress) as advance:
            for i, x_o in enumerate(x):
                columns.append(self._draws(x_o, num_samples, part_seed(seed, i), i))
                advance()
        return torch.stack(columns, dim=1)

    def _draws(self, x_o: Tensor, num_samples: int, seed: int, row: int) -> Tensor:
        takes_seed = "seed" in inspect.signature(self.fit).parameters
        with isolated_rng(seed):
            fitted = self.fit(x_o, seed=seed) if takes_seed else self.fit(x_o)
            weights = None
            if isinstance(fitted, tuple) and len(fitted) == 2:
                fitted, weights = fitted
            drawn = arviz_draws(fitted) if is_arviz(fitted) else fitted
            if hasattr(drawn, "sample") and not isinstance(fitted, Tensor | np.ndarray):
                drawn = seeded(drawn.sample)((num_samples,))
        values = torch.as_tensor(drawn).detach().to("cpu", torch.float32)
        if values.ndim != 2:
            raise ValueError(
                f"`fit` must give draws of shape (L, d) for one observation; row {row} gave "
                f"{tuple(values.shape)}."
            )
        if weights is not None:
            weight = check_weights(torch.as_tensor(weights).float().reshape(-1), (len(values),))
            return values[_systematic(weight[:, None], num_samples, part_seed(seed, 1))[:, 0]]
        if len(values) < num_samples:
            raise ValueError(
                f"`fit` must give at least {num_samples} draws, as many as the test ranks; row "
                f"{row} gave {len(values)}. Draw more in fit, or lower num_samples."
            )
        # Chains come out in order: a random subset, not the first draws.
        return _shuffled(values, part_seed(seed, 1))[:num_samples]
