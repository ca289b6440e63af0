"""Bands of what a posterior predicts, and what was observed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from ...plotting import legend_below
from .cells import Cell
from .experiment import Experiment
from .picture_style import ABI, EXACT

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_predictive(experiment: Experiment, cell: Cell, samples: Tensor, path: Path) -> Path:
    """Bands of 50% and 90% of the data that the posterior predicts, and x_o."""
    from matplotlib.figure import Figure

    series = experiment.problem.series
    x_o = experiment.observations[cell.observation].reshape(len(series), -1).numpy()
    predicted = experiment.predicted(samples)
    paths = predicted.reshape(len(predicted), len(series), -1).numpy()
    time = getattr(experiment.problem.task, "times", None)
    steps = np.arange(1, x_o.shape[1] + 1) if time is None else time.numpy()
    figure = Figure(figsize=(5.0 * len(series), 3.2), layout="constrained")
    for k, ax in enumerate(np.atleast_1d(figure.subplots(1, len(series)))):
        band(ax, steps, paths[:, k], x_o[k])
        ax.set(xlabel="time", ylabel=series[k])
        ax.locator_params(axis="x", integer=True, nbins=6)
    legend_below(figure, *figure.axes[0].get_legend_handles_labels())
    figure.suptitle(f"What {cell.method} predicts; {cell.budget:,} calls", fontsize=10)
    figure.savefig(path, dpi=120)
    return path


def band(ax: Axes, steps: Any, paths: Any, observed: Any) -> None:
    """Central 50% and 90% of paths (n, T), their median, and what was observed (T,)."""
    low, left, middle, right, high = np.quantile(paths, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    ax.fill_between(steps, low, high, color=ABI, alpha=0.18, linewidth=0, label="90%")
    ax.fill_between(steps, left, right, color=ABI, alpha=0.35, linewidth=0, label="50%")
    ax.plot(steps, middle, color=ABI, linewidth=1.2, label="median")
    ax.plot(steps, observed, ".", color=EXACT, markersize=5, label="observed")
    ax.spines[["top", "right"]].set_visible(False)
