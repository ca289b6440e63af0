"""What an experiment says: JSON for programs, tables as Markdown, the paper's numbers beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ... import metrics
from ..engine.cells import Cell
from ..engine.study import FLOOR
from ..engine.tables import Floors, average, mean, ranked, score_entries, score_table, table, used
from .experiment import Experiment

_EXACT = {"w1": "W1", "normalised_w1": "nW1", "c2st": "C2ST", "c2st_rf": "C2ST (forest)"}
_FURTHER = {"w2": "W2", "sliced": "sliced W1", "msw": "MSW", "mmd_squared": "MMD²"}
_TRUTH = {
    "truth_inside": "truth in 90%", "mean_error": "mean error", "spread": "spread",
    "predicted_inside": "x_o in 90%",
}  # fmt: skip
_PRINTED = {"w1": "W1", "mmd_squared": "MMD² (MMD)", "correlation_bias": "correlations"}
_CAPTION = """\
nW1: parameters in exact sds. Excess: less the floor, the same metric between two independent
samples of the exact posterior. C2ST by a network and by a forest, 0.5 being chance. +- is half of a
95% interval over observations, or over seeds where there is one observation. Calls include those
that failed; CPU seconds are of a fit and of its draws. SMC-ABC, WABC, ABC-SS and rejection have few
distinct draws, drawn from with replacement; the floor has none twice.
"""
_CAPTION_TRUTH = """\
No exact posterior is known. Truth in 90%: share of the true parameters inside the central 90% of
their draws. Mean error: the largest distance of a mean to the truth, and spread: the mean sd, both
in prior sds. x_o in 90%: share of the values of x_o inside the central 90% of the predicted ones.
"""


def summary(experiment: Experiment, cells: Sequence[Cell], quick: bool) -> dict[str, Any]:
    """Everything as JSON has it."""
    problem = experiment.problem
    floors = _floors(cells)
    return {
        "format": "abi_reproduce",
        "version": 1,
        "name": problem.name,
        "title": problem.title,
        "source": problem.source,
        "note": problem.note,
        "quick": quick,
        "parameters": list(problem.task.parameter_names),
        "context": dict(experiment.folder.context),
        "cpu_seconds": round(sum(c.fit_seconds + c.draw_seconds for c in cells), 1),
        "rows": [_row_values(*group, floors) for group in _by_method(cells)],
        "published": {name: dict(values) for name, values in problem.published.items()},
        "published_posterior": {k: list(v) for k, v in problem.published_posterior.items()},
        "compatible": dict(problem.compatible),
        "settings": {c.method: experiment.settings(c) for c in cells if c.method != FLOOR},
        "cells": [asdict(cell) for cell in cells],
    }


def markdown(experiment: Experiment, cells: Sequence[Cell], quick: bool) -> str:
    """The tables."""
    problem = experiment.problem
    floors = _floors(cells)
    source = problem.source[0].upper() + problem.source[1:]
    parts = [
        f"# {problem.title}\n",
        f"{source}. {_extent(experiment, cells, quick)} {problem.note}\n",
    ]
    for budget in sorted({c.budget for c in cells if c.method != FLOOR}):
        here = [c for c in cells if c.budget == budget and c.method != FLOOR]
        parts.append(f"## {budget:,} calls\n")
        parts += _main_table(problem.has_exact, here, floors)
        if problem.has_exact:
            parts += _further_table(here, floors)
            parts += _moments_table(problem.task.parameter_names, here, floors)
        if problem.published:
            parts += _printed_table(problem.published, problem.task.theta_dim, here, floors)
    if problem.has_exact and floors:
        parts += _posterior_table(experiment, list(floors.values()))
    if problem.compatible:
        parts += _compatibility(problem.compatible, cells)
    return "\n".join(parts)


def _extent(experiment: Experiment, cells: Sequence[Cell], quick: bool) -> str:
    """How much of the experiment stands here: budget, observations, seeds, and what did not run."""
    run = [c for c in cells if c.method != FLOOR]
    counts = (len({c.observation for c in run}), len({c.seed for c in run}))
    ran = {c.method for c in run}
    words = ["Quick setting" if quick else "Full budget"]
    for count, name in zip(counts, ("observation", "seed"), strict=True):
        words.append(f"{count} {name}" + "s" * (count != 1))
    left = [method for method in experiment.methods if method not in ran]
    return ", ".join(words) + (f"; not run: {', '.join(left)}." if left else ".")


def _main_table(has_exact: bool, cells: Sequence[Cell], floors: Floors) -> list[str]:
    if has_exact:
        return [*score_table(cells, _EXACT, floors, "normalised_w1"), "", _CAPTION]
    return [*score_table(cells, _TRUTH, floors, "mean_error"), "", _CAPTION_TRUTH]


def _further_table(cells: Sequence[Cell], floors: Floors) -> list[str]:
    """The other distances, in the order of the first table."""
    groups = _in_order(cells, floors)
    rows = [[method, *score_entries(mine, _FURTHER, None)] for method, mine in groups.items()]
    return [*table(["method", *_FURTHER.values()], rows), ""]


def _in_order(
    cells: Sequence[Cell], floors: Floors, by: str = "normalised_w1"
) -> dict[str, list[Cell]]:
    """The floors, then the cells that succeeded by method, the least of a score first."""
    good = [c for c in cells if not c.error]
    groups = {"floor": used(cells, floors)} if floors else {}
    return groups | {m: [c for c in good if c.method == m] for m in ranked(good, by, floors)}


def _moments_table(names: Sequence[str], cells: Sequence[Cell], floors: Floors) -> list[str]:
    """Errors of means, in exact sds, and ratios of sds, a column a parameter."""
    heads = ["method", *(f"{name}: mean off by, sd ratio" for name in names)]
    rows = []
    for method, mine in _in_order(cells, floors).items():
        bias = [mean(mine, f"mean_bias_{j}").value for j in range(1, len(names) + 1)]
        ratio = [mean(mine, f"sd_ratio_{j}").value for j in range(1, len(names) + 1)]
        rows.append([method, *(f"{b:+.2f}, {r:.2f}" for b, r in zip(bias, ratio, strict=True))])
    return [*table(heads, rows), ""]


def _printed_table(
    published: Mapping[str, Mapping[str, float]], theta_dim: int, cells: Sequence[Cell],
    floors: Floors,
) -> list[str]:  # fmt: skip
    """Ours, and in brackets the paper's."""
    names = ["w1", "mmd_squared", *(f"mean_difference_{j}" for j in range(1, theta_dim + 1))]
    names.append("correlation_bias")
    labels = [_PRINTED.get(name, f"mean {name.rsplit('_', 1)[-1]}") for name in names]
    groups = _in_order(cells, floors, "w1")
    rows = []
    for method, mine in groups.items():
        theirs = published.get(method, {})
        entries = [
            f"{mean(mine, name).value:.3f}" + (f" ({theirs[name]:g})" if name in theirs else "")
            for name in names
        ]
        rows.append([method, *entries])
    lines = ["Ours, and in brackets what the paper prints (its means and correlations by absolute "
             "differences, in the units of theta; its ABI has POTNet):\n",
             *table(["method", *labels], rows)]  # fmt: skip
    missing = [name for name in published if name not in groups]
    if missing:
        lines.append(f"\nIn the paper and not run here: {', '.join(missing)}.")
    return [*lines, ""]


