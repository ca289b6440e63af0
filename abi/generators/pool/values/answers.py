"""Laws of answers of yes or no: log odds that are linear in theta, by weighted least squares.

Their coefficients have a unit normal prior. Source: McCullagh & Nelder (1989), "Generalized linear
models"; Akaike (1974) for the price of a term.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .terms import on_surest_terms, weighted_products

_PASSES = 8


def log_odds(u: Tensor, x: Tensor) -> Tensor:
    """Coefficients (1 + t, k) of x (n, k), 0 or 1, given numbers u (n, c), float64.

    They are of the numbers, and of their squares and products where rows gain by these.
    """
    return on_surest_terms(_fitted, u, x).place


def log_density(x: Tensor, eta: Tensor) -> Tensor:
    """Of each of x, 0 or 1, given log odds."""
    return x * eta - torch.nn.functional.softplus(eta)


class _Answered(NamedTuple):
    """Coefficients (1 + t, k), and log densities of the rows (n, k)."""

    place: Tensor
    log_density: Tensor


def _fitted(t: Tensor, x: Tensor) -> _Answered:
    """The law of answers x (n, k), given terms t (n, m)."""
    place = torch.zeros(t.shape[1], x.shape[1], dtype=t.dtype)
    for _ in range(_PASSES):
        chance = (t @ place).sigmoid()
        weights = (chance * (1.0 - chance)).clamp_min(1e-6)
        place = solved(t, weights, weights * (t @ place) + x - chance)
    return _Answered(place, log_density(x, t @ place))


def solved(t: Tensor, weights: Tensor, targets: Tensor) -> Tensor:
    """Coefficients (m, k): of the weighted squares of t (n, m), one system a value.

    Args:
        t: terms, the first of them 1, which has next to no prior.
        weights: of rows and values, (n, k).
        targets: times their weights, (n, k).
    """
    prior = torch.eye(t.shape[1], dtype=t.dtype)
    prior[0, 0] = 1e-8
    systems, right = weighted_products(t, weights) + prior, (t.T @ targets).T[..., None]
    found: Tensor = torch.linalg.solve(systems, right)[..., 0].T
    return found
