"""Tables of Markdown, and means over cells with intervals, less the floor of their observation."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .cells import Cell

_EXCESS = ("w1", "normalised_w1")
Floors = Mapping[tuple[str, int], Cell]
"""(model, observation) -> the cell of the floor."""


class Mean(NamedTuple):
    """A mean over cells; ``half`` of a 95% t interval, None of a single value."""

    value: float
    half: float | None

    def __str__(self) -> str:
        """As it stands in a table."""
        return f"{self:.3f}"

    def __format__(self, digits: str) -> str:
        """The value and the half interval, each in a form such as ``.2f``; no -0.000."""
        value = f"{self.value:{digits}}"
        value = value.lstrip("-") if float(value) == 0.0 else value
        return value + ("" if self.half is None else f" +- {self.half:{digits}}")


def mean(cells: Sequence[Cell], name: str, floors: Floors | None = None) -> Mean:
    """The mean of a score; less the floors if given.

    The interval is over the observations' means, or over seeds where there is one observation.
    """
    groups = list(_values(cells, name, floors).values())
    centre = average([value for group in groups for value in group])
    units = groups[0] if len(groups) == 1 else [average(group) for group in groups]
    return Mean(centre, mean_of(units).half)


def mean_of(units: Sequence[float]) -> Mean:
    """The mean of independent values."""
    middle = average(units)
    if len(units) < 2:
        return Mean(middle, None)
    from scipy.stats import t

    spread = math.sqrt(sum((unit - middle) ** 2 for unit in units) / (len(units) - 1))
    return Mean(middle, float(t.ppf(0.975, len(units) - 1)) * spread / math.sqrt(len(units)))


def score_table(
    cells: Sequence[Cell], shown: Mapping[str, str], floors: Floors, by: str
) -> list[str]:
    """Methods against scores: the floor's row first, then the methods from the best by a score.

    Args:
        cells: of one budget, the floors' not among them.
        shown: score -> its heading; distances have their excess over the floor beside them.
        floors: of the observations, or none.
        by: the score that ranks.
    """
    heads = ["method", "cells"]
    for name, label in shown.items():
        heads += [label, f"{label} excess"] if name in _EXCESS else [label]
    heads += ["calls", "fit s", "draw s"]
    rows = []
    if below := used(cells, floors):
        rows.append(["floor", str(len(below)), *score_entries(below, shown, None), "", "", ""])
    for method in ranked(cells, by, floors):
        mine = [c for c in cells if c.method == method]
        good = [c for c in mine if not c.error]
        if not good:
            reasons = "; ".join(sorted({c.error.split(". ")[0] for c in mine}))
            rows.append([method, f"0 of {len(mine)}", reasons + " |" * (len(heads) - 3)])
            continue
        count = f"{len(good)}" + (f" of {len(mine)}" if len(good) < len(mine) else "")
        cost = [
            f"{max(c.calls for c in good):,}",
            f"{average([c.fit_seconds for c in good]):.0f}",
            f"{average([c.draw_seconds for c in good]):.1f}",
        ]
        rows.append([method, count, *score_entries(good, shown, floors), *cost])
    return table(heads, rows)


def used(cells: Sequence[Cell], floors: Floors) -> list[Cell]:
    """The floors of the observations of some cells."""
    wanted = sorted({(c.model, c.observation) for c in cells})
    return [floors[key] for key in wanted if key in floors]


def score_entries(
    cells: Sequence[Cell], shown: Mapping[str, str], floors: Floors | None
) -> list[str]:
    """The entries of a row, empty where a cell has no such score; no excess without floors."""
    entries = []
    for name in shown:
        if any(name not in c.scores for c in cells):
            entries.append("")
            continue
        entries.append(str(mean(cells, name)))
        if name in _EXCESS:
            entries.append("" if floors is None else str(mean(cells, name, floors)))
    return entries


def ranked(cells: Sequence[Cell], name: str, floors: Floors) -> list[str]:
    """The methods of the cells, those with the least excess of a score first."""

    def rank(method: str) -> tuple[float, str]:
        good = [c for c in cells if c.method == method and name in c.scores]
        return (mean(good, name, floors).value if good else math.inf, method)

    return sorted({c.method for c in cells}, key=rank)


def table(heads: Sequence[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """The lines of a Markdown table."""
    lines = ["| " + " | ".join(map(str, entries)) + " |" for entries in (heads, *rows)]
    return [lines[0], "|---" * len(heads) + "|", *lines[1:]]


def claim_table(claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """A paper's statements beside ours: each has ``says``, ``where``, ``ours``, ``verdict``."""
    keys = ("says", "where", "ours", "verdict")
    return table(["the paper", *keys[1:]], ([claim[key] for key in keys] for claim in claims))


def paper_page(values: Mapping[str, Any], parts: Iterable[str]) -> str:
    """The page of a benchmark: what is measured, its parts, and where ours and the paper differ."""
    lines = [f"# {values['title']}", "", f"{values['source']}.", "", values["setting"], "", *parts]
    if values["disagreements"]:
        lines += ["## Where ours and the paper's differ", ""]
        lines += [*(f"- {line}" for line in values["disagreements"]), ""]
    return "\n".join(lines)


def write_results(path: Path, values: Mapping[str, Any], text: str) -> None:
    """Keep results as ``path`` with .json, for programs, and with .md."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.with_suffix(".json").write_text(json.dumps(values, indent=1) + "\n")
    path.with_suffix(".md").write_text(text)


def average(values: Sequence[float]) -> float:
    """The mean of at least one value."""
    return sum(values) / len(values)


def _values(cells: Sequence[Cell], name: str, floors: Floors | None) -> dict[int, list[float]]:
    """Values by observation, less the floors if given."""
    found: dict[int, list[float]] = {}
    for cell in cells:
        floor = floors.get((cell.model, cell.observation)) if floors else None
        less = 0.0 if floor is None else floor.scores[name]
        found.setdefault(cell.observation, []).append(cell.scores[name] - less)
    return found
