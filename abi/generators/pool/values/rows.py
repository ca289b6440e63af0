"""Densities worked out for so many rows at a time as keep their terms small."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

_AT_ONCE = 20_000


def in_parts(density: Callable[[Tensor, Tensor], Tensor], seen: Tensor, numbers: Tensor) -> Tensor:
    """Log densities (n,) of what is seen (n, p), or (1, p) for all, given numbers (n, c)."""
    rows = seen.expand(len(numbers), -1)
    parts = zip(rows.split(_AT_ONCE), numbers.split(_AT_ONCE), strict=True)
    return torch.cat([density(*part) for part in parts])
