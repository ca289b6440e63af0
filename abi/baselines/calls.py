"""A simulator with a budget: every call is counted, and none is made beyond the budget."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simulators import SeededSimulator
from simulators.random import as_count

_LEAST_CALLS = 50  # a round with fewer pairs cannot hold some out


@dataclass
class CountedSimulator:
    """theta (n, d) -> x (n, p), with a stream of its own for each call ever made."""

    simulator: SeededSimulator
    budget: int
    seed: int
    made: int = 0

    @property
    def left(self) -> int:
        """Calls that may still be made."""
        return self.budget - self.made

    def __call__(self, theta: Tensor) -> Tensor:
        """Simulate; row i of call number k has the stream of row k + i."""
        if len(theta) > self.left:
            raise RuntimeError(
                f"`num_simulations` allows {self.left} more simulator calls; {len(theta)} were "
                "asked for."
            )
        x = self.simulator(theta.float(), self.seed, first_row=self.made)
        self.made += len(theta)
        return x

    def pairs(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Simulate theta and keep the pairs whose x is finite."""
        x = self(theta)
        finite = torch.isfinite(x).all(dim=1)
        if not finite.any():
            raise ValueError(
                f"`simulator` gave no finite x in {len(theta)} calls; try it at draws of the prior."
            )
        return theta[finite], x[finite]


def calls_per_round(num_simulations: int, num_rounds: int) -> int:
    """The budget shared equally by the rounds.

    Raises:
        ValueError: if there is no round, or a round is too small to train on.
    """
    num_rounds = as_count(num_rounds, "num_rounds", 1)
    share = as_count(num_simulations, "num_simulations", 1) // num_rounds
    if share < _LEAST_CALLS:
        raise ValueError(
            f"`num_simulations` must be at least {_LEAST_CALLS * num_rounds} for {num_rounds} "
            f"rounds; got {num_simulations}."
        )
    return share
