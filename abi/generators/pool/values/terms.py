"""What laws of values are linear in: numbers of theta, with their squares and products."""

from __future__ import annotations

import torch
from torch import Tensor

from ...trend import num_terms, with_products

_MOST_WORK = 4e9  # products of two terms, over all rows
_MOST_NUMBERS = 1e6  # of a matrix of terms for each value
_LEAST_ROWS = 2  # for each term, of which few are taken


def terms_of(u: Tensor, num_values: int) -> Tensor:
    """The terms (n, t) of numbers u (n, c): these alone where more would take too long."""
    count = num_terms(u.shape[1])
    possible = _LEAST_ROWS * count <= len(u) and count**2 * len(u) <= _MOST_WORK
    return with_products(u) if possible and count**2 * num_values <= _MOST_NUMBERS else u


def with_ones(terms: Tensor) -> Tensor:
    """A first term that is 1, and these (n, t)."""
    return torch.cat([torch.ones(len(terms), 1, dtype=terms.dtype), terms], dim=1)
