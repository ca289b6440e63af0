"""Distributions of torch and scipy as parts of one prior: draws (n, k), density, support.

A part is one parameter, or several that belong together; parts are independent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import constraints

from ..random import isolated_rng
from .reads import signature_of

_SEEDS = 1 << 32


class Part(Protocol):
    """What a prior of several distributions asks of each."""

    @property
    def width(self) -> int:
        """Number of parameters k."""
        ...

    @property
    def support(self) -> Any:
        """A constraint, with the ends that are known."""
        ...

    def draw(self, count: int) -> Tensor:
        """Draw (count, k), float64, with the global streams."""
        ...

    def log_prob(self, theta: Tensor) -> Tensor:
        """Log density at theta (n, k) -> (n,); NotImplementedError where there is none."""
        ...


@dataclass(frozen=True, eq=False)
class TorchPart:
    """A distribution of torch, or of what is built on it."""

    distribution: Any
    shape: tuple[int, ...]
    """Of one draw."""

    @property
    def width(self) -> int:
        """Number of parameters k."""
        return math.prod(self.shape)

    @property
    def support(self) -> Any:
        """Its own, or all numbers where it declares none."""
        try:
            return self.distribution.support
        except (NotImplementedError, AttributeError):
            return constraints.real

    def draw(self, count: int) -> Tensor:
        """Draw (count, k), float64."""
        return torch.as_tensor(self.distribution.sample((count,))).double().reshape(count, -1)

    def log_prob(self, theta: Tensor) -> Tensor:
        """Log density, of independent coordinates where it has a batch shape."""
        values = self.distribution.log_prob(theta.reshape(len(theta), *self.shape))
        found: Tensor = values.reshape(len(theta), -1).sum(dim=1)
        return found


@dataclass(frozen=True, eq=False)
class ScipyPart:
    """A frozen distribution of ``scipy.stats``, or one of its newer classes."""

    distribution: Any
    width: int
    """Number of parameters k."""

    @property
    def discrete(self) -> bool:
        """Whether its values are whole numbers; the newer classes all have a ``pmf``."""
        if hasattr(self.distribution, "rvs"):
            return hasattr(self.distribution, "pmf")
        bases = [base.__name__ for base in type(self.distribution).__mro__]
        return "DiscreteDistribution" in bases

    @property
    def support(self) -> Any:
        """The interval that it names; whole numbers of a discrete one."""
        ends = getattr(self.distribution, "support", None)
        if ends is None or self.width > 1:
            return constraints.real
        low, high = (float(end) for end in ends())
        if self.discrete:
            return constraints.integer_interval(low, high)
        if np.isfinite(low) and np.isfinite(high):
            return constraints.interval(low, high)
        if np.isfinite(low):
            return constraints.greater_than_eq(low)
        return constraints.less_than(high) if np.isfinite(high) else constraints.real

    def draw(self, count: int) -> Tensor:
        """Draw (count, k), float64; the seed comes from torch's global stream."""
        return torch.from_numpy(_scipy_draws(self.distribution, count).reshape(count, -1))

    def log_prob(self, theta: Tensor) -> Tensor:
        """Log density or, of a discrete one, log probability."""
        method: Any = getattr(self.distribution, "logpmf" if self.discrete else "logpdf", None)
        points = theta.double().numpy()
        try:
            values = np.atleast_1d(method(points if self.width > 1 else points[:, 0]))
        except (TypeError, ValueError):  # it has none, or takes its points in columns
            values = np.empty(0)
        if values.shape != (len(theta),):
            raise NotImplementedError("the distribution has no density of rows")
        return torch.from_numpy(values.astype(np.float64))


@dataclass(frozen=True, eq=False)
class FreshlySeeded:
    """What draws by a ``seed`` of its own, such as the posterior of a fit: here by a new one.

    Without it such a distribution gives the same theta whenever it is drawn from.
    """

    distribution: Any

    def sample(self, sample_shape: Any, /) -> Any:
        """Draw for ``sample_shape``; the seed comes from torch's global stream."""
        return self.distribution.sample(sample_shape, seed=int(torch.randint(_SEEDS, ())))

    def __getattr__(self, name: str) -> Any:
        """Density, support and names are its own."""
        if name == "distribution" or name.startswith("__"):  # not there yet, where it is unpickled
            raise AttributeError(name)
        return getattr(self.distribution, name)


def freshly_seeded(distribution: Any) -> Any:
    """A distribution as it is, or so that its draws depend on torch's global stream."""
    seed = signature_of(distribution.sample).get("seed")
    fixed = seed is not None and isinstance(seed.default, int)
    return FreshlySeeded(distribution) if fixed else distribution


def as_part(distribution: Any, name: str) -> Part:
    """A distribution as a part of a prior.

    Raises:
        TypeError: if it is none of torch or scipy.
    """
    root = type(distribution).__module__.partition(".")[0]
    if root == "scipy" and (hasattr(distribution, "rvs") or hasattr(distribution, "sample")):
        if hasattr(distribution, "dist") or not hasattr(distribution, "shapes"):
            with isolated_rng(0):
                return ScipyPart(distribution, _scipy_draws(distribution, 2).size // 2)
        raise TypeError(
            f"{name} must be frozen: call it with its parameters, as scipy.stats.uniform(0, 1)."
        )
    if hasattr(distribution, "sample") and root not in ("numpyro", "pytensor", "pymc"):
        distribution = freshly_seeded(distribution)
        with isolated_rng(0):
            return TorchPart(distribution, tuple(distribution.sample((2,)).shape[1:]))
    raise TypeError(
        f"{name} must be a distribution of torch or a frozen one of scipy.stats, such as "
        f"scipy.stats.uniform(low, high - low); got {type(distribution).__name__}."
    )


def _scipy_draws(distribution: Any, count: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(int(torch.randint(1 << 62, ())))
    if hasattr(distribution, "rvs"):
        return np.asarray(distribution.rvs(size=count, random_state=rng), np.float64)
    return np.asarray(distribution.sample(count, rng=rng), np.float64)
