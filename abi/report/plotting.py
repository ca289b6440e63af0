"""Pictures of a fit, and a legend that fits its figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ..generators.support import Support

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe & Ito's colours, told apart by readers with any colour vision, and by their lines in grey.
_STYLES = {
    "ABI": ("#0072B2", "-", 1.8),
    "prior": ("#999999", "-", 1.5),
    "exact posterior": ("#000000", "--", 1.8),
}
_INCHES = 3.1
_MAX_COLUMNS = 4


def plot_marginals(
    samples: Tensor,
    names: Sequence[str],
    path: Path,
    *,
    prior: Tensor | None = None,
    exact: Tensor | None = None,
    support: Support | None = None,
    title: str = "",
) -> Path:
    """Draw the marginal densities of samples (n, d) with the prior and the exact posterior.

    Each axis shows where the posterior lives; the prior is a reference line within it. Densities
    end at the ends of the support.

    Args:
        samples: draws of the posterior, (n, d).
        names: d names.
        path: where to write the PNG.
        prior: draws of the prior, (m, d).
        exact: draws of the exact posterior, (k, d).
        support: the prior's support.
        title: line above the panels.
    """
    from matplotlib.figure import Figure

    dim = samples.shape[1]
    columns = min(dim, _MAX_COLUMNS)
    rows = -(-dim // columns)
    figure = Figure(figsize=(_INCHES * columns, _INCHES * rows + 0.9), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for j, axis in enumerate(panels[:dim]):
        ends = (-np.inf, np.inf)
        if support is not None:
            ends = (float(support.lower[j]), float(support.upper[j]))
        shown = {"ABI": samples, "prior": prior, "exact posterior": exact}
        _draw(axis, {name: part[:, j] for name, part in shown.items() if part is not None}, ends)
        axis.set_xlabel(names[j], parse_math=False)  # a parameter may be called $x$
        axis.set_yticks([])
        axis.spines[["left", "right", "top"]].set_visible(False)
    for axis in panels[dim:]:
        axis.set_visible(False)
    legend_below(figure, *panels[0].get_legend_handles_labels())
    if title:
        figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


def legend_below(
    figure: Figure,
    handles: Sequence[Any],
    labels: Sequence[str],
    loc: Any = "outside lower center",
    **keywords: Any,
) -> None:
    """A legend below all panels, in as few rows as the figure is wide enough for.

    Args:
        figure: of constrained layout.
        handles: lines or patches.
        labels: what they are called, as many.
        loc: where, one of matplotlib's places outside the panels.
        keywords: further ones of ``figure.legend``.
    """
    for rows in range(1, len(labels) + 1):
        columns = -(-len(labels) // rows)
        legend = figure.legend(handles, labels, loc=loc, ncols=columns, frameon=False, **keywords)
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def _draw(axis: Any, draws: dict[str, Tensor], ends: tuple[float, float]) -> None:
    """One panel: a density (n,) for each name in the styles."""
    shown = [part for name, part in draws.items() if name != "prior"]
    low = min(float(part.quantile(0.001)) for part in shown)
    high = max(float(part.quantile(0.999)) for part in shown)
    margin = 0.08 * (high - low) or 1.0
    low, high = max(low - margin, ends[0]), min(high + margin, ends[1])
    grid = np.linspace(low, high, 300)
    for name, part in draws.items():
        color, style, width = _STYLES[name]
        density = _density(part, grid, ends)
        if name == "ABI":
            axis.fill_between(grid, density, color=color, alpha=0.25, linewidth=0)
        axis.plot(grid, density, style, color=color, linewidth=width, label=name)
    axis.set_xlim(low, high)
    axis.set_ylim(bottom=0.0)


def _density(
    draws: Tensor, grid: NDArray[np.float64], ends: tuple[float, float]
) -> NDArray[np.float64]:
    """A kernel estimate; mass that crosses an end of the support is folded back."""
    from scipy.stats import gaussian_kde

    values = draws.double().numpy()
    if values.std() == 0.0:
        return np.zeros_like(grid)
    estimate = gaussian_kde(values)
    folded = [2.0 * end - grid for end in ends if np.isfinite(end)]
    return np.asarray(sum((estimate(points) for points in folded), estimate(grid)))
