"""Pictures at one x_o: L-C2ST's curves and coloured pairs, CoLT's ball, local coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..palette import LIGHT
from ..words import number
from .blocks import Figure, Readout, Series
from .rank_pictures import SIZE
from .svg import axis_shares, canvas, dots, inline_svg

_SHADES = ("q2", "q1", "even", "p1", "p2")
_MOST_PAIRS = 3


def pp_figure(curves: Mapping[str, Any]) -> Figure:
    """PP-plot of L-C2ST's class-0 probabilities with the null's pointwise band.

    Source: Linhart, Gramfort & Rodrigues (2023), Algorithm 5 and Figure 4.
    """
    levels, observed, low, high = (
        np.array(curves[key], dtype=float) for key in ("levels", "observed", "low", "high")
    )
    with canvas(*SIZE) as (figure, axes):
        axes.fill_between(levels, low, high, color=LIGHT["band"], linewidth=0)
        chance = (levels >= 0.5).astype(float)
        axes.step(levels, chance, ":", color=LIGHT["muted"], where="post", linewidth=1.3)
        axes.plot(levels, observed, color=LIGHT["observed"], linewidth=1.8)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability of q")
        axes.set_ylabel("share of draws below")
        left, right = axis_shares(figure, axes)
        svg = inline_svg(figure)
    outside = float(((observed < low - 1e-9) | (observed > high + 1e-9)).mean())
    series = (
        Series("observed", observed.tolist(), percent=True),
        Series("null from", low.tolist(), percent=True),
        Series("to", high.tolist(), percent=True),
    )
    return Figure(
        svg,
        alt="PP-plot at x_o: the observed curve leaves the 95% band of the null classifiers at "
        f"{outside:.0%} of the levels.",
        caption=f"The curve leaves the band at {outside:.0%} of the levels. At each level the band "
        "holds 95% of classifiers that were trained with no difference to find.",
        title="Predicted probabilities at x_o",
        legend=(
            ("observed", "observed"),
            ("band", "95% under the null, pointwise"),
            ("bound", "chance"),
        ),
        readout=Readout("probability", left, right, 0, 1, series),
    )


def coloured_pairs(draws: Mapping[str, Any], names: Sequence[str]) -> list[Figure]:
    """Draws of q at x_o, coloured by the predicted probability that p has more mass there."""
    theta, probability = np.array(draws["theta"]), np.array(draws["probability"])
    # The parameters along which the probability changes most, judged by rank correlation or spread.
    telling = _telling(theta, probability)
    limit = max(float(np.abs(probability - 0.5).max()), 1e-3)
    shade = np.clip(((probability - 0.5 + limit) / (2 * limit) * 5).astype(int), 0, 4)
    figures = []
    for i, j in telling:
        with canvas(*SIZE) as (figure, axes):
            second = theta[:, j] if j is not None else probability
            for number_, role in enumerate(_SHADES):
                dots(axes, theta[shade == number_, i], second[shade == number_], LIGHT[role], 4)
            _frame(axes, theta[:, i], second)
            axes.set_xlabel(names[i])
            axes.set_ylabel(names[j] if j is not None else "probability of p")
            svg = inline_svg(figure)
        low, high = float(probability.min()), float(probability.max())
        figures.append(
            Figure(
                svg,
                alt=f"{len(theta)} draws of the posterior at x_o over {names[i]}"
                + (f" and {names[j]}" if j is not None else "")
                + f", coloured by the predicted probability of p, from {number(low, 2)} to "
                f"{number(high, 2)} (0.5 is no difference). {_where(theta, probability, names, i)}",
                caption=f"The predicted probability of p runs from {number(low, 2)} to "
                f"{number(high, 2)}; 0.5 means no difference.",
                title=f"{names[i]} and {names[j]}" if j is not None else names[i],
            )
        )
    return figures


PAIR_LEGEND = (
    ("q2", "q has too many draws here"),
    ("q1", "somewhat"),
    ("even", "no difference"),
    ("p1", "somewhat"),
    ("p2", "q has too few draws here"),
)


def ball_figure(ball: Mapping[str, Any], names: Sequence[str]) -> Figure:
    """Draws of q at one x, those in CoLT's ball, and its centre."""
    theta, inside = np.array(ball["theta"]), np.array(ball["inside"], dtype=bool)
    i, j = _separating(theta, inside)
    with canvas(*SIZE) as (figure, axes):
        second = theta[:, j] if j is not None else np.linspace(0, 1, len(theta))
        dots(axes, theta[~inside, i], second[~inside], LIGHT["prior"], 3.5)
        dots(axes, theta[inside, i], second[inside], LIGHT["posterior"], 3.5, 0.9)
        _frame(axes, theta[:, i], second)
        axes.set_xlabel(names[i])
        if j is None:
            axes.set_yticks([])
            axes.axvline(ball["point"][i], color=LIGHT["observed"], linewidth=1.6)
        else:
            axes.set_ylabel(names[j])
            axes.plot(ball["point"][i], ball["point"][j], "+", color=LIGHT["observed"],
                      markersize=13, markeredgewidth=2)  # fmt: skip
        svg = inline_svg(figure)
    q_mass, p_mass = ball["q_mass"], ball["p_mass"]
    centre = ", ".join(
        f"{names[k]} {number(float(ball['point'][k]), 3)}" for k in (i, j) if k is not None
    )
    verb = "too much" if q_mass > p_mass else "too little"
    return Figure(
        svg,
        alt=f"{len(theta)} draws of the posterior; {int(inside.sum())} lie in the ball around "
        f"{centre}, which holds {q_mass:.0%} of q and on average {p_mass:.0%} of p.",
        caption=f"The ball around {centre} holds {q_mass:.0%} of the posterior under test; over "
        f"all x such balls hold {p_mass:.0%} of the truth. If q is wrong, it has {verb} mass here.",
        title="Where the two differ most",
        legend=(("posterior", "draws in the ball"), ("out", "other draws"), ("dot", "its centre")),
    )


