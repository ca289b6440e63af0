"""A simulator with a budget: every call is counted, and none is made beyond the budget."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.random import as_count

from ..rounds.problem import Problem, check_varies, check_width

_LEAST_CALLS = 50  # a round with fewer pairs cannot hold some out
_LEAST_PAIRS = 20


@dataclass
class CountedSimulator:
    """theta (n, d) -> x (n, p), with a stream of its own for each call ever made.

    The first x are checked: of the length of x_o, some finite, not all the same.
    """

    problem: Problem
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
        x = self.problem.simulator(theta.float(), self.seed, first_row=self.made)
        if self.made == 0:
            self._check(x, len(theta))
        self.made += len(theta)
        return x

    def pairs(self, theta: Tensor) -> tuple[Tensor, Tensor]:
        """Simulate theta and keep the pairs whose x is finite.

        Raises:
            ValueError: if there are too few.
        """
        x = self(theta)
        finite = _finite(x)
        return theta[finite], x[finite]

    def _check(self, x: Tensor, num_calls: int) -> None:
        if x.ndim != 2 or len(x) != num_calls:
            raise ValueError(
                f"`simulator` must give x of shape (n, p), a row for each theta; of {num_calls} "
                f"theta it made {tuple(x.shape)}."
            )
        check_width(x, self.problem.x_o)
        check_varies(x[_finite(x)])


def _finite(x: Tensor) -> Tensor:
    """Which rows of x (n, p) are finite, (n,); a simulator that fails nearly always is refused."""
    finite = torch.isfinite(x).all(dim=1)
    count = int(finite.sum())
    if count < min(_LEAST_PAIRS, len(x)):
        raise ValueError(
            f"`simulator` gave {count or 'no'} finite x in {len(x)} calls, too few to go on "
            "with; try it at draws of the prior."
        )
    return finite


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
            f"rounds; got {num_simulations}. Ask for more simulations or fewer rounds."
        )
    return share
