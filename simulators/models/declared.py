"""What a model declares of itself in one line: its prior, true parameters, default observation.

And what most do with their arguments: theta as float64 rows, the seed, one call of compiled loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, Self, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Distribution, Independent, LogNormal, Uniform

from ..base import SeededSimulator, as_rows
from ..random import stream_seed


class _Sizes(Protocol):
    @property
    def theta_dim(self) -> int: ...
    @property
    def x_dim(self) -> int: ...


class _KnownTruth(_Sizes, SeededSimulator, Protocol):
    @property
    def true_theta(self) -> Tensor: ...


def uniform_box(lower: Sequence[float], upper: Sequence[float]) -> Distribution:
    """The uniform prior between two corners of d numbers each."""
    return Independent(Uniform(torch.tensor(lower), torch.tensor(upper)), 1)


def log_normals(centre: Sequence[float], sd: Sequence[float]) -> Distribution:
    """The prior whose d logarithms are independent normals."""
    return Independent(LogNormal(torch.tensor(centre), torch.tensor(sd)), 1)


def log_normal_theta(
    centre: Sequence[float], sd: Sequence[float]
) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Theta (n, d) of that prior at z (n, d), which is a standard normal there."""
    place, scale = np.array(centre), np.array(sd)
    return lambda z: np.asarray(np.exp(place + scale * z))


class Constant:
    """A class attribute that is a tensor of these numbers, (their number,), new at each access."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def __get__(self, task: object, owner: type) -> Tensor:
        return torch.tensor(self.values)


@dataclass(frozen=True)
class Observation:
    """A default observation (x_dim,): one draw at ``true_theta``, or published numbers.

    Args:
        seed: that of the draw.
        published: taken in place of a draw by a task whose simulations have as many values.
    """

    seed: int
    published: tuple[float, ...] = ()

    @overload
    def __get__(self, task: None, owner: type) -> Self: ...
    @overload
    def __get__(self, task: _KnownTruth, owner: type) -> Tensor: ...
    def __get__(self, task: _KnownTruth | None, owner: type) -> Tensor | Self:
        if task is None:
            return self
        if task.x_dim == len(self.published):
            return torch.tensor(self.published)
        return task(task.true_theta[None], self.seed)[0]


def prepared(theta: Tensor, theta_dim: int, seed: int | None) -> tuple[NDArray[np.float64], int]:
    """What a call is made with: theta (n, theta_dim) as float64 and the seed of its streams."""
    return as_rows(theta, theta_dim).double().numpy(), stream_seed(seed)


def run_compiled(
    loops: Callable[..., None], task: _Sizes, theta: Tensor, seed: int | None, first_row: int
) -> Tensor:
    """Simulate theta (n, theta_dim) -> x (n, x_dim), float32, with compiled loops over the rows.

    Args:
        loops: called as ``loops(theta, seed, first_row, out)``; fills ``out`` (n, x_dim).
        task: what they simulate.
        theta: its parameters.
        seed: row i is a function of ``(seed, first_row + i)``; a fresh one when omitted.
        first_row: see ``seed``.
    """
    rows, seed = prepared(theta, task.theta_dim, seed)
    out = np.empty((len(rows), task.x_dim), dtype=np.float32)
    loops(rows, np.uint64(seed), np.uint64(first_row), out)
    return torch.from_numpy(out)
