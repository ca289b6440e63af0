"""C2ST of each rival beside ours, at the observations that both were fitted at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...engine.cells import Cell
from ...engine.tables import average, mean_of, table
from .methods import METHODS, OURS

Scores = Mapping[str, Mapping[int, float]]
"""task -> observation -> C2ST."""


def against(cells: Sequence[Cell], tasks: Sequence[str]) -> list[str]:
    """The table of one budget; none where there is no rival, or nothing of ours.

    The interval of a difference is over the tasks' means: observations of a task are not
    independent of what makes the task hard.
    """
    ours = _scores(cells, OURS)
    columns = {
        name: column
        for name in METHODS
        if name != OURS and (column := _column(ours, _scores(cells, name), tasks))
    }
    if not columns:
        return []
    rows = zip(*columns.values(), strict=True)
    heads = [*tasks, "mean over tasks", f"{OURS} less it", f"{OURS} is nearer"]
    entries = [[head, *row] for head, row in zip(heads, rows, strict=True)]
    title = f"C2ST of rivals, and of {OURS} at the same observations; how many, in brackets."
    return ["", title, "", *table(["task", *columns], entries)]


def _column(ours: Scores, theirs: Scores, tasks: Sequence[str]) -> list[str]:
    """A rival's entries, top to bottom; none where no observation is shared."""
    pairs = {task: _shared(ours.get(task, {}), theirs.get(task, {})) for task in tasks}
    means = {
        task: (average([a for a, _ in both]), average([b for _, b in both]))
        for task, both in pairs.items()
        if both
    }
    if not means:
        return []
    entries = [
        _entry(*means[task], f" ({len(pairs[task])})") if task in means else "" for task in tasks
    ]
    some = f" ({len(means)} tasks)" if len(means) < len(tasks) else ""
    mine, others = zip(*means.values(), strict=True)
    nearer = [a < b for both in pairs.values() for a, b in both]
    return [
        *entries,
        _entry(average(mine), average(others), some),
        str(mean_of([a - b for a, b in means.values()])),
        f"{sum(nearer)} of {len(nearer)}",
    ]


def _scores(cells: Sequence[Cell], method: str) -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for cell in cells:
        if cell.method == method:
            found.setdefault(cell.model, {})[cell.observation] = cell.scores["c2st"]
    return found


def _shared(ours: Mapping[int, float], theirs: Mapping[int, float]) -> list[tuple[float, float]]:
    return [(ours[k], theirs[k]) for k in sorted(ours.keys() & theirs.keys())]


def _entry(mine: float, others: float, count: str) -> str:
    return f"{others:.3f}, {OURS} {mine:.3f}{count}"
