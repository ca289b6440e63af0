"""The power map as a table and as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from abi.studies.engine.tables import table

_COLOURS = LinearSegmentedColormap.from_list("seen", ["#0b5394", "#cfe2f3"])
_SHORT = {"discriminative_calibration": "discriminative"}


def markdown(values: dict[str, Any]) -> str:
    """One row a failure, one column a test; the smallest strength seen, and the seconds."""
    tests = values["tests"]
    rows = (
        [
            f"{_label(failure)} ({values['grids'][failure][-1]:g})",
            *(_cell(values["cells"][failure][test], ", ") for test in tests),
        ]
        for failure in values["failures"]
    )
    heads = ["failure (strongest tried)", *map(_label, tests)]
    return "\n".join([*table(heads, rows), ""])


def draw(values: dict[str, Any], path: Path) -> None:
    """The same as a picture: the darker, the weaker the failure that is seen; grey: not seen."""
    tests, failures = values["tests"], values["failures"]
    figure = Figure(figsize=(1.0 + 0.92 * len(tests), 1.5 + 0.52 * len(failures)))
    ax = figure.add_subplot()
    for row, failure in enumerate(failures):
        grid = values["grids"][failure]
        for column, test in enumerate(tests):
            cell = values["cells"][failure][test]
            seen = cell["strength"] is not None
            place = grid.index(cell["strength"]) / max(len(grid) - 1, 1) if seen else None
            colour = "0.93" if place is None else _COLOURS(place)
            ax.add_patch(_square(column, row, colour))
            dark = place is not None and place < 0.55
            text = _cell(cell, "\n")
            ink = "white" if dark else "0.15" if seen else "0.5"
            ax.text(
                column, row, text, ha="center", va="center", fontsize=8, linespacing=1.3, color=ink
            )
    ax.set(xlim=(-0.5, len(tests) - 0.5), ylim=(len(failures) - 0.5, -0.5))
    ax.set_xticks(range(len(tests)), [_label(t) for t in tests], rotation=35, ha="left", fontsize=9)
    rows = [f"{_label(f)} (to {values['grids'][f][-1]:g})" for f in failures]
    ax.set_yticks(range(len(failures)), rows, fontsize=9)
    ax.xaxis.tick_top()
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    measured = f"power {values['power']:g} at {values['num_pairs']} pairs"
    ax.set_xlabel(
        f"Smallest strength seen with {measured}, and CPU time of one test.\n"
        "Darker: a weaker failure is seen; grey: not even the strongest.",
        fontsize=9,
    )
    figure.savefig(path, dpi=150, bbox_inches="tight")


def _cell(cell: dict[str, Any], between: str) -> str:
    strength = "not seen" if cell["strength"] is None else f"{cell['strength']:g}"
    seconds = "" if cell["seconds"] is None else f"{between}{_seconds(cell['seconds'])}"
    return strength + seconds


def _seconds(value: float) -> str:
    return f"{1000 * value:.0f} ms" if value < 0.1 else f"{value:.2g} s"


def _label(name: str) -> str:
    return _SHORT.get(name, name).replace("_", " ")


def _square(column: int, row: int, colour: Any) -> Any:
    return Rectangle((column - 0.48, row - 0.46), 0.96, 0.92, facecolor=colour, edgecolor="none")
