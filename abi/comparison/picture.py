"""A comparison as a picture: a bar a model, with its interval and its prior probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import Tensor

from validation.palette import LIGHT

from ..pictures.style import legend_below, picture, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(
    names: Sequence[str], probabilities: Tensor, intervals: Tensor, model_prior: Tensor
) -> Figure:
    """The picture of M models: probabilities (M,), intervals (M, 2), prior probabilities (M,)."""
    with picture(5.6, 0.45 * len(names) + 1.1, "plot") as figure:
        axes = figure.subplots()
        rows = list(range(len(names)))
        axes.barh(rows, probabilities.tolist(), height=0.55, color=LIGHT["posterior"])
        ends = intervals.T.tolist()
        spans = axes.hlines(rows, ends[0], ends[1], color=LIGHT["ink"], linewidth=1.5)
        (prior,) = axes.plot(model_prior.tolist(), rows, "D", markersize=5, color=LIGHT["muted"])
        axes.set_yticks(rows, [short(name) for name in names])
        axes.set(xlim=(0.0, 1.02), xlabel="posterior probability given x_o")
        axes.invert_yaxis()
        legend_below(figure, [spans, prior], ["95% interval", "prior probability"])
    return figure
