"""How many rows are looked at: as many as matter when learning, as many at a time as fit."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from simulators.random import torch_generator

_AT_ONCE = 20_000


def some_rows(most: int, *rows: Tensor) -> tuple[Tensor, ...]:
    """The same rows of each (n, ...), or as many of them by chance; more would tell no more."""
    if len(rows[0]) <= most:
        return rows
    some = torch.randperm(len(rows[0]), generator=torch_generator(0))[:most]
    return tuple(each[some] for each in rows)


def in_parts(density: Callable[[Tensor, Tensor], Tensor], seen: Tensor, numbers: Tensor) -> Tensor:
    """Log densities (n,) of what is seen (n, p), or (1, p) for all, given numbers (n, c)."""
    rows = seen.expand(len(numbers), -1)
    parts = zip(rows.split(_AT_ONCE), numbers.split(_AT_ONCE), strict=True)
    return torch.cat([density(*part) for part in parts])