def coverage_figure(coverage: Mapping[str, Any]) -> Figure:
    """Local coverage against its level; the diagonal is right."""
    levels = np.array(coverage["levels"])
    curve = np.array(coverage["curves"])[0]
    gap = int(np.abs(curve - levels).argmax())
    with canvas(*SIZE) as (figure, axes):
        axes.plot([0, 1], [0, 1], ":", color=LIGHT["muted"], linewidth=1.3)
        axes.plot(levels, curve, "o-", color=LIGHT["observed"], linewidth=1.6, markersize=3.5)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="level", ylabel="coverage at x_o")
        svg = inline_svg(figure)
    return Figure(
        svg,
        alt=f"Estimated coverage at x_o: farthest from right at level {levels[gap]:.2f}, where it "
        f"is {curve[gap]:.2f}.",
        caption=f"The largest gap: the {levels[gap]:.0%} region covers {curve[gap]:.0%}.",
        title="Coverage of the highest-density regions at x_o",
        legend=(("observed", "estimated"), ("bound", "right")),
    )


def _telling(
    theta: NDArray[np.float64], probability: NDArray[np.float64]
) -> list[tuple[int, int | None]]:
    """Pairs of the parameters that say most about the probability, by a quadratic fit in each."""
    d = theta.shape[1]
    if d == 1:
        return [(0, None)]
    score = []
    for column in theta.T:
        z = (column - column.mean()) / (column.std() or 1.0)
        design = np.stack([np.ones_like(z), z, z**2], axis=1)
        fitted = design @ np.linalg.lstsq(design, probability, rcond=None)[0]
        score.append(float(fitted.var()))
    best = [int(k) for k in np.argsort(score)[::-1][:_MOST_PAIRS]]
    pairs = [(best[a], best[b]) for a in range(len(best)) for b in range(a + 1, len(best))]
    return [(min(pair), max(pair)) for pair in pairs]


def _where(
    theta: NDArray[np.float64], probability: NDArray[np.float64], names: Sequence[str], i: int
) -> str:
    """How the probability goes with one parameter."""
    if probability.std() == 0 or theta[:, i].std() == 0:
        return ""
    slope = float(np.corrcoef(theta[:, i], probability)[0, 1])
    return f"Correlation with {names[i]}: {number(slope, 2)}."


def _separating(theta: NDArray[np.float64], inside: NDArray[np.bool_]) -> tuple[int, int | None]:
    """The two parameters in which the ball is smallest against the rest."""
    if theta.shape[1] == 1:
        return 0, None
    if inside.sum() < 2:
        return 0, 1
    spread = theta[inside].std(axis=0) / np.maximum(theta.std(axis=0), 1e-30)
    first, second = (int(k) for k in np.argsort(spread)[:2])
    return min(first, second), max(first, second)


def _frame(axes: Any, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    """Limits around the points: patches do not set them."""
    for values, setter in ((x, axes.set_xlim), (y, axes.set_ylim)):
        low, high = float(values.min()), float(values.max())
        margin = 0.06 * (high - low) or 0.5
        setter(low - margin, high + margin)
    axes.locator_params(nbins=5)
