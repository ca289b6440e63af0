r"""The bivariate toy of the conformal paper: a classifier whose boundary is moved or turned.

(theta, x) is N((0, 0), I) under p and N((a, 0), I) under q. The best boundary between them is
theta = a / 2; a score is the signed distance to a boundary, on p's side positive:

    s(theta, x) = -((theta - a / 2 - shift) cos(angle) + x sin(angle)).

A shift changes the threshold and no rank; at angle pi / 2 the score knows nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.random import torch_generator

from .task import Failure


@dataclass(frozen=True, eq=False)
class ShiftedNormal:
    """theta ~ N(shift, 1) at every x."""

    shift: float

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, 1) given x (n, 1)."""
        return self.shift + torch.randn(num_samples, len(x), 1, generator=torch_generator(seed))

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Normalised log density, theta (K, n, 1), x (n, 1) -> (K, n)."""
        return -0.5 * ((theta[..., 0] - self.shift).square() + math.log(2 * math.pi))


def bivariate() -> Failure:
    """A bivariate Gaussian that is shifted; the strength is the shift, 0.5 in the paper.

    Source: "The surprising strength of weak classifiers for two-sample testing", Figure 1.
    """
    return Failure(
        "bivariate",
        (0.0, 0.5),
        lambda a: (ShiftedNormal(0.0), ShiftedNormal(a)),
        lambda n, seed: torch.randn(n, 1, generator=torch_generator(seed)),
        "The surprising strength of weak classifiers, Figure 1",
    )


@dataclass(frozen=True)
class LinearScore:
    """A linear score, larger where p is likelier; its boundary can be moved and turned."""

    strength: float
    """a, the shift of theta under q."""
    shift: float = 0.0
    """Of the boundary, towards q where positive."""
    angle: float = 0.0
    """Of the boundary about the midpoint, in radians."""

    def __call__(self, theta: Tensor, x: Tensor) -> Tensor:
        """Scores of theta (n, 1), x (n, 1): (n,)."""
        offset = theta[:, 0] - self.strength / 2 - self.shift
        return -(offset * math.cos(self.angle) + x[:, 0] * math.sin(self.angle))
