"""Laws made of laws: a mixture of two, and the image of one under a map."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.random import child_seed, torch_generator

from .task import Law


@dataclass(frozen=True, eq=False)
class Mixture:
    """``(1 - weight) first + weight second`` at every x, with a weight in [0, 1]."""

    first: Law
    second: Law
    weight: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.weight <= 1.0:
            raise ValueError(f"`strength` is a weight in [0, 1] here; got {self.weight}.")

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, d) given x (n, p)."""
        generator = torch_generator(child_seed(seed, 0))
        second = torch.rand(num_samples, len(x), 1, generator=generator) < self.weight
        return torch.where(
            second,
            self.second.sample(num_samples, x, child_seed(seed, 2)),
            self.first.sample(num_samples, x, child_seed(seed, 1)),
        )

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Normalised log density, theta (K, n, d), x (n, p) -> (K, n)."""
        if self.weight in (0.0, 1.0):
            only = self.second if self.weight else self.first
            return only.log_prob(theta, x)
        return torch.logaddexp(
            math.log1p(-self.weight) + self.first.log_prob(theta, x),
            math.log(self.weight) + self.second.log_prob(theta, x),
        )


@dataclass(frozen=True, eq=False)
class Image:
    """The law of f(theta~) for theta~ from a law, by a map f that is not one to one."""

    law: Law
    transform: Callable[[Tensor], Tensor]
    """(..., s) -> (..., s)."""

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, d) given x (n, p)."""
        return self.transform(self.law.sample(num_samples, x, seed))

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Raise, for the density is a sum over all theta~ with this image.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "a curved law offers draws only: its map folds, and its density sums over all "
            "points that share an image."
        )
