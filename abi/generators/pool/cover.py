r"""Where a network of theta has learned: balls about few of its theta that hold all of them.

    log p(x | theta)  loses  1/2 (10 (d / r - 1))^2

where theta is farther than r from all of their centres, by d from the nearest. Between two places
where theta were simulated a network bends as it likes, and a few draws of the flows there may
outweigh all others. (Of a wave whose phase had pairs near 0 and near 2 pi, one draw in 300 lay
between, and made the sd of the phase 1.8 times what it is.) A centre is the theta farthest from
those before it, and r the distance of the farthest theta that is none.

Source: Gonzalez (1985), "Clustering to minimize the maximum intercluster distance".
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

_CENTERS = 128  # at most
_ROWS_EACH = 16  # theta for each of them, at least
_STEEPNESS = 10.0
_LEAST_RADIUS = 1e-6


class Cover(NamedTuple):
    """Centres (m, c), and the radius of the balls about them, (); none where it is infinite."""

    centers: Tensor
    radius: Tensor

    def loss(self, u: Tensor) -> Tensor:
        """What log densities lose at numbers u (n, c), (n,)."""
        beyond = torch.cdist(u, self.centers).amin(dim=1) / self.radius - 1.0
        return 0.5 * (_STEEPNESS * beyond.clamp_min(0.0)).square()


def cover_of(u: Tensor) -> Cover:
    """That of numbers (n, c) of theta."""
    count = max(1, min(_CENTERS, len(u) // _ROWS_EACH))
    at, nearest, chosen = u.norm(dim=1).argmin(), torch.full((len(u),), torch.inf), []
    for _ in range(count):
        chosen.append(int(at))
        nearest = nearest.minimum((u - u[at]).norm(dim=1))
        at = nearest.argmax()
    return Cover(u[chosen], nearest.amax().clamp_min(_LEAST_RADIUS))


def everywhere(numbers: int) -> Cover:
    """That of files from before there was one."""
    return Cover(torch.zeros(1, numbers), torch.tensor(torch.inf))
