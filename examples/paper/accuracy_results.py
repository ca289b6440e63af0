"""The cells of the accuracy study as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import torch

import abi
from abi.studies.engine.cells import Cell
from abi.studies.engine.tables import Floors, average, mean, ranked, score_table, table

SHOWN = {"w1": "W1", "normalised_w1": "nW1", "c2st": "C2ST", "c2st_rf": "C2ST (forest)"}

PARTICLES = "exact_particles"


ABOUT = {
    "what": "ABI and its rivals at equal simulator calls, against exact posteriors",
    "machine": "2 shared x86-64 cores, one thread",
    "versions": {"abi-toolkit": abi.__version__, "torch": torch.__version__},
}


def page(cells: Sequence[Cell]) -> str:
    """Markdown: a table a model and budget, a row a method."""
    floors = {(c.model, c.observation): c for c in cells if c.method == "floor"}
    parts = [
        "Mean over observations and seeds; +- is half of a 95% t interval over the observations' "
        "means. Excess: less the floor of the same observation. CPU seconds: of a fit, and of "
        "2,000 draws. SMC-ABC and WABC have a hundredth of the calls as particles, drawn from with "
        "replacement: exact_particles is the exact posterior by as many. That alone costs W1, and "
        "the forest knows particles that come twice. ABC-SS and rejection keep some draws of the "
        "prior, whose number is in accuracy.json. In brackets: observations, where fewer than of "
        "others.\n"
    ]
    places = sorted({(c.model, c.budget) for c in cells if c.method != "floor"})
    by_place = {p: [c for c in cells if (c.model, c.budget) == p] for p in places}
    parts.append(_overview(by_place, floors))
    parts.append(_paired(by_place))
    for (model, budget), here in by_place.items():
        parts.append(_table(model, budget, here, floors))
    return "\n".join(parts)


def _overview(by_place: dict[tuple[str, int], list[Cell]], floors: Floors) -> str:
    """Methods against models and budgets: the excess of W1, the least of a column bold.

    Methods read at fewer observations than others are not ranked; how many, is in brackets.
    """
    columns = [_column(here, floors) for here in by_place.values()]
    found = {method for column in columns for method in column}
    methods = sorted(found, key=lambda m: (-sum(m in c for c in columns), m))
    rows = ([m, *(c.get(m, "") for c in columns)] for m in methods)
    return _by_place("W1 excess", by_place, rows)


def _paired(by_place: dict[tuple[str, int], list[Cell]]) -> str:
    """W1 of ABI less that of each method at the same observations, a 95% t interval beside it."""
    lines: dict[str, dict[tuple[str, int], str]] = {}
    for place, cells in by_place.items():
        good = [c for c in cells if not c.error]
        ours = [c for c in good if c.method == "abi"]
        for method in {c.method for c in good} - {"abi", PARTICLES}:
            theirs = by_observation([c for c in good if c.method == method])
            if {c.observation for c in ours} == {observation for _, observation in theirs}:
                lines.setdefault(method, {})[place] = f"{mean(ours, 'w1', theirs):.2f}"
    methods = sorted(lines, key=lambda m: (-len(lines[m]), m))
    rows = ([m, *(lines[m].get(place, "") for place in by_place)] for m in methods)
    return _by_place("W1 of ABI less that of", by_place, rows)


def _by_place(what: str, places: Iterable[tuple[str, int]], rows: Iterable[list[str]]) -> str:
    heads = (f"{model} {budget // 1000}k" for model, budget in places)
    return "\n".join([*table([what, *heads], rows), ""])


def by_observation(cells: list[Cell]) -> Floors:
    """The mean scores of each observation, over seeds, in the form of its floor."""
    found: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.model, cell.observation), []).append(cell)
    return {
        at: replace(mine[0], scores={s: average([c.scores[s] for c in mine]) for s in SHOWN})
        for at, mine in found.items()
    }


def _column(cells: list[Cell], floors: Floors) -> dict[str, str]:
    """The entries of one model and budget by their method."""
    entries = {c.method: "failed" for c in cells}
    good = [c for c in cells if not c.error]
    seen = {m: len({c.observation for c in good if c.method == m}) for m in entries}
    best = len(entries.keys() - {PARTICLES}) > 1  # the least of one is no news
    for method in ranked(good, "w1", floors):
        excess = mean([c for c in good if c.method == method], "w1", floors).value
        value = f"{round(excess, 2) + 0.0:.2f}"  # no -0.00
        whole = seen[method] == max(seen.values()) and method != PARTICLES
        entries[method] = (
            (f"**{value}**" if best else value) if whole else f"{value} ({seen[method]})"
        )
        best = best and not whole
    if PARTICLES in entries:
        entries[PARTICLES] = entries[PARTICLES].split(" ")[0]
    return entries


def _table(model: str, budget: int, cells: list[Cell], floors: Floors) -> str:
    lines = [f"## {model}, {budget:,} calls\n", *score_table(cells, SHOWN, floors, "w1")]
    errors = sorted({f"- {c.method}: {c.error}" for c in cells if c.error})
    return "\n".join([*lines, *([""] if errors else []), *errors]) + "\n"
