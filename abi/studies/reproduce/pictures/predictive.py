"""What a posterior predicts, and paths at the true parameters, beside what was observed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from ....pictures.style import legend_below
from ...engine.cells import Cell
from ...engine.pictures import panels_of
from ..experiment import Experiment
from .style import ABI, EXACT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Panel = Callable[[Any, Any, Any], None]
"""(axes, steps (T,), paths (n, T)) -> nothing."""
SIMULATED = "#0072B2"
_TRAJECTORIES = 30  # of the paper's Figures 5 and 8


def draw_predictive(experiment: Experiment, cell: Cell, samples: Tensor, path: Path) -> Path:
    """Bands of 50% and 90% of the data that the posterior predicts, and x_o."""
    title = f"What {cell.method} predicts; {cell.budget:,} calls"
    return _draw(experiment, cell.observation, samples, band, title, path)


def draw_trajectories(experiment: Experiment, observation: int, theta: Tensor, path: Path) -> Path:
    """Thirty simulations at the true parameters theta (d,), and x_o."""
    title = f"{_TRAJECTORIES} paths at the true parameters"
    return _draw(experiment, observation, theta.repeat(_TRAJECTORIES, 1), lines, title, path)


def _draw(
    experiment: Experiment, observation: int, theta: Tensor, kind: Panel, title: str, path: Path
) -> Path:
    """A panel a series: simulations at theta (n, d), and x_o."""
    series = experiment.problem.series
    x_o = experiment.observations[observation].reshape(len(series), -1).numpy()
    predicted = experiment.predicted(theta)
    paths = predicted.reshape(len(predicted), len(series), -1).numpy()
    time = getattr(experiment.problem.task, "times", None)
    steps = np.arange(1, x_o.shape[1] + 1) if time is None else time.numpy()
    figure, panels = panels_of(5.0 * len(series), 3.2, 1, len(series))
    for k, ax in enumerate(panels[0]):
        kind(ax, steps, paths[:, k])
        observed(ax, steps, x_o[k])
        ax.set(xlabel="time", ylabel=series[k])
        ax.locator_params(axis="x", integer=True, nbins=6)
    legend_below(figure, *figure.axes[0].get_legend_handles_labels())
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=120)
    return path


def observed(ax: Axes, steps: Any, values: Any) -> None:
    """What was observed, (T,), over the paths."""
    ax.plot(steps, values, ".", color=EXACT, markersize=5, label="observed")
    ax.spines[["top", "right"]].set_visible(False)


def lines(ax: Axes, steps: Any, paths: Any) -> None:
    """Each of paths (n, T)."""
    for number, values in enumerate(paths):
        label = "simulated" if number == 0 else None
        ax.plot(steps, values, color=SIMULATED, linewidth=0.7, alpha=0.6, label=label)


def band(ax: Axes, steps: Any, paths: Any) -> None:
    """Central 50% and 90% of paths (n, T), and their median."""
    low, left, middle, right, high = np.quantile(paths, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    ax.fill_between(steps, low, high, color=ABI, alpha=0.18, linewidth=0, label="90%")
    ax.fill_between(steps, left, right, color=ABI, alpha=0.35, linewidth=0, label="50%")
    ax.plot(steps, middle, color=ABI, linewidth=1.2, label="median")