def _posterior_table(experiment: Experiment, floors: Sequence[Cell]) -> list[str]:
    """The exact posterior of the paper's own observation beside what is printed of it."""
    here = [c for c in floors if c.observation == 0]
    exact = experiment.exact(0)
    if not here or exact is None:
        return []
    names = experiment.problem.task.parameter_names
    values = {"mean": exact.mean(dim=0), "sd": exact.std(dim=0), "variance": exact.var(dim=0)}
    error = values["sd"] / len(exact) ** 0.5
    rows = [
        ["mean", *(f"{float(v):.4g}" for v in values["mean"])],
        ["its standard error", *(f"{float(v):.2g}" for v in error)],
        ["sd", *(f"{float(v):.3g}" for v in values["sd"])],
    ]
    for name, printed in experiment.problem.published_posterior.items():
        if name not in ("mean", "sd"):
            rows.append([name, *(f"{float(v):.3g}" for v in values[name])])
        rows.append([f"{name}, printed", *(f"{v:g}" for v in printed)])
    width = metrics.median_bandwidth(exact)
    return [
        f"## The exact posterior, by {len(exact):,} draws\n",
        *table(["", *names], rows),
        f"\nMMD² is unbiased; its kernel's bandwidth is the median distance of these draws, "
        f"{width:.3g} in the units of theta.\n",
    ]


def _compatibility(compatible: Mapping[str, str], cells: Sequence[Cell]) -> list[str]:
    """Table 1, tested: does a method run with a prior that has no density?"""
    methods = dict.fromkeys(c.method for c in cells if c.method != FLOOR)
    rows = (
        [method, compatible.get(method, ""), verdict([c for c in cells if c.method == method])]
        for method in methods
    )
    lines = table(["method", "Table 1 says", "here"], rows)
    return ["## Without a prior density\n", *lines, ""]


def verdict(cells: Sequence[Cell]) -> str:
    """What a method did: ran, refused, or broke."""
    errors = [c for c in cells if c.error]
    if not errors:
        return "runs"
    first = errors[0]
    reason = first.error.split(": ", 1)[1].split(". ")[0]
    return f"refuses: {reason}" if first.refused else f"breaks: {first.error}"


def _row_values(method: str, budget: int, cells: Sequence[Cell], floors: Floors) -> dict[str, Any]:
    """One line of the tables for programs: every score with interval, floor and excess."""
    good = [c for c in cells if not c.error]
    scores = {}
    for name in good[0].scores if good else ():
        value, half = mean(good, name)
        scores[name] = {"value": value, "half_interval": half}
        if floors and method != FLOOR:
            scores[name]["floor"] = mean(used(good, floors), name).value
    return {
        "method": method,
        "budget": budget,
        "cells": len(good),
        "verdict": verdict(cells),
        "scores": scores,
        "calls": max((c.calls for c in good), default=0),
        "fit_seconds": average([c.fit_seconds for c in good]) if good else None,
        "draw_seconds": average([c.draw_seconds for c in good]) if good else None,
    }


def _by_method(cells: Sequence[Cell]) -> list[tuple[str, int, list[Cell]]]:
    found: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.method, cell.budget), []).append(cell)
    return [(method, budget, mine) for (method, budget), mine in found.items()]


def _floors(cells: Sequence[Cell]) -> dict[tuple[str, int], Cell]:
    return {(c.model, c.observation): c for c in cells if c.method == FLOOR and not c.error}
