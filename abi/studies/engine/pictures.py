"""Figures of panels, which every picture of a study begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def panels_of(
    width: float, height: float, rows: int, columns: int, count: int | None = None
) -> tuple[Figure, Any]:
    """A figure in inches and its panels, (rows, columns); those beyond ``count`` are not shown."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for ax in panels.ravel()[rows * columns if count is None else count :]:
        ax.set_visible(False)
    return figure, panels
