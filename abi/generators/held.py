"""Theta that a flow was not trained on, kept while rounds may follow."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Theta that one flow was not trained on.

    Attributes:
        rows: theta less their trend, (n, d).
        left_out: likewise, the trend being that of all others: these are as far off as new ones.
        context: what the flow sees of their x, (n, k); None where it is given no x.
        seed: of draws to compare them with.
    """

    rows: Tensor
    left_out: Tensor
    context: Tensor | None
    seed: int


def held_parts(held: tuple[HeldOut, ...]) -> tuple[dict[str, Tensor], list[int]]:
    """Those of each flow as tensors and seeds, for files."""
    rows = {f"{part}.rows": own.rows for part, own in enumerate(held)}
    rows |= {f"{part}.left_out": own.left_out for part, own in enumerate(held)}
    seen = {
        f"{part}.context": own.context for part, own in enumerate(held) if own.context is not None
    }
    return rows | seen, [own.seed for own in held]


def held_from(tensors: dict[str, Tensor], seeds: list[int]) -> tuple[HeldOut, ...]:
    """The inverse of :func:`held_parts`; before version 14 a trend was never without a theta."""
    parts = []
    for part, seed in enumerate(seeds):
        rows = tensors[f"{part}.rows"]
        left_out = tensors.get(f"{part}.left_out", rows)
        parts.append(HeldOut(rows, left_out, tensors.get(f"{part}.context"), seed))
    return tuple(parts)
