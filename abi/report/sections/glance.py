"""The answer at a glance: a row a parameter, its density with the prior's, mean and spread."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from validation.page import Figure
from validation.page.svg import canvas, inline_svg
from validation.palette import LIGHT
from validation.words import listing

from ...pictures.density import curve
from ...pictures.marginals import Marginal
from ...pictures.style import short

MOST_ROWS = 6
"""Of a picture of the first screen."""
WIDTH = 400
_HEIGHTS = (130, 96, 76, 62, 54, 48)
"""Of a row, by how many there are."""
_HIGHER = 1.5
"""An exact density more times as high as the posterior is cut off."""
_ROOM = 0.3
"""Share of a row that two numbers under it need."""


def answer_figure(marginals: Sequence[Marginal]) -> Figure:
    """Densities of all parameters, or of the few that x_o says most about, one under another."""
    shown = list(marginals)
    if len(shown) > MOST_ROWS:
        telling = sorted(shown, key=lambda m: -(m.contraction or 0.0))[:MOST_ROWS]
        shown = [m for m in marginals if m in telling]
    height = _HEIGHTS[len(shown) - 1]
    with canvas(WIDTH, 12 + height * len(shown)) as (figure, axes):
        for row, m in enumerate(shown):
            _ridge(axes, m, len(shown) - 1 - row, 14 / height)
        axes.set(xlim=(0, 1), ylim=(-16 / height, len(shown) - 16 / height), xticks=[])
        axes.set_yticks([len(shown) - 0.75 - row for row in range(len(shown))])
        axes.set_yticklabels([short(m.name) for m in shown])
        axes.tick_params(length=0, labelcolor=LIGHT["ink"], labelsize=11.5)
        values = axes.secondary_yaxis("right")
        values.set_yticks([len(shown) - 0.75 - row for row in range(len(shown))])
        values.set_yticklabels([_value(m) for m in shown])
        values.tick_params(length=0, labelcolor=LIGHT["ink"], labelsize=11.5)
        for side in (axes, values):
            side.spines[:].set_visible(False)
        svg = inline_svg(figure)
    caption = "Mean ± standard deviation, and the ends of the central 90%; each row has its scale."
    if len(shown) < len(marginals):
        caption = (
            f"The {len(shown)} of {len(marginals)} parameters that x_o says most about. {caption}"
        )
    marks = [("posterior", "posterior"), ("inner", "its central 90%")]
    marks += [("prior", "prior")] if any(m.prior is not None for m in shown) else []
    marks += [("reference", "exact posterior")] if any(m.exact is not None for m in shown) else []
    return Figure(
        svg,
        alt=f"Densities of {listing([f'{m.name}: {_value(m)}' for m in shown])}.",
        caption=caption,
        title="The answer",
        legend=tuple(marks),
    )


def _value(m: Marginal) -> str:
    return f"{m.near(m.mean, 2)} ± {m.near(m.sd, 2)}"


def _ridge(axes: Any, m: Marginal, foot: int, below: float) -> None:
    """One density, as high as a row, standing at ``foot``; the others in its scale."""
    grid, density = curve(m.draws, m.span, m.ends)
    exact = density if m.exact is None else curve(m.exact, m.span, m.ends)[1]
    highest = max(float(density.max()), min(float(exact.max()), _HIGHER * float(density.max())))
    top = max(highest, 1e-300) / (0.94 - below)
    place = (grid - m.span[0]) / (m.span[1] - m.span[0])
    low, high = m.quantile(0.05), m.quantile(0.95)
    inside = ((grid >= low) & (grid <= high)).tolist()
    shade: dict[str, Any] = {"color": LIGHT["posterior"], "alpha": 0.28, "linewidth": 0}
    axes.fill_between(place, foot, foot + density / top, where=inside, **shade)
    ends = [(value - m.span[0]) / (m.span[1] - m.span[0]) for value in (low, high)]
    if ends[1] - ends[0] > _ROOM:
        words: dict[str, Any] = {"ha": "center", "va": "top", "color": LIGHT["muted"]}
        for value, end in zip((low, high), ends, strict=True):
            at = min(max(end, 0.08), 0.92), foot - 0.1 * below
            axes.text(*at, m.near(value, 2), fontsize=9.5, **words)
    if m.prior is not None:
        other = np.minimum(curve(m.prior, m.span, m.ends)[1] / top, 0.95 - below)
        axes.plot(place, foot + other, color=LIGHT["prior"], linewidth=1.2)
    axes.plot(place, foot + density / top, color=LIGHT["posterior"], linewidth=1.6)
    if m.exact is not None:
        line: dict[str, Any] = {"color": LIGHT["reference"], "linewidth": 1.3}
        axes.plot(place, foot + np.minimum(exact / top, 0.98 - below), "--", **line)
