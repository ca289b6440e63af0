"""Tolerance, distance and marginals of ABI as its rounds go on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ....pictures.density import curve, view
from ....pictures.style import legend_below
from ...engine.pictures import panels_of
from ..experiment import Experiment
from .style import EXACT, STYLES, bare, ends_of, grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TOLERANCE = "tolerance, in units of its network"
_DISTANCE = "W1 to exact, sds; 500 draws each"


def draw_rounds(
    experiment: Experiment, rounds: Mapping[str, Any], exact: Tensor | None, path: Path
) -> Path:
    """Tolerance and distance after each round, and the marginals of ABI as they move."""
    names = experiment.problem.task.parameter_names
    told = _told(rounds, exact)
    count = len(told) + min(len(names), 5)
    rows, columns = grid(count)
    figure, table = panels_of(2.8 * columns, 2.7 * rows + 0.8, rows, columns, count)
    panels = table.ravel()
    for ax, (label, by_method) in zip(panels, told.items(), strict=False):
        for method, values in by_method.items():
            colour, line = STYLES[method]
            numbers = range(1, len(values) + 1)
            ax.plot(numbers, values, "o", linestyle=line, color=colour, label=method)
        if label == _DISTANCE:
            _floor(ax, experiment, next(iter(rounds.values()))[0].observation)
        ax.set(xlabel="round", ylabel=label)
        drawn = [value for line in ax.lines for value in line.get_ydata()]
        if max(drawn) > 10 * min(drawn):
            ax.set_yscale("log")  # within a decade its labels are crowded
        else:
            ax.set_ylim(bottom=0.0)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)
    if told:
        handles, labels = panels[len(told) - 1].get_legend_handles_labels()
        legend_below(figure, handles, labels, fontsize=8, loc="outside lower left")
    method, (_, draws) = max(rounds.items(), key=lambda item: len(item[1][0].details["rounds"]))
    _by_round(experiment, draws, exact, panels[len(told) : count])
    dashed = ", the exact posterior dashed" if exact is not None else ""
    figure.suptitle(f"After each round; densities: {method}, light to dark{dashed}", fontsize=10)
    figure.savefig(path, dpi=110)
    return path


def _told(rounds: Mapping[str, Any], exact: Tensor | None) -> dict[str, dict[str, list[float]]]:
    """What stands before the marginals: a label, and values by round of each method that has any.

    A tolerance says something only where pairs are beyond it.
    """
    records = {method: cell.details["rounds"] for method, (cell, _) in rounds.items()}
    told = {
        _TOLERANCE: {
            method: [record["tolerance"] for record in mine]
            for method, mine in records.items()
            if any(record["accepted"] < record["pairs"] for record in mine)
        }
    }
    if exact is not None:
        told[_DISTANCE] = {m: cell.details["w1_by_round"] for m, (cell, _) in rounds.items()}
    return {label: by_method for label, by_method in told.items() if by_method}


def _floor(ax: Axes, experiment: Experiment, observation: int) -> None:
    """What the distance is between two samples of the exact posterior."""
    floor = experiment.floor_by_round(observation)
    if floor is not None:
        ax.axhline(floor, linestyle="--", color=EXACT, label="two exact samples")


def _by_round(
    experiment: Experiment, draws: Mapping[str, Tensor], exact: Tensor | None, panels: Any
) -> None:
    from matplotlib import colormaps

    names = experiment.problem.task.parameter_names
    ends = ends_of(experiment)
    stages = [draws[key] for key in sorted(draws) if key.startswith("round_")]
    for j, ax in enumerate(panels):
        last = (stages[-1] if exact is None else exact)[:, j].double().numpy()
        low, high = view([last], ends[j], tail=0.005)
        span = max(low - 0.8 * (high - low), ends[j][0]), min(high + 0.8 * (high - low), ends[j][1])
        for t, stage in enumerate(stages, start=1):
            shade = colormaps["Oranges"](0.25 + 0.65 * t / len(stages))
            ax.plot(*curve(stage[:, j].double().numpy(), span, ends[j]), color=shade, linewidth=1.6)
        if exact is not None:
            ax.plot(*curve(last, span, ends[j]), "--", color=EXACT, linewidth=1.4)
        ax.set_xlabel(names[j], parse_math=False)
        ax.set_xlim(*span)
        ax.set_ylim(bottom=0.0)
        bare(ax)
