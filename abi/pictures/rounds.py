"""How an answer came about: means and sds by simulator calls, and how far off each was judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from validation.palette import LIGHT
from validation.swaps.deviations import Deviation

from ..rounds.record import Moments
from ..verdict.record import Check
from .drawing import POSTERIOR, draw_interval
from .fit import Shown, chosen
from .style import in_lines, legend_below, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLES = "mean ± 1 and 2 sds", "bias, in sds", "sd over the true sd"
_MOST, _ROW = 6, 1.45  # inches
_LARGEST_BIAS, _LARGEST_RATIO = 3.0, 4.0
"""Where the axes end at most."""
RATIO_TICKS = (0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)


@dataclass(frozen=True)
class Stage:
    """The answer after a round: when, what it was, and what unseen pairs say of it."""

    calls: int
    answer: Moments | None
    check: Check | None


def stages_of(posterior: Shown) -> list[Stage]:
    """One a round; the last is the posterior itself, judged by pairs of its own."""
    judged = {part.round: part.check for part in posterior.verdict.rounds}
    stages, calls = [], 0
    for record in posterior.rounds:
        calls += record.simulator_calls
        last = record is posterior.rounds[-1]
        check = posterior.verdict.check if last else judged.get(record.round)
        stages.append(Stage(calls, record.answer, check))
    return stages


def plot_rounds(posterior: Shown, *, parameters: Sequence[str] | None = None) -> Figure:
    """Draw how the answer came about, by simulator calls: a row a parameter, a point a round.

    On the left mean and sd of each round's answer. Beside it how far that answer was off, as pairs
    judged it that it had not seen: the bias of its mean, in its sds, and its sd over the true one,
    each with an interval; those that leave out what is right are orange. Rounds of a fit by an
    earlier version, and answers that no pairs judged, leave their places empty.

    Args:
        posterior: the posterior.
        parameters: names of those shown, in this order; the first six when omitted.

    Returns:
        A matplotlib figure, which a notebook shows; ``figure.savefig("rounds.png")`` keeps it.

    Raises:
        ValueError: if a name is not one of a parameter; if matplotlib is not installed.
    """
    names = posterior.parameter_names
    places = chosen(parameters, names, _MOST)
    stages = stages_of(posterior)
    count = len(places)
    with picture(8.6, _ROW * count + 1.1, "plot_rounds") as figure:
        panels = figure.subplots(count, 3, squeeze=False, sharex=True)
        judged: list[Deviation] = []
        for row, j in enumerate(places):
            _draw_moments(panels[row, 0], stages, j)
            judged += _draw_judged(panels[row, 1:], stages, names[j])
            panels[row, 0].set_ylabel(in_lines(names[j], _ROW))
        for bias, ratio in panels[:, 1:]:  # one scale for all, so that rows compare
            _scale(bias, ratio, judged)
        for axes, title in zip(panels[0], _TITLES, strict=True):
            axes.set_title(title)
        last = stages[-1].calls
        step = 0.08 * last
        panels[0, 0].set_xlim(max(0.0, stages[0].calls - step) if len(stages) > 1 else 0.0,
                              last + step)  # fmt: skip
        for axes in panels[-1]:
            axes.set_xlabel("simulator calls")
            axes.locator_params(axis="x", nbins=4)
            axes.xaxis.set_major_formatter("{x:,.0f}")
        figure.align_ylabels()
        if count < len(names) and parameters is None:
            figure.suptitle(f"the first {count} of {len(names)} parameters")
        _legend(figure)
    return figure


def _draw_moments(axes: Axes, stages: Sequence[Stage], j: int) -> None:
    """Mean, and one and two sds about it, by calls."""
    told = [(stage.calls, stage.answer) for stage in stages if stage.answer is not None]
    if not told:
        axes.set_yticks([])
    for place, answer in told:
        mean, sd = answer.means[j], answer.sds[j]
        axes.plot([place, place], [mean - 2 * sd, mean + 2 * sd], linewidth=1.0, **POSTERIOR)
        axes.plot([place, place], [mean - sd, mean + sd], linewidth=3.2, **POSTERIOR)
    calls, means = [place for place, _ in told], [answer.means[j] for _, answer in told]
    axes.plot(calls, means, "o-", markersize=4.5, linewidth=0.8, markerfacecolor="white",
              **POSTERIOR)  # fmt: skip
    axes.locator_params(axis="y", nbins=4)
    axes.tick_params(length=2.5)


def _draw_judged(panels: Any, stages: Sequence[Stage], name: str) -> list[Deviation]:
    """Intervals of bias and sd ratio by calls; what they show."""
    bias, ratio = panels
    found = [(stage.calls, part) for stage in stages if (part := _of(stage.check, name))]
    for calls, part in found:
        draw_interval(bias, calls, (part.bias, part.bias_low, part.bias_high), 0.0, upright=True)
        values = part.sd_ratio, part.sd_ratio_low, part.sd_ratio_high
        draw_interval(ratio, calls, values, 1.0, upright=True)
    return [part for _, part in found]


def _scale(bias: Axes, ratio: Axes, parts: Sequence[Deviation]) -> None:
    """Ends and ticks, and a line where the right value is."""
    reach = bias_reach(parts)
    bias.set_ylim(-reach, reach)
    bias.locator_params(axis="y", nbins=4)
    mark_ratios(ratio, parts, "y")
    for axes, right in ((bias, 0.0), (ratio, 1.0)):
        axes.axhline(right, color=LIGHT["muted"], linestyle=":", linewidth=1.3, zorder=0)
        axes.tick_params(length=2.5)


def _of(check: Check | None, name: str) -> Deviation | None:
    """What pairs say of a parameter, where that is a number."""
    for part in () if check is None else check.parameters:
        values = part.bias, part.bias_low, part.bias_high, part.sd_ratio, part.sd_ratio_high
        if part.name == name and all(map(math.isfinite, values)):
            return part
    return None


def bias_reach(parts: Sequence[Deviation]) -> float:
    """Where an axis of biases ends."""
    ends = [abs(end) for part in parts for end in (part.bias_low, part.bias_high)]
    return 1.08 * min(max([0.5, *ends]), _LARGEST_BIAS)


def mark_ratios(axes: Axes, parts: Sequence[Deviation], side: str) -> None:
    """A logarithmic axis of sd ratios, "x" or "y", with ticks that a reader knows."""
    ends = [
        max(end, 1.0 / end)
        for part in parts
        for end in (max(part.sd_ratio_low, 1e-6), max(part.sd_ratio_high, 1e-6))
    ]
    reach = 1.08 * min(max([1.5, *ends]), _LARGEST_RATIO)
    few = (0.25, 0.5, 1.0, 2.0, 4.0) if reach > 2.2 else RATIO_TICKS
    ticks = [tick for tick in few if 1.0 / reach <= tick <= reach]
    axes.set(**{f"{side}scale": "log", f"{side}lim": (1.0 / reach, reach)})
    axis = axes.xaxis if side == "x" else axes.yaxis
    axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def _legend(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    lines = [
        (Line2D([], [], marker="o", markersize=5, linewidth=2, **POSTERIOR),
         "interval (95%) that holds what is right"),
        (Line2D([], [], marker="D", markersize=5, linewidth=2, color=LIGHT["observed"]),
         "leaves it out"),
        (Line2D([], [], linestyle=":", color=LIGHT["muted"]), "right: no bias, the true sd"),
    ]  # fmt: skip
    handles, labels = zip(*lines, strict=True)
    legend_below(figure, handles, labels)
