"""Laws of answers of yes or no: log odds that are linear in theta, by weighted least squares.

Their coefficients have a unit normal prior. Source: McCullagh & Nelder (1989), "Generalized linear
models"; Akaike (1974) for the price of a term.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ....training.ridge import surely_gain
from ...trend import num_terms, with_products
from .terms import with_ones

_PASSES = 8
_LEAST_ROWS = 4  # for each term
_MOST_WORK = 4e9  # products of two terms, over all rows and values
_TOGETHER = 5_000_000  # numbers


def log_odds(u: Tensor, x: Tensor) -> Tensor:
    """Coefficients (1 + t, k) of x (n, k), 0 or 1, given numbers u (n, c), float64.

    They are of the numbers, and of their squares and products where rows gain by these.
    """
    place, density = _fitted(with_ones(u), x)
    count = 1 + num_terms(u.shape[1])
    if _LEAST_ROWS * count > len(u) or count**2 * len(u) * x.shape[1] > _MOST_WORK:
        return place
    curved, other = _fitted(with_ones(with_products(u)), x)
    cost = (curved.numel() - place.numel()) / len(u)
    return curved if surely_gain(other - density, cost) else place


def log_density(x: Tensor, eta: Tensor) -> Tensor:
    """Of each of x, 0 or 1, given log odds."""
    return x * eta - torch.nn.functional.softplus(eta)


def _fitted(t: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """Coefficients of terms t (n, m), and log densities (n,)."""
    place = torch.zeros(t.shape[1], x.shape[1], dtype=t.dtype)
    for _ in range(_PASSES):
        chance = (t @ place).sigmoid()
        weights = (chance * (1.0 - chance)).clamp_min(1e-6)
        place = solved(t, weights, weights * (t @ place) + x - chance)
    return place, log_density(x, t @ place).sum(dim=1)


def solved(t: Tensor, weights: Tensor, targets: Tensor) -> Tensor:
    """Coefficients (m, k): of the weighted squares of t (n, m), one system a value.

    Args:
        t: terms, the first of them 1, which has next to no prior.
        weights: of rows and values, (n, k).
        targets: times their weights, (n, k).
    """
    prior = torch.eye(t.shape[1], dtype=t.dtype)
    prior[0, 0] = 1e-8
    right, some = t.T @ targets, max(1, _TOGETHER // t.numel())
    found = [
        torch.linalg.solve((t.T * w.T[:, None]) @ t + prior, y.T[..., None])[..., 0]
        for w, y in zip(weights.split(some, dim=1), right.split(some, dim=1), strict=True)
    ]
    return torch.cat(found).T
