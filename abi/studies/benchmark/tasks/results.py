"""The study beside what others have published, beside its rivals, and its own scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from simulators.files.versions import installed_versions

from ....files.versions import versions
from ...engine.cells import Cell
from ...engine.study import FLOOR
from ...engine.tables import Floors, average, mean, table, used
from .against import against
from .methods import METHODS, OURS, WHAT
from .study import MANY_CALLS, NUM_OBSERVATIONS, OBSERVATIONS_SEED


class Known(NamedTuple):
    """C2ST in print, and what the defaults are to reach; None where nothing is."""

    best_2021: float
    since: float | None
    goal: float | None


KNOWN: Mapping[str, Mapping[int, Known]] = {
    task: dict(zip((1_000, 10_000, MANY_CALLS), map(Known._make, figures), strict=False))
    for task, *figures in (
        ("two_moons", (0.643, 0.570, 0.56), (0.554, 0.513, 0.510), (0.530, 0.502, None)),
        ("slcp", (0.921, 0.876, 0.84), (0.713, 0.646, 0.59), (0.578, 0.534, None)),
        ("slcp_distractors", (0.978, None, 0.93), (0.931, None, 0.75)),
        ("gaussian_mixture", (0.697, 0.547, 0.545), (0.583, 0.511, 0.515)),
        ("gaussian_linear", (0.628, 0.538, 0.54), (0.536, 0.505, 0.512)),
        ("gaussian_linear_uniform", (0.631, None, 0.57), (0.527, None, 0.515)),
        ("bernoulli_glm", (0.634, None, 0.62), (0.553, None, 0.54)),
        ("bernoulli_glm_raw", (0.870, None, 0.75), (0.658, None, 0.57)),
        ("sir", (0.637, 0.525, 0.525), (0.561, 0.513, 0.512), (0.547, 0.505, None)),
        ("lotka_volterra", (0.909, 0.619, 0.70), (0.738, 0.579, 0.56)),
    )
}
"""By task and calls. Best of 2021: the best of each task in Lueckmann et al. (2021). Since: the
lowest in print after it, by NPSE, TSNPE, Simformer (also where it is told the task's graph), GenSBI
or TSNPE-PFN."""
_OWN = {
    "C2ST": "c2st", "W1": "normalised_w1", "largest mean bias": "largest_mean_bias",
    "least sd ratio": "smallest_sd_ratio", "largest sd ratio": "largest_sd_ratio",
}  # fmt: skip


def summary(cells: Sequence[Cell], num_draws: int, seed: int) -> dict[str, Any]:
    """What was found and how, in JSON's types."""
    return {
        "title": "The ten tasks of the public benchmark",
        "num_draws": num_draws,
        "observations_seed": OBSERVATIONS_SEED,
        "seed": seed,
        "versions": versions() | installed_versions("sbi", "scikit-learn"),
        "methods": {name: words for name, words in WHAT.items() if name in methods_of(cells)},
        "cells": [asdict(cell) for cell in sorted(cells, key=lambda cell: cell.key)],
    }


def markdown(values: Mapping[str, Any]) -> str:
    """The page."""
    cells = [Cell(**cell) for cell in values["cells"]]
    good = [c for c in cells if not c.error]
    floors = {(c.model, c.observation): c for c in good if c.method == FLOOR}
    lines = [f"# {values['title']}", "", _setting(values), ""]
    lines += [f"- {name}: {words}." for name, words in values["methods"].items()] + [""]
    for calls in sorted({c.budget for c in good if c.method != FLOOR}):
        here = [c for c in good if c.budget == calls and c.method != FLOOR]
        tasks = [task for task in KNOWN if _some(here, task, OURS)]
        lines += [f"## {calls:,} calls", ""]
        lines += [*_beside(here, tasks), *against(here, tasks), ""] if tasks else []
        lines += [*_own(here, floors), ""]
    lines += [f"- {c.line()}" for c in cells if c.error]
    return "\n".join(lines)


def methods_of(cells: Sequence[Cell]) -> list[str]:
    """The methods of the cells, ours first, the floor last."""
    return [name for name in (*METHODS, FLOOR) if any(cell.method == name for cell in cells)]


def _setting(values: Mapping[str, Any]) -> str:
    made = ", ".join(f"{name} {version}" for name, version in values["versions"].items())
    machine = f"Machine: {values['machine']}. " if "machine" in values else ""
    return (
        f"C2ST as sbibm defines it (its network, z-scored, five folds), {values['num_draws']:,} "
        "draws a side; 0.5 is perfect. Means over the first of "
        f"{NUM_OBSERVATIONS} observations drawn from prior and simulator (seed "
        f"{values['observations_seed']}), +- half of a 95% t interval over them; how many, in "
        "brackets. In print are means over ten other observations. W1 (2,000 draws) and largest "
        "bias of a mean: in exact sds; sd ratios: the extremes over parameters. CPU seconds of the "
        f"fit, one thread; seed of the fits {values['seed']}. {machine}{made}."
    )


def _beside(cells: Sequence[Cell], tasks: Sequence[str]) -> list[str]:
    """Our C2ST by task beside what is in print, and means over the tasks."""
    known = [KNOWN[task].get(cells[0].budget, Known(0.0, None, None)) for task in tasks]
    ours = [_some(cells, task, OURS) for task in tasks]
    means = [mean(mine, "c2st") for mine in ours]
    rows = []
    for task, printed, own, mine in zip(tasks, known, means, ours, strict=True):
        figures = [f"{value:.3f}" if value else "" for value in printed]
        rows.append([task, *figures, f"{own:.3f} ({len(mine)})"])
    best, goals = average([k.best_2021 for k in known]), [k.goal for k in known if k.goal]
    goal = f"{average(goals):.3f}" if goals else ""
    over_tasks = f"{average([own.value for own in means]):.3f} ({len(tasks)} tasks)"
    rows.append(["mean over tasks", f"{best:.3f}", "", goal, over_tasks])
    return table(["C2ST", "best of 2021", "lowest since", "goal", OURS], rows)


def _own(cells: Sequence[Cell], floors: Floors) -> list[str]:
    """Our own scores by task and method, W1 with its floor."""
    rows = []
    for task in KNOWN:
        for method in methods_of(cells):
            if mine := _some(cells, task, method):
                c2st, *scores = [f"{mean(mine, name).value:.2f}" for name in _OWN.values()]
                below = used(mine, floors)
                floor = f"{mean(below, 'normalised_w1').value:.2f}" if below else ""
                seconds = f"{average([c.fit_seconds for c in mine]):.0f}"
                rows.append([task, method, len(mine), c2st, scores[0], floor, *scores[1:], seconds])
    c2st, w1, *others = _OWN
    return table(["task", "method", "cells", c2st, w1, "its floor", *others, "CPU s"], rows)


def _some(cells: Sequence[Cell], task: str, method: str) -> list[Cell]:
    return [c for c in cells if (c.model, c.method) == (task, method)]
