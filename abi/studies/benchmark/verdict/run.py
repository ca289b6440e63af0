"""``abi benchmark verdict``: choose, work, write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..choice import named
from ..experiment import Place
from . import fits, rates
from .cells import cells
from .results import markdown, summary

PARTS = ("level", "power", "rivals", "fits", "price")
_SIZES = (70, 300, 600)


def run_verdict(
    quick: bool, labels: list[str] | None, place: Place, *, repetitions: int | None
) -> tuple[dict[str, Any], str]:
    """Work the chosen parts; results as JSON has them, and as tables.

    Args:
        quick: few verdicts and small fits.
        labels: of the parts; all when omitted.
        place: where cells are kept, and how they are worked.
        repetitions: verdicts a law, failure and number of pairs.
    """
    chosen = named(PARTS, labels, "--part")
    seed = place.seed
    level = rates.wanted(
        "level", rates.level_failures(), _SIZES, repetitions or (50 if quick else 400), seed
    )
    power = rates.wanted(
        "power", rates.power_failures(), _SIZES, repetitions or (25 if quick else 100), seed
    )
    rivals = rates.wanted(
        "rivals", rates.power_failures(), _SIZES[:1] if quick else _SIZES[:2],
        25, seed,
    )  # fmt: skip
    asked = {
        "level": (level, rates.work_panel),
        "power": (power, rates.work_panel),
        "rivals": (rivals, rates.work_rivals),
        "fits": (_fits("fits", quick, seed), fits.work_fit),
        "price": (_fits("price", quick, seed), fits.work_price),
    }
    found = {name: cells(*asked[name], place) if name in chosen else [] for name in PARTS}
    values = summary(found, seed)
    return values, markdown(values)


def _fits(part: str, quick: bool, seed: int) -> list[dict[str, Any]]:
    """Small fits at two observations, large ones at one."""
    if quick:
        return fits.wanted(part, (500,), (0,), seed)
    few: Sequence[int] = (500, 1_000, 2_000)
    return [
        *fits.wanted(part, few, (0,), seed),
        *fits.wanted(part, few, (1,), seed),
        *fits.wanted(part, (5_000, 20_000), (0,), seed),
    ]
