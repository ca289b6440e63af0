"""Pictures of ranks and of null distributions, from the numbers of a saved report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..palette import LIGHT
from ..scores.bands import binomial_band
from ..words import listing, number
from .blocks import Figure, Readout, Series, Table
from .svg import axis_shares, canvas, inline_svg

SIZE = (320, 220)
_STYLES = {"c1": "-", "c2": "--", "c3": ":", "c4": "-.", "c5": "-"}
_BANDED = ("panel", "sbc", "tarp", "hpd", "colt", "colt_identity", "score_rank")
"""Tests whose ranks are independent and uniform when q = p; the bands hold for no others."""


def rank_figure(
    method: str, ranks: Mapping[str, Any], names: Sequence[str], alpha: float
) -> Figure:
    """F(u) - u of each rank curve, with the test's band and a band that is sharp at the ends.

    Args:
        method: name of the test.
        ranks: the evidence of kind ``ranks``.
        names: one name a curve.
        alpha: one minus the coverage of a band, over all curves.
    """
    curves = np.array(ranks["curves"])
    gaps, num_ranks = np.array(ranks["gaps"]), int(ranks["num_ranks"])
    grid = np.linspace(0, 1, curves.shape[1])
    order = np.argsort(-np.abs(gaps))
    shown = sorted(order[:5]) if len(curves) <= 5 else list(order[:3])
    banded = method in _BANDED
    width = ks_width(num_ranks, alpha / len(curves)) if banded else None
    with canvas(*SIZE) as (figure, axes):
        if width is not None:
            axes.axhspan(-width, width, color=LIGHT["band"], linewidth=0)
            for edge in binomial_band(num_ranks, alpha / len(curves))[1:]:
                axes.plot(np.linspace(0, 1, 101), edge, ":", color=LIGHT["muted"], linewidth=1.3)
        axes.axhline(0, color=LIGHT["muted"], linewidth=0.8)
        if len(curves) > 5:
            for j in order[3:]:
                axes.plot(grid, curves[j], color=LIGHT["prior"], linewidth=0.6)
        for role, j in zip(_STYLES, shown, strict=False):
            axes.plot(grid, curves[j], _STYLES[role], color=LIGHT[role], linewidth=1.8)
        axes.set(xlim=(0, 1), xlabel="rank u of the truth", ylabel="F(u) − u")
        left, right = axis_shares(figure, axes)
        svg = inline_svg(figure)
    legend = [(role, names[j]) for role, j in zip(_STYLES, shown, strict=False)]
    legend += [("curve", f"the other {len(curves) - 3} parameters")] if len(curves) > 5 else []
    if banded:
        share = f"{1 - alpha:.0%}"
        legend += [
            ("band", f"{share} band of the test (Kolmogorov–Smirnov)"),
            ("bound", f"{share} binomial band, sharp at the ends (Säilynoja et al. 2022)"),
        ]
    series = tuple(Series(names[j], curves[j][::2].tolist()) for j in shown)
    return Figure(
        svg,
        alt=_rank_alt(ranks, names, order, width),
        caption=_rank_caption(method, ranks, order[0], width),
        title="Ranks of the truth",
        legend=tuple(legend),
        readout=Readout("u", left, right, 0, 1, series),
        numbers=_rank_table(ranks, names, order) if len(curves) > 1 else None,
    )


def null_figure(
    statistic: float,
    null: NDArray[np.float64] | None,
    law: tuple[Any, Any] | None,
    words: str,
    discrete: bool = False,
) -> Figure:
    """The statistic in its null distribution: drawn from values ``null`` or a law (grid, density).

    ``words`` names the null distribution; a ``discrete`` law is (points, probabilities).
    """
    with canvas(*SIZE) as (figure, axes):
        if null is not None:
            edges = np.histogram_bin_edges(null, bins=min(30, max(8, len(null) // 8))).tolist()
            axes.hist(
                null, bins=edges, color=LIGHT["band"], edgecolor=LIGHT["muted"], linewidth=0.6
            )
            axes.set_ylabel("null statistics")
            above = float((null >= statistic).mean())
            far = float(np.quantile(null, 0.95))
        else:
            grid, density = law  # type: ignore[misc]
            above, far = (_beyond_points if discrete else _beyond)(statistic, grid, density)
            if discrete:  # not its long empty ends
                shown = density > 1e-5 * density.max()
                grid, density = grid[shown], density[shown]
            axes.fill_between(grid, density, color=LIGHT["band"], linewidth=0)
            axes.plot(grid, density, color=LIGHT["muted"], linewidth=1)
            axes.set_yticks([])
            axes.spines["left"].set_visible(False)
        axes.axvline(statistic, color=LIGHT["observed"], linewidth=2)
        axes.set_xlabel("statistic")
        axes.set_ylim(bottom=0)
        axes.locator_params(axis="x", nbins=6)
        svg = inline_svg(figure)
    share = "None" if above <= 0 else f"{above:.1%}"
    return Figure(
        svg,
        alt=f"The statistic is {number(statistic)}. {share} of the null distribution ({words}) is "
        f"as large or larger; its 95% point is {number(far)}.",
        caption=f"The null distribution: {words}. Its 95% point is {number(far)}.",
        title="Statistic and chance",
        legend=(("band", "null"), ("observed", f"observed, {number(statistic)}")),
    )


def _beyond(
    statistic: float, grid: NDArray[np.float64], density: NDArray[np.float64]
) -> tuple[float, float]:
    """Mass above the statistic and the 95% point of a density on a grid."""
    mass = np.cumsum(density) / np.sum(density)
    return 1 - float(np.interp(statistic, grid, mass)), float(np.interp(0.95, mass, grid))


def _beyond_points(
    statistic: float, points: NDArray[np.float64], probability: NDArray[np.float64]
) -> tuple[float, float]:
    """P(T >= statistic), as the p-value counts it, and the first point with P(T <= t) >= 0.95."""
    above = float(probability[points >= statistic - 1e-9].sum())
    place = int(np.searchsorted(np.cumsum(probability), 0.95 - 1e-12))
    return above, float(points[min(place, len(points) - 1)])


def ks_law(num_ranks: int, num_curves: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Density of the largest of ``num_curves`` Kolmogorov-Smirnov distances under the null."""
    from scipy.stats import kstwo

    grid = np.linspace(0, float(kstwo.isf(1e-5 / num_curves, num_ranks)), 300)
    mass = kstwo.cdf(grid, num_ranks) ** num_curves
    return grid, np.clip(np.gradient(mass, grid), 0, None)


