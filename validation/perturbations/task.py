"""What a failure is to the laboratory: a true posterior, an estimate that is wrong by so much."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from simulators.random import child_seed
from simulators.summary import summary


class Law(Protocol):
    """A distribution of theta given x with exact draws and, where it has one, an exact density.

    It is a :class:`~validation.Posterior`, so every test takes it as ``q``.
    """

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, d) given x (n, p)."""
        ...

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Normalised log density, theta (K, n, d), x (n, p) -> (K, n)."""
        ...


@dataclass(frozen=True, eq=False)
class Task:
    """A true posterior ``p`` and an estimate ``q`` of it, wrong by a known strength."""

    name: str
    """Of the failure."""
    strength: float
    """0 where q = p."""
    p: Law
    """The true posterior."""
    q: Law
    """The estimate under test."""
    observe: Callable[[int, int], Tensor]
    """(n, seed) -> n observations, (n, p)."""

    __repr__ = summary

    def joint(self, n: int, seed: int) -> tuple[Tensor, Tensor]:
        """Draw n pairs: x (n, p), and theta (n, d) from the true posterior at each."""
        x = self.observe(n, child_seed(seed, 0))
        return self.p.sample(1, x, child_seed(seed, 1))[0], x


@dataclass(frozen=True, eq=False)
class Failure:
    """A way in which an estimate of a posterior can be wrong, with a strength that you choose."""

    name: str
    """As tables and files call it. Kept cells are found by it: other settings need another name."""
    strengths: tuple[float, ...]
    """Those of the paper, from 0 (none) upwards."""
    build: Callable[[float], tuple[Law, Law]]
    """strength -> (p, q)."""
    observe: Callable[[int, int], Tensor]
    """(n, seed) -> n observations, (n, p)."""
    source: str
    """Paper and place."""

    __repr__ = summary

    def at(self, strength: float) -> Task:
        """The true posterior and the estimate at this strength; at 0 they are the same.

        Raises:
            ValueError: if the strength is negative or not finite.
        """
        if not 0 <= strength < math.inf:
            raise ValueError(f"`strength` must be a finite number of 0 or more; got {strength}.")
        p, q = self.build(strength)
        return Task(self.name, strength, p, q, self.observe)
