"""What laws of values are linear in: numbers of theta, with their squares and products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from ....training.ridge import surely_gain
from ...trend import num_terms, with_products

_MOST_WORK = 4e9  # products of two terms, over all rows
_MOST_NUMBERS = 1e6  # of a matrix of terms for each value
_TOGETHER = 1_000_000  # products of two terms, at a time
_LEAST_ROWS = 2  # for each term, of which few are taken
_ROWS_FOR_ALL = 4  # for each term, of which all are


def terms_of(u: Tensor, num_values: int) -> Tensor:
    """The terms (n, t) of numbers u (n, c): these alone where more would take too long."""
    count = num_terms(u.shape[1])
    possible = _LEAST_ROWS * count <= len(u) and count**2 * len(u) <= _MOST_WORK
    return with_products(u) if possible and count**2 * num_values <= _MOST_NUMBERS else u


def with_ones(terms: Tensor) -> Tensor:
    """A first term that is 1, and these (n, t)."""
    return torch.cat([torch.ones(len(terms), 1, dtype=terms.dtype), terms], dim=1)


def weighted_products(terms: Tensor, weights: Tensor) -> Tensor:
    """Sums of products of terms (n, t), by each column of weights (n, k), (k, t, t)."""
    if weights.shape[1] == 1:
        alike: Tensor = (weights * terms).T @ terms
        return alike[None]
    width = terms.shape[1]
    total = torch.zeros(weights.shape[1], width**2, dtype=terms.dtype)
    some = max(1, _TOGETHER // width**2)
    for part, w in zip(terms.split(some), weights.split(some), strict=True):
        total += w.T @ (part[:, :, None] * part[:, None, :]).flatten(start_dim=1)
    return total.view(-1, width, width)


class _Fit(Protocol):
    @property
    def place(self) -> Tensor:
        """Coefficients (m, k)."""
        ...

    @property
    def log_density(self) -> Tensor:
        """Of the rows, (n, k)."""
        ...


_Found = TypeVar("_Found", bound=_Fit)


def on_surest_terms(fit: Callable[[Tensor, Tensor], _Found], u: Tensor, x: Tensor) -> _Found:
    """A law of values x (n, k) by all terms of numbers u (n, c), float64, the first of them 1.

    The terms are the numbers, and their squares and products where rows surely gain by these.
    """
    found = fit(with_ones(u), x)
    count = 1 + num_terms(u.shape[1])
    if _ROWS_FOR_ALL * count > len(u) or count**2 * len(u) * x.shape[1] > _MOST_WORK:
        return found
    curved = fit(with_ones(with_products(u)), x)
    gain = (curved.log_density - found.log_density).sum(dim=1)
    cost = (curved.place.numel() - found.place.numel()) / len(u)
    return curved if surely_gain(gain, cost) else found
