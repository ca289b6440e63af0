"""Pictures of a fit; the only file of this package that knows matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

# Okabe & Ito's colours, told apart by readers with any colour vision.
_ABI, _EXACT, _PRIOR = "#0072B2", "#000000", "#999999"
_INCHES = 3.1
_MAX_COLUMNS = 4


def plot_marginals(
    samples: Tensor,
    names: Sequence[str],
    path: Path,
    *,
    prior: Tensor | None = None,
    exact: Tensor | None = None,
    title: str = "",
) -> Path:
    """Draw the marginal densities of samples (n, d) with the prior and the exact posterior.

    Each axis shows where the posterior lives; the prior is a reference line within it.

    Args:
        samples: draws of the posterior, (n, d).
        names: d names.
        path: where to write the PNG.
        prior: draws of the prior, (m, d).
        exact: draws of the exact posterior, (k, d).
        title: line above the panels.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    dim = samples.shape[1]
    columns = min(dim, _MAX_COLUMNS)
    rows = -(-dim // columns)
    figure = Figure(figsize=(_INCHES * columns, _INCHES * rows + 0.9), layout="constrained")
    FigureCanvasAgg(figure)
    panels = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for j, axis in enumerate(panels[:dim]):
        parts = [(prior, "prior", _PRIOR, "-", 1.5), (exact, "exact posterior", _EXACT, "--", 1.8)]
        _marginal(
            axis, samples[:, j], [(None if p is None else p[:, j], *rest) for p, *rest in parts]
        )
        axis.set_xlabel(names[j])
        axis.set_yticks([])
        axis.spines[["left", "right", "top"]].set_visible(False)
    for axis in panels[dim:]:
        axis.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    if title:
        figure.suptitle(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


def _marginal(axis: Any, samples: Tensor, references: list[tuple[Any, ...]]) -> None:
    shown = [
        samples,
        *(part for part, label, *_ in references if part is not None and label != "prior"),
    ]
    low = min(float(part.quantile(0.001)) for part in shown)
    high = max(float(part.quantile(0.999)) for part in shown)
    margin = 0.08 * (high - low) or 1.0
    grid = np.linspace(low - margin, high + margin, 200)
    density = _density(samples, grid)
    axis.fill_between(grid, density, color=_ABI, alpha=0.25, linewidth=0)
    axis.plot(grid, density, color=_ABI, linewidth=1.8, label="ABI")
    for part, label, color, style, width in references:
        if part is not None:
            curve = _density(part, grid)
            axis.plot(grid, curve, style, color=color, linewidth=width, label=label)
    axis.set_xlim(grid[0], grid[-1])
    axis.set_ylim(bottom=0.0)


def _density(samples: Tensor, grid: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.stats import gaussian_kde

    values = samples.double().numpy()
    if values.std() == 0.0:
        return np.zeros_like(grid)
    return np.asarray(gaussian_kde(values)(grid))
