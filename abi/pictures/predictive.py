"""The picture of predicted data: histograms of few values, intervals along an axis of many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from simulators.random import as_count, child_seed
from simulators.running.engines import Workers, check_workers
from validation.palette import LIGHT

from ..encoders.layout import Layout
from .density import Array
from .drawing import POSTERIOR
from .fit import Shown, draws_of
from .predicted import (
    LEAST,
    NUM_SIMULATIONS,
    Predictive,
    draw_predicted,
    in_one_unit,
    quantiles,
    simulated,
)
from .style import legend_below, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW = 6
"""Values of x, each of which has a histogram; more are drawn along one axis."""
_BINS, _COLUMNS = 25, 3


def plot_predictive(
    posterior: Shown,
    simulator: Callable[..., Any] | None = None,
    *,
    num_simulations: int = NUM_SIMULATIONS,
    times: Sequence[float] | None = None,
    num_series: int | None = None,
    workers: Workers = 1,
    timeout: float | None = None,
    seed: int = 0,
) -> Figure:
    """Draw data simulated at draws of the posterior, and x_o among them.

    Up to six values have a histogram each. More are drawn along an axis, as intervals that hold 50%
    and 90% of the simulations. Agreement is necessary, not sufficient: x_o was used to fit.

    Args:
        posterior: the posterior.
        simulator: of the fit; needed where the posterior was loaded.
        num_simulations: simulator calls, 20 or more.
        times: where the values of one series stand along the axis; 1, 2, ... when omitted, or the
            simulator's own ``times``.
        num_series: series of which x consists, one after another, a panel each; as the simulator
            declares when omitted.
        workers: processes that simulate, or the cluster that does, as of :func:`abi.fit`.
        timeout: seconds one simulation may take.
        seed: of the draws and the simulations.

    Returns:
        A matplotlib figure, which a notebook shows; ``figure.savefig("predicted.png")`` keeps it.

    Raises:
        ValueError: if the simulator is not known, or times or series do not make up x_o; if fewer
            than 20 simulations are usable; if matplotlib is not installed.
    """
    num_simulations = as_count(num_simulations, "num_simulations", LEAST)
    check_workers(workers, timeout)
    known = posterior.problem
    if simulator is not None:
        simulate_with = simulator
    elif known is not None:
        simulate_with = known.whole
    else:
        raise ValueError("`simulator` must be given: a loaded posterior holds none.")
    series = _num_series(posterior, simulate_with, num_series)
    places = _places(posterior, simulate_with, times, series)
    theta = draws_of(posterior, num_simulations, child_seed(seed, 0))
    key = child_seed(seed, 3)
    found = simulated(posterior, simulate_with, theta, key, workers, timeout)
    if found.unusable:
        raise ValueError(f"`simulator`: {found.unusable}")
    if len(found.x_o) <= FEW and series == 1 and times is None:
        return _histograms(found)
    return _along(found, places, series)


def _num_series(posterior: Shown, simulator: Any, asked: int | None) -> int:
    """As asked, or as declared.

    Raises:
        ValueError: if so many do not make up x_o.
    """
    p = len(posterior.observation)
    if asked is not None:
        asked = as_count(asked, "num_series", 1)
        if p % asked:
            raise ValueError(f"`num_series` must divide the {p} values of x_o; got {asked}.")
        return asked
    known = posterior.problem
    layout = known.layout if known is not None else Layout.of(simulator, p)
    return layout.num_series


def _places(posterior: Shown, simulator: Any, times: Any, series: int) -> Array:
    """Where the values of a series stand.

    Raises:
        ValueError: if times are given and are not as many.
    """
    length = len(posterior.observation) // series
    own = getattr(simulator, "times", None) if times is None else times
    if own is not None:
        values = np.asarray(own, dtype=np.float64).reshape(-1)
        if len(values) == length:
            return values
        if times is not None:
            raise ValueError(
                f"`times` must be {length}, one a value of a series; got {len(values)}."
            )
    return np.arange(1.0, length + 1)


def _histograms(found: Predictive) -> Figure:
    count = len(found.x_o)
    columns = min(count, _COLUMNS)
    rows = -(-count // columns)
    with picture(max(2.7 * columns, 4.2), 2.1 * rows + 0.9, "plot_predictive") as figure:
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        for j, axes in enumerate(panels):
            axes.set_visible(j < count)
            if j >= count:
                continue
            there = found.x[~np.isnan(found.x[:, j]), j]
            _, edges, bars = axes.hist(there, _BINS, alpha=0.35, **POSTERIOR)
            low, high = quantiles(found.x[:, [j]], [0.05, 0.95])[:, 0]
            for bar, left, right in zip(bars, edges, edges[1:], strict=False):
                bar.set_alpha(0.75 if low <= 0.5 * (left + right) <= high else 0.25)
            if not np.isnan(found.x_o[j]):
                axes.axvline(found.x_o[j], color=LIGHT["observed"], linewidth=1.8)
            axes.set(xlabel="x" if count == 1 else f"value {j + 1} of x", yticks=[])
            axes.spines["left"].set_visible(False)
            axes.locator_params(axis="x", nbins=4)
        marks = [_patch(0.25, "simulations"), _patch(0.75, "central 90%"), _observed(True)]
        _finish(figure, found, marks)
    return figure


def _along(found: Predictive, places: Array, series: int) -> Figure:
    """A panel a series: intervals of the simulations at each place, and x_o."""
    columns = min(series, 2)
    rows = -(-series // columns)
    width = 7.0 if series == 1 else 4.4 * columns
    with picture(width, 2.4 * rows + 0.8, "plot_predictive") as figure:
        panels = figure.subplots(rows, columns, squeeze=False).ravel()
        x = found.x.reshape(len(found.x), series, -1)
        x_o = found.x_o.reshape(series, -1)
        for k, axes in enumerate(panels):
            axes.set_visible(k < series)
            if k >= series:
                continue
            values, seen, unit = in_one_unit(x[:, k], x_o[k])
            draw_predicted(axes, places, values, seen)
            size = 4.0 if len(places) <= 60 else 2.5
            axes.plot(places, seen, "o", color=LIGHT["observed"], markersize=size)
            whole = bool((places == np.arange(1, len(places) + 1)).all())
            axes.set(xlabel="value number" if whole else "time", ylabel=unit)
            if whole:
                axes.xaxis.get_major_locator().set_params(integer=True)
            if series > 1:
                axes.set_title(f"series {k + 1}")
        marks = [_patch(0.75, "50% of the simulations"), _patch(0.25, "90%"), _observed(False)]
        _finish(figure, found, marks)
    return figure


def _patch(alpha: float, label: str) -> tuple[Any, str]:
    from matplotlib.patches import Patch

    return Patch(alpha=alpha, linewidth=0, **POSTERIOR), label


def _observed(line: bool) -> tuple[Any, str]:
    from matplotlib.lines import Line2D

    colour = LIGHT["observed"]
    if line:
        return Line2D([], [], color=colour, linewidth=1.8), "x_o"
    return Line2D([], [], color=colour, marker="o", markersize=5, linestyle=""), "x_o"


def _finish(figure: Figure, found: Predictive, marks: Sequence[tuple[Any, str]]) -> None:
    """Legend, and a title that says what is seen."""
    handles, labels = zip(*marks, strict=True)
    legend_below(figure, handles, labels)
    words = found.coverage_in_words
    if found.failures:
        words += f"; {found.failures:,} failed"
    figure.suptitle(words)
