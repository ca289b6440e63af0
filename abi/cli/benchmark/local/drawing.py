"""The pictures: Figure 2 of the paper, a row a task, and Figures 3 and 4 for Jansen-Rit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import pstdev
from typing import TYPE_CHECKING, Any

from validation.plotting import plot_pairs, plot_pp

from .gains import SHOWN, GainStudy
from .study import LocalRate, LocalStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LOOKS: dict[str, dict[str, Any]] = {
    "oracle C2ST": {"color": "0.35", "marker": "D"},
    "L-C2ST": {"color": "tab:blue", "marker": "o"},
    "L-C2ST-NF": {"color": "tab:blue", "marker": "s", "linestyle": "--"},
    "local HPD": {"color": "tab:orange", "marker": "^"},
    "L-C2ST, published null": {"color": "tab:cyan", "marker": "v", "linestyle": ":"},
}


def draw_studies(studies: list[LocalStudy], path: Path) -> None:
    """Statistic and power over N_train, power and type I error over N_cal."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(17, 3.4 * len(studies) + 0.7), layout="constrained")
    grid = figure.subplots(len(studies), 4, squeeze=False)
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


def draw_gains(gains: GainStudy, path: Path) -> None:
    """The statistic over the gain, and the PP-plot at the gain of the paper's Figure 4."""
    from matplotlib.figure import Figure

    rows = gains.values["gains"]
    at = [row["gain"] for row in rows]
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.fill_between(
        at, [row["null_low"] for row in rows], [row["null_high"] for row in rows],
        color="0.85", label="95% under the null",
    )  # fmt: skip
    left.plot(at, [row["null_median"] for row in rows], color="0.5", linewidth=1, label="median")
    left.plot(at, [row["statistic"] for row in rows], "o-", color="tab:blue", label="L-C2ST-NF")
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
        if method != "local HPD" and rates:
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
        values = [rate.rate for rate in rates]
        below = [rate.rate - rate.interval[0] for rate in rates]
        above = [rate.interval[1] - rate.rate for rate in rates]
        if rates:
            ax.errorbar(at, values, (below, above), label=method, markersize=4, elinewidth=0.7,
                        **_LOOKS[method])  # fmt: skip
    ax.axhline(0.05, color="0.4", linestyle=":", linewidth=1)
    ax.set(xscale="log", ylim=(-0.03, 1.03))
