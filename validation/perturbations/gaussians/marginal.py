r"""The blind prior: the marginal of theta in the place of the posterior, with its density.

Its draws are those of the family at fresh observations. Its density is an integral over x in R^m,
but given u = W2'x the mean W1 x is Gaussian, so that one dimension is left:

    theta | u ~ N( W1 1 + b (u - W2'1), C + |u| Sigma ),   b = W1 W2 / |W2|^2,
    C = W1 (I - W2 W2' / |W2|^2) W1',                      u ~ N(W2'1, |W2|^2).

With Sigma = L L' and L^-1 C L^-T = Q diag(c) Q', the covariance is L Q diag(c + |u|) Q' L' for
every u at once; the integral over u is Gauss-Legendre on both sides of the kink at 0, in
v = sqrt|u|, which takes the peak away that a singular C leaves there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from simulators.random import child_seed

from .gaussian import EllipticalLaw, GaussianFamily

_NODES = 150
_REACH = 9.0


class _Frame(NamedTuple):
    """Where the covariances C + |u| Sigma are all diagonal."""

    to_basis: Tensor
    """Q' L^-1, (s, s)."""
    values: Tensor
    """c, (s,)."""
    log_volume: float
    """log |det L|."""


@dataclass(frozen=True, eq=False)
class MarginalLaw:
    """The law of theta when x is unknown, the same at every x."""

    family: GaussianFamily

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, s) given x (n, m), of which only the number of rows counts."""
        fresh = self.family.observe(num_samples * len(x), child_seed(seed, 0))
        drawn = EllipticalLaw(self.family).sample(1, fresh, child_seed(seed, 1))
        return drawn.reshape(num_samples, len(x), -1)

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Normalised log density, theta (K, n, s), x (n, m) -> (K, n)."""
        family, frame = self.family, self._frame
        centred = (theta.double() - family.w1.sum(dim=1)) @ frame.to_basis.T
        slope = frame.to_basis @ (family.w1 @ family.w2) / family.w2.square().sum()
        constant = frame.log_volume + 0.5 * len(slope) * math.log(2 * math.pi)
        total = torch.full(theta.shape[:2], -torch.inf, dtype=torch.float64)
        for u, log_weight in self._nodes():
            variances = frame.values + abs(u)
            residual = centred - slope * (u - float(family.w2.sum()))
            away = (residual.square() / variances).sum(dim=-1)
            value = log_weight - 0.5 * (away + variances.log().sum()) - constant
            total = torch.logaddexp(total, value)
        return total.float()

    @cached_property
    def _frame(self) -> _Frame:
        family = self.family
        direction = family.w2 / family.w2.norm()
        rest = family.w1 - torch.outer(family.w1 @ direction, direction)
        sigma = family.eigenvectors * family.eigenvalues @ family.eigenvectors.T
        factor = torch.linalg.cholesky(sigma)
        whitened = torch.linalg.solve_triangular(factor, rest, upper=False)
        values, vectors = torch.linalg.eigh(whitened @ whitened.T)
        inverse = torch.linalg.solve_triangular(
            factor, torch.eye(len(factor), dtype=torch.float64), upper=False
        )
        volume = float(factor.diagonal().log().sum())
        return _Frame(vectors.T @ inverse, values.clamp_min(0.0), volume)

    def _nodes(self) -> list[tuple[float, float]]:
        """Nodes u, and the log of quadrature weight times the density of u."""
        centre, scale = float(self.family.w2.sum()), float(self.family.w2.norm())
        points, weights = np.polynomial.legendre.leggauss(_NODES)
        nodes = []
        for side in (-1.0, 1.0):
            furthest = side * centre + _REACH * scale
            if furthest <= 0:
                continue
            v = 0.5 * (points + 1.0) * math.sqrt(furthest)
            measure = 0.5 * math.sqrt(furthest) * weights * 2.0 * v
            u = side * v**2
            density = -0.5 * ((u - centre) / scale) ** 2 - math.log(scale * math.sqrt(2 * math.pi))
            nodes += list(zip(u.tolist(), (np.log(measure) + density).tolist(), strict=True))
        return nodes
