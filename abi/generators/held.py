"""Theta that a flow was not trained on, kept while rounds may follow."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Theta less their trend (n, d) that one flow was not trained on, their context, and a seed."""

    rows: Tensor
    context: Tensor | None
    seed: int


def held_parts(held: tuple[HeldOut, ...]) -> tuple[dict[str, Tensor], list[int]]:
    """Those of each flow as tensors and seeds, for files."""
    rows = {f"{part}.rows": own.rows for part, own in enumerate(held)}
    seen = {
        f"{part}.context": own.context for part, own in enumerate(held) if own.context is not None
    }
    return rows | seen, [own.seed for own in held]


def held_from(tensors: dict[str, Tensor], seeds: list[int]) -> tuple[HeldOut, ...]:
    """The inverse of :func:`held_parts`."""
    return tuple(
        HeldOut(tensors[f"{part}.rows"], tensors.get(f"{part}.context"), seed)
        for part, seed in enumerate(seeds)
    )
