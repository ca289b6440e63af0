"""The pictures: Figures 2 and 5 of the paper, a row a task; Figures 1, 3, 4 and 6."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import pstdev
from typing import TYPE_CHECKING, Any

import numpy as np

from validation.results.plotting import plot_pairs, plot_pp

from ...engine.pictures import panels_of
from .gains import SHOWN, GainStudy
from .judges import FLOW, HPD, LOCAL, ORACLE
from .one_class import STATISTICS, bayes_statistics
from .study import LocalRate, LocalStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS: dict[str, dict[str, Any]] = {
    ORACLE: {"color": "0.35", "marker": "D"},
    LOCAL: {"color": "tab:blue", "marker": "o"},
    FLOW: {"color": "tab:blue", "marker": "s", "linestyle": "--"},
    HPD: {"color": "tab:orange", "marker": "^"},
    "L-C2ST, published null": {"color": "tab:cyan", "marker": "v", "linestyle": ":"},
}


def draw_studies(studies: list[LocalStudy], path: Path) -> None:
    """Statistic and power over N_train, power and type I error over N_cal."""
    figure, grid = panels_of(17, 3.4 * len(studies) + 0.7, len(studies), 4)
    for study, row in zip(studies, grid, strict=True):
        most, train = study.part.num_cals[-1], study.part.num_train
        _statistics(study, row[0])
        _rates(study, row[1], study.over_train, lambda rate: rate.num_train)
        _rates(study, row[2], study.over_cal, lambda rate: rate.num_cal)
        _rates(study, row[3], study.type_one, lambda rate: rate.num_cal)
        row[0].set(ylabel=f"{study.part.label}\nmean statistic")
        row[1].set(ylabel="power", title=f"N_cal = {most:,}", xlabel="N_train")
        row[2].set(ylabel="power", title=f"N_train = {train:,}", xlabel="N_cal")
        row[3].set(ylabel="type I error", title="q plays the truth", xlabel="N_cal")
    grid[0, 1].legend(fontsize=7, frameon=False)
    figure.savefig(path, dpi=110)


def draw_agreements(agreements: Sequence[Mapping[str, Any]], path: Path) -> None:
    """The local statistics over the oracle's, a dot an observation, a row a task."""
    trains = sorted({row["num_train"] for one in agreements for row in one["correlations"]})
    size = 3.3 * len(trains), 3.1 * len(agreements) + 0.4
    figure, grid = panels_of(*size, len(agreements), len(trains))
    for one, panels in zip(agreements, grid, strict=True):
        for num_train, ax in zip(trains, panels, strict=True):
            rows = [row for row in one["correlations"] if row["num_train"] == num_train]
            _agreement(rows, ax)
            ax.set_title(f"{one['label'].split(',')[-1]}, N_train = {num_train:,}", fontsize=9)
        panels[0].set_ylabel("local statistic")
    for ax in grid[-1]:
        ax.set_xlabel("oracle's statistic")
    figure.savefig(path, dpi=110)


def _agreement(rows: Sequence[Mapping[str, Any]], ax: Axes) -> None:
    """Both local tests in one panel, with the diagonal."""
    from matplotlib.ticker import NullFormatter

    values = [value for row in rows for column in row["statistics"] for value in column]
    if not values:
        return
    ends = [min(values), max(values)]
    ax.plot(ends, ends, color="0.6", linewidth=1)
    for row, (colour, marker) in zip(rows, (("tab:blue", "o"), ("tab:orange", "s")), strict=False):
        label = f"{row['test']}, r = {row['r']:.2f}"
        ax.plot(*row["statistics"], marker, color=colour, markersize=3, label=label)
    if ends[1] > 10 * ends[0]:
        ax.set(xscale="log", yscale="log")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_minor_formatter(NullFormatter())  # they would crowd the decades
    ax.legend(fontsize=7, frameon=False)