def ks_width(num_ranks: int, alpha: float) -> float:
    """Half width of the Kolmogorov-Smirnov band that holds a curve with probability 1 - alpha."""
    from scipy.stats import kstwo

    return float(kstwo.isf(alpha, num_ranks))


def _rank_alt(
    ranks: Mapping[str, Any], names: Sequence[str], order: Any, width: float | None
) -> str:
    gaps, places = ranks["gaps"], ranks["places"]
    parts = [f"{names[j]} {number(float(gaps[j]), 3)} at u = {places[j]:.2f}" for j in order[:5]]
    text = f"Rank curves of {ranks['num_ranks']} pairs. Farthest from zero: {listing(parts)}."
    if width is not None:
        outside = sum(abs(gap) > width for gap in gaps)
        text += f" {outside} of {len(gaps)} leave the test's band of ±{number(width, 3)}."
    return text


def _rank_caption(method: str, ranks: Mapping[str, Any], worst: int, width: float | None) -> str:
    text = (
        f"The largest gap is {number(float(ranks['gaps'][worst]), 2)}, at "
        f"u = {ranks['places'][worst]:.2f}"
    )
    if width is None:
        return text + ". There is no band, because these ranks share their calibration points."
    text += f"; the band is ±{number(width, 2)}."
    if method in ("sbc", "panel"):
        text += (
            " A curve above zero means that q lies too high, a curve below that it lies too low. "
            "One that is first above and then below means that q is too narrow, the reverse that "
            "it is too wide."
        )
    return text


def _rank_table(ranks: Mapping[str, Any], names: Sequence[str], order: Any) -> Table:
    rows = tuple((names[j], float(ranks["gaps"][j]), float(ranks["places"][j])) for j in order)
    return Table(
        "Largest gap of each curve", ("parameter", "F(u) − u", "at u"), rows, sortable=True
    )
