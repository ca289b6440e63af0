"""Pairs of parameters: contours of the posterior, in a triangle whose parameters one can choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from validation.page import Choice, Figure, Pairs
from validation.page.svg import canvas, inline_svg
from validation.palette import LIGHT
from validation.words import number

from ...pictures.drawing import draw_density, draw_pair
from ...pictures.marginals import Marginal
from ..sources import FitRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SIDE = 120
_MOST_CHOICES = 10
_SHOWN_AT_FIRST = 5


def pairs_block(
    record: FitRecord, marginals: Sequence[Marginal], wanted: Sequence[str], key: str
) -> Pairs:
    """The triangle of the wanted parameters, or of those with the strongest correlations."""
    chosen = [j for j, m in enumerate(marginals) if m.name in wanted]
    order = _by_correlation(record) if len(chosen) < 2 else chosen
    offered = sorted(order[:_MOST_CHOICES])
    first = set(order[:_SHOWN_AT_FIRST]) if len(chosen) < 2 else set(chosen)
    panels = []
    for row, i in enumerate(offered):
        line = [_pair(marginals[j], marginals[i]) for j in offered[:row]]
        panels.append((*line, _diagonal(marginals[i])))
    choices = tuple(
        Choice(
            marginals[j].name,
            " to ".join(marginals[j].near(end, 1) for end in marginals[j].span),
            j in first,
        )
        for j in offered
    )
    caption = "Darker: half of the posterior; lighter: 90% of it."
    if len(marginals) > len(offered):
        caption += f" The {len(offered)} of {len(marginals)} parameters with the strongest "
        caption += "correlations are offered."
    legend = [("inner", "posterior, 50% and 90%")]
    legend += [("prior", "prior, 90%, where it is in view")] if record.prior is not None else []
    legend += [("reference", "exact posterior, 50% and 90%")] if record.exact is not None else []
    return Pairs(f"{key}-triangle", choices, tuple(panels), caption, tuple(legend))


def _by_correlation(record: FitRecord) -> list[int]:
    """Parameters by their strongest rank correlation with another, strongest first."""
    values = record.samples.double().numpy()
    ranks = values.argsort(axis=0).argsort(axis=0)
    together = np.abs(np.atleast_2d(np.corrcoef(ranks, rowvar=False)))  # a number of one parameter
    np.fill_diagonal(together, 0.0)
    return [int(j) for j in np.argsort(-together.max(axis=0), kind="stable")]


def _pair(across: Marginal, up: Marginal) -> Figure:
    """Contours of one pair."""
    correlation = _correlation(across, up)
    with canvas(_SIDE, _SIDE, bare=True) as (figure, axes):
        draw_pair(axes, across, up)
        _bare(axes)
        svg = inline_svg(figure)
    return Figure(
        svg,
        alt=f"{up.name} against {across.name}: correlation {number(correlation, 2)}.",
        caption="",
    )


def _diagonal(m: Marginal) -> Figure:
    with canvas(_SIDE, _SIDE, bare=True) as (figure, axes):
        draw_density(axes, m, 1.4, 80)
        _bare(axes)
        for side in ("left", "top", "right"):
            axes.spines[side].set_visible(False)
        svg = inline_svg(figure)
    return Figure(svg, alt=f"{m.name}: {m.near(m.mean, 2)} ± {m.near(m.sd, 2)}.", caption="")


def _correlation(across: Marginal, up: Marginal) -> float:
    if across.draws.std() == 0 or up.draws.std() == 0:
        return 0.0
    return float(np.corrcoef(across.draws, up.draws)[0, 1])


def _bare(axes: Axes) -> None:
    axes.set(xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set(visible=True, color=LIGHT["line"])
