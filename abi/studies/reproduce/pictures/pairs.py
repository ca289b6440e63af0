"""Pairs of parameters: the draws of one method over the exact posterior."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ....pictures.density import Ends, curve, levels_of_mass, surface, view
from ....pictures.drawing import SHARES, centres
from ...engine.cells import Cell
from ...engine.pictures import panels_of
from ..experiment import Experiment
from .style import ABI, EXACT, ends_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_pairs(
    experiment: Experiment, cell: Cell, samples: Tensor, exact: Tensor | None, path: Path
) -> Path:
    """Pairs of parameters: regions of 50% and 90% of ABI's draws, contours of the exact ones."""
    names = experiment.problem.task.parameter_names
    dim = len(names)
    side = max(1.9, 5.4 / dim)
    figure, panels = panels_of(side * dim + 0.6, side * dim + 0.9, dim, dim)
    ends = ends_of(experiment)
    ours = samples.double().numpy().T
    theirs = None if exact is None else exact.double().numpy().T
    both = [ours] if theirs is None else [ours, theirs]
    # The regions hold 90%: a stray hundredth would only make them small.
    spans = [view([part[j] for part in both], ends[j], tail=0.02) for j in range(dim)]
    for i in range(dim):
        for j in range(dim):
            ax = panels[i, j]
            if j > i:
                ax.set_visible(False)
                continue
            if i == j:
                _diagonal(ax, ours[i], None if theirs is None else theirs[i], spans[i], ends[i])
            else:
                pair = None if theirs is None else (theirs[j], theirs[i])
                _contours(ax, (ours[j], ours[i]), pair, (spans[j], spans[i]))
            _label(ax, names, i, j)
    words = f"{cell.method} after {cell.budget:,} calls: 50% and 90% of its draws shaded"
    words += "\nthe exact posterior dashed" if exact is not None else ""
    figure.suptitle(words, fontsize=10)
    figure.savefig(path, dpi=110)
    return path


def _contours(ax: Axes, ours: Any, theirs: Any, spans: tuple[Ends, Ends]) -> None:
    grids, density = centres(spans, 48), surface(ours[0], ours[1], spans)
    half, most = levels_of_mass(density, SHARES)
    top = float(density.max()) * 1.001
    if most < half < top:
        ax.contourf(*grids, density, levels=[most, half, top], colors=[ABI] * 2, alpha=0.25)
        ax.contourf(*grids, density, levels=[half, top], colors=[ABI], alpha=0.35)
    if theirs is not None:
        exact = surface(theirs[0], theirs[1], spans)
        levels = sorted(set(levels_of_mass(exact, SHARES)))
        ax.contour(*grids, exact, levels=levels, colors=EXACT, linestyles="--", linewidths=1.0)
    ax.set(xlim=spans[0], ylim=spans[1])


def _diagonal(ax: Axes, ours: Any, theirs: Any, span: Ends, ends: Ends) -> None:
    grid, density = curve(ours, span, ends)
    ax.fill_between(grid, density, color=ABI, alpha=0.3, linewidth=0)
    ax.plot(grid, density, color=ABI, linewidth=1.4)
    if theirs is not None:
        ax.plot(*curve(theirs, span, ends), "--", color=EXACT, linewidth=1.2)
    ax.set_xlim(*span)
    ax.set_ylim(bottom=0.0)


def _label(ax: Axes, names: Sequence[str], i: int, j: int) -> None:
    """Names and numbers on the outer sides only."""
    last = i == len(names) - 1
    ax.tick_params(labelsize=7, labelbottom=last, labelleft=j == 0 and i > 0)
    ax.locator_params(nbins=3)
    if last:
        ax.set_xlabel(names[j], fontsize=9, parse_math=False)
    if j == 0 and i > 0:
        ax.set_ylabel(names[i], fontsize=9, parse_math=False)
    if i == j:
        ax.set_yticks([])
        ax.spines[["left", "top", "right"]].set_visible(False)
