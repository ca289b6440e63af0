"""The picture of an experiment: a panel a part, curves over strengths or one dot a test."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from ..engine.pictures import panels_of
from .orderings import interval
from .results import Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from validation import PowerStudy

_COLUMNS = 4


def draw(results: list[Result], title: str, path: Path) -> None:
    """Write the picture; hollow diamonds are the paper's values."""
    columns = min(_COLUMNS, len(results))
    rows = math.ceil(len(results) / columns)
    listed = [len(study.rates()) for _, study in results if not _is_curve(study)]
    height = min(max(4.2, 1.6 + 0.19 * max(listed, default=0)), 8.0)
    figure, panels = panels_of(5.2 * columns, height * rows, rows, columns, len(results))
    tests = list(dict.fromkeys(name for _, study in results for name in study.methods))
    for (part, study), ax in zip(results, panels.flat, strict=False):
        if _is_curve(study):
            study.plot(ax, order=tests)
        else:
            _dots((part, study), ax)
        ax.set_title(part.label, fontsize=10)
    figure.suptitle(title)
    figure.savefig(path, dpi=110)


def _is_curve(study: PowerStudy) -> bool:
    return len(study.strengths) > 2


def _dots(result: Result, ax: Axes) -> None:
    """One line a test: our rate and interval, and the paper's; colours tell the strengths."""
    part, study = result
    lowest = min(study.strengths)
    for row, method in enumerate(study.methods):
        for strength in study.strengths:
            rate = study.rate(method, strength)
            if rate.rate is None:
                continue
            colour = "0.55" if strength == lowest and len(study.strengths) > 1 else "tab:blue"
            low, high = interval(rate)
            ax.plot([low, high], [row, row], color=colour, linewidth=1.4)
            ax.plot([rate.rate], [row], "o", color=colour, markersize=5)
            found = part.published.get((method, strength))
            if found is not None:
                ax.plot([found.mean], [row - 0.28], "D", color=colour, fillstyle="none", ms=5)
    ax.axvline(0.05, color="0.4", linestyle=":", linewidth=1)
    ax.set_yticks(range(len(study.methods)), study.methods, fontsize=8)
    marks = [f"grey: strength {lowest:g}"] if len(study.strengths) > 1 else []
    marks += ["hollow: the paper's"] if part.published else []
    label = f"rejected ({'; '.join(marks)})" if marks else "rejected"
    ax.set(xlim=(-0.03, 1.03), ylim=(len(study.methods) - 0.4, -0.6), xlabel=label)
