"""The nearest of many draws, and how many of them to keep.

Fewer are nearer to the posterior, more are a better sample. Kept are as many, of 20, 40, 80, ... to
a fifth of all, as forecast best: the 200 pairs (theta_j, x_j) whose x lies nearest to x_o are
left out in turn, and the k draws nearest to x_j forecast theta_j by their empirical law F. The
energy score of a forecast,

    ES(F, theta_j) = E |y - theta_j| - 1/2 E |y - y'|,   y, y' independent from F,

in the prior's standard deviations, is least, in expectation, for the law theta_j comes from, and
more where F has few atoms.

Source: leave-one-out choice of a tolerance as in Csillery, Francois & Blum (2012), cv4abc, with the
score of Gneiting & Raftery (2007), Section 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.random import torch_generator

from ...generators.base import units

_LEAST = 20
_LEFT_OUT = 200


@dataclass(frozen=True, eq=False)
class Nearest:
    """Draws of the prior, and what is compared of their simulations.

    Attributes:
        theta: draws, (n, d).
        seen: summaries or features of their x, (n, k).
        fraction: share of them to keep, at least 20 draws; None for as many as forecast best.
        seed: of the pairs of draws in the score.
    """

    theta: Tensor
    seen: Tensor
    fraction: float | None
    seed: int

    def to(self, target: Tensor) -> tuple[Tensor, Tensor]:
        """The draws kept for a target (k,), nearest first: distances (m,) and theta (m, d)."""
        distance = (self.seen - target).norm(dim=1)
        order = distance.argsort()
        if self.fraction is not None:
            wanted = max(_LEAST, round(self.fraction * len(order)))
        else:
            wanted = self._best(order[:_LEFT_OUT])
        kept = order[:wanted]
        return distance[kept], self.theta[kept]

    def _best(self, left_out: Tensor) -> int:
        """How many of the draws nearest to each of the rows left out forecast it best."""
        most = len(self.theta) // 5
        sizes = [_LEAST]
        while 2 * sizes[-1] <= most:
            sizes.append(2 * sizes[-1])
        if len(sizes) == 1:
            return _LEAST
        apart = torch.cdist(self.seen[left_out], self.seen)
        apart[torch.arange(len(left_out)), left_out] = torch.inf
        around = apart.topk(sizes[-1], largest=False).indices
        _, scale, _ = units(self.theta)
        truth, draws = self.theta[left_out] / scale, self.theta[around] / scale
        scores = [self._score(draws[:, :size], truth) for size in sizes]
        return sizes[min(range(len(sizes)), key=scores.__getitem__)]

    def _score(self, draws: Tensor, truth: Tensor) -> float:
        """The mean energy score of draws (m, k, d) at truth (m, d)."""
        size = draws.shape[1]
        order = torch.randperm(size, generator=torch_generator(self.seed))
        # A draw beside the next in random order: pairs of distinct ones, of which the k^2 pairs
        # of a law with k atoms have (k - 1) / k.
        apart = (draws - draws[:, order[(order.argsort() + 1) % size]]).norm(dim=2).mean()
        off = (draws - truth[:, None]).norm(dim=2).mean()
        return float(off - 0.5 * (size - 1) / size * apart)
