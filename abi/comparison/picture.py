"""A comparison as a picture: a bar a model, with its interval and its prior probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from torch import Tensor

from validation.page.palette import LIGHT

from ..pictures.style import legend_below, picture, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class _Shown(Protocol):
    """As much of a comparison as the picture needs."""

    @property
    def names(self) -> Sequence[str]:
        """Of the models."""
        ...

    @property
    def probabilities(self) -> Tensor:
        """(M,)."""
        ...

    @property
    def intervals(self) -> Tensor:
        """(M, 2)."""
        ...

    @property
    def model_prior(self) -> Tensor:
        """(M,)."""
        ...


def plot(comparison: _Shown) -> Figure:
    """Draw the probability of each model, its 95% interval, and its prior probability.

    Args:
        comparison: the comparison.

    Returns:
        A matplotlib figure, which a notebook shows; ``figure.savefig("models.png")`` keeps it.

    Raises:
        ValueError: if matplotlib is not installed.
    """
    count = len(comparison.names)
    with picture(5.6, 0.45 * count + 1.1, "plot") as figure:
        axes = figure.subplots()
        rows = list(range(count))
        axes.barh(rows, comparison.probabilities.tolist(), height=0.55, color=LIGHT["posterior"])
        ends = comparison.intervals.T.tolist()
        intervals = axes.hlines(rows, ends[0], ends[1], color=LIGHT["ink"], linewidth=1.5)
        (prior,) = axes.plot(
            comparison.model_prior.tolist(), rows, "D", markersize=5, color=LIGHT["muted"]
        )
        axes.set_yticks(rows, [short(name) for name in comparison.names])
        axes.set(xlim=(0.0, 1.02), xlabel="posterior probability given x_o")
        axes.invert_yaxis()
        legend_below(figure, [intervals, prior], ["95% interval", "prior probability"])
    return figure
