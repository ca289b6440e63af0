"""Simulators, priors and defaults of the tests, importable by workers and by the command line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor
from torch.distributions import Independent, Uniform


def simulate(theta: Tensor) -> Tensor:
    """Three noisy looks at each parameter, with the global random stream."""
    return theta.repeat(1, 3) + 0.3 * torch.randn(len(theta), 3 * theta.shape[1])


class Counting:
    """:func:`simulate`, with its calls counted; the user interrupts it beyond the most."""

    def __init__(self, most: float = math.inf):
        self.calls, self.most = 0, most

    def __call__(self, theta: Tensor) -> Tensor:
        self.calls += len(theta)
        if self.calls > self.most:
            raise KeyboardInterrupt
        return simulate(theta)


def rounds_done(folder: Path) -> int:
    """Rounds of a run that are on the disk."""
    return len(list(folder.glob("round_*.safetensors")))


def interrupted_after(folder: Path, rounds: int) -> Callable[[Tensor], Tensor]:
    """:func:`simulate`, which the user interrupts once so many rounds are on the disk."""

    def interrupted(theta: Tensor) -> Tensor:
        if rounds_done(folder) >= rounds:
            raise KeyboardInterrupt
        return simulate(theta)

    return interrupted


def prior(num_samples: int) -> Tensor:
    """Two parameters, a sampler without a density."""
    return torch.rand(num_samples, 2) * 4 - 2


BOX = Independent(Uniform(-2 * torch.ones(2), 2 * torch.ones(2)), 1)


def constant(theta: Tensor) -> Tensor:
    return torch.ones(len(theta), 4)


def one_row_short(theta: Tensor) -> Tensor:
    return theta[1:]


def half_nan(theta: Tensor) -> Tensor:
    x = simulate(theta)
    x[theta[:, 0] > 0] = torch.nan
    return x


def some_nan(theta: Tensor) -> Tensor:
    x = simulate(theta)
    x[theta[:, 0] > 0.5] = torch.nan
    return x


def all_nan(theta: Tensor) -> Tensor:
    return torch.full((len(theta), 6), torch.nan)


@contextmanager
def default_float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)