def draw_one_class(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """The statistics of the best classifier, and power with quadratic discriminants."""
    figure, ((left, right),) = panels_of(10, 4, 1, 2)
    at = [row["scale"] for row in rows]
    dense = np.linspace(min(at), max(at), 200)
    best = np.array([bayes_statistics(scale) for scale in dense])
    for number, name in enumerate(STATISTICS):
        looks = {"color": f"C{number // 2}", "linestyle": "-" if number % 2 else "--"}
        chance = 0.5 if number < 2 else 0.0
        for side in (dense < 1.0, dense > 1.0):  # at one the accuracy of one class jumps
            label = name if side[0] else None
            left.plot(dense[side], best[side, number] - chance, label=label, **looks)
        found = [(row["power"][name]["rate"], row["power"][name]["interval"]) for row in rows]
        _errorbars(right, at, found, label=name, **looks)
    left.axhline(0.0, color="0.6", linewidth=0.7)
    left.set(xlabel="s", ylabel="statistic less its value at p = q", title="best classifier")
    right.axhline(0.05, color="0.4", linestyle=":", linewidth=1)
    right.set(xlabel="s", ylabel="power", ylim=(-0.03, 1.03), title="quadratic discriminants")
    left.legend(fontsize="small", frameon=False)
    figure.savefig(path, dpi=110)


def draw_gains(gains: GainStudy, path: Path) -> None:
    """The statistic over the gain, and the PP-plot at the gain of the paper's Figure 4."""
    rows = gains.values["gains"]
    at = [row["gain"] for row in rows]
    figure, ((left, right),) = panels_of(10, 4, 1, 2)
    left.fill_between(
        at, [row["null_low"] for row in rows], [row["null_high"] for row in rows],
        color="0.85", label="95% under the null",
    )  # fmt: skip
    left.plot(at, [row["null_median"] for row in rows], color="0.5", linewidth=1, label="median")
    left.plot(at, [row["statistic"] for row in rows], "o-", color="tab:blue", label=FLOW)
    left.set(xlabel="gain g_o (dB)", ylabel="statistic", ylim=(0.0, None))
    left.legend(fontsize="small", frameon=False)
    plot_pp(gains.at_shown, right)
    right.set_title(f"g_o = {SHOWN:g}: p = {gains.at_shown.p_value:.2g}")
    figure.savefig(path, dpi=110)


def draw_gain_pairs(gains: GainStudy, path: Path) -> None:
    """Draws of q at the gain of Figure 4, coloured by the classifier, with the true parameters."""
    names = gains.part.task.parameter_names
    figure = plot_pairs(gains.at_shown, names=names)
    truth = gains.values["theta_o"]
    panels = figure.axes[: len(truth) ** 2]
    for number, ax in enumerate(panels):
        i, j = divmod(number, len(truth))
        if i >= j:
            ax.axvline(truth[j], color="black", linestyle="--", linewidth=0.8)
        if i > j:
            ax.axhline(truth[i], color="black", linestyle="--", linewidth=0.8)
    figure.suptitle(f"draws of q at g_o = {SHOWN:g} dB; dashed: the true parameters")
    figure.savefig(path, dpi=110)


def _statistics(study: LocalStudy, ax: Axes) -> None:
    """Mean statistic over N_train; HPD's is on another scale and left out, as in the paper."""
    for method in study.methods:
        rates = study.over_train(method)
        if method != HPD and rates:
            at = [rate.num_train for rate in rates]
            spread = [pstdev(rate.statistics) for rate in rates]
            values = [rate.statistic for rate in rates]
            ax.errorbar(at, values, spread, label=method, markersize=4, elinewidth=0.7,
                        **_LOOKS[method])  # fmt: skip
    ax.set(xscale="log", xlabel="N_train", title=f"N_cal = {study.part.num_cals[-1]:,}")


def _rates(
    study: LocalStudy, ax: Axes, curve: Callable[[str], list[LocalRate]],
    place: Callable[[LocalRate], int],
) -> None:  # fmt: skip
    """Rejections with 95% intervals, the level as a dotted line."""
    for k, method in enumerate(study.methods):
        rates = curve(method)
        # Tests share their places: a little apart, intervals can be told from each other.
        at = [place(rate) * 1.03 ** (k - 2) for rate in rates]
        found = [(rate.rate, rate.interval) for rate in rates]
        if rates:
            _errorbars(ax, at, found, label=method, markersize=4, **_LOOKS[method])
    ax.axhline(0.05, color="0.4", linestyle=":", linewidth=1)
    ax.set(xscale="log", ylim=(-0.03, 1.03))


def _errorbars(
    ax: Axes, at: Sequence[float], found: Sequence[tuple[float, Sequence[float]]], **looks: Any
) -> None:
    """Rates with their intervals."""
    values = [rate for rate, _ in found]
    ends = [[abs(interval[side] - rate) for rate, interval in found] for side in (0, 1)]
    ax.errorbar(at, values, ends, elinewidth=0.7, **looks)
