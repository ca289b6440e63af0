"""The pictures of an experiment: marginals of every method, pairs, rounds, and predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ....pictures.density import Ends, curve, view
from ....pictures.style import legend_below
from ...engine.cells import Cell
from ...engine.pictures import panels_of
from ...engine.study import FLOOR
from ..experiment import Experiment
from ..methods import PAPER_GENERATORS, RAW, UNCOUNTED
from .pairs import draw_pairs
from .predictive import draw_predictive, draw_trajectories
from .rounds import draw_rounds
from .style import EXACT, OTHER, STYLES, bare, ends_of, grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INCHES = 3.0


def draw_all(experiment: Experiment, cells: Sequence[Cell], folder: Path) -> list[Path]:
    """Every picture that the cells have something for, at the first observation and seed."""
    shown = dict(_shown(experiment, cells))
    if not shown:
        return []
    first = next(iter(shown.values()))[0]
    exact = experiment.exact(first.observation)
    name = experiment.problem.name
    paths = [draw_marginals(experiment, shown, exact, folder / f"{name}.png")]
    close: dict[str, Any] = {m: shown[m] for m in ("abi", "wgan_gp") if m in shown}
    if exact is not None and "abi" in close:  # Figures 2 and 7
        paths.append(draw_marginals(experiment, close, exact, folder / f"{name}-close.png"))
    of_abi: list[str] = [m for m in ("abi", *PAPER_GENERATORS, UNCOUNTED, RAW) if m in shown]
    if of_abi:
        cell, draws = shown[of_abi[0]]
        if draws["samples"].shape[1] > 1:
            path = folder / f"{name}-pairs.png"
            paths.append(draw_pairs(experiment, cell, draws["samples"], exact, path))
        rounds = {m: shown[m] for m in of_abi}
        paths.append(draw_rounds(experiment, rounds, exact, folder / f"{name}-rounds.png"))
    if experiment.problem.series:
        method = of_abi[0] if of_abi else next(iter(shown))
        cell, draws = shown[method]
        path = folder / f"{name}-predictive.png"
        paths.append(draw_predictive(experiment, cell, draws["samples"], path))
        truth = experiment.truth(first.observation)
        if truth is not None:
            path = folder / f"{name}-trajectories.png"
            paths.append(draw_trajectories(experiment, first.observation, truth, path))
    return paths


def draw_marginals(
    experiment: Experiment, shown: Mapping[str, Any], exact: Tensor | None, path: Path
) -> Path:
    """Marginal densities: a panel a parameter, a line a method, the exact posterior dashed."""
    names = experiment.problem.task.parameter_names
    rows, columns = grid(len(names))
    size = max(_INCHES * columns, 5.0), 2.7 * rows + 1.2
    figure, panels = panels_of(*size, rows, columns, len(names))
    draws = {method: kept["samples"] for method, (_, kept) in shown.items()}
    cell = next(iter(shown.values()))[0]
    truth = experiment.truth(cell.observation)
    ends = ends_of(experiment)
    for j, ax in enumerate(panels.ravel()[: len(names)]):
        parts = {method: part[:, j] for method, part in draws.items()}
        _marginals(ax, parts, None if exact is None else exact[:, j], ends[j])
        if exact is None and truth is not None:
            ax.axvline(float(truth[j]), color=EXACT, linestyle="--", linewidth=1.4, label="truth")
        ax.set_xlabel(names[j], parse_math=False)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    # A method that is not held to the budget says what it took.
    beyond = {m: f"{m} ({c.calls:,} calls)" for m, (c, _) in shown.items() if c.calls > c.budget}
    labels = [beyond.get(label, label) for label in labels]
    legend_below(figure, handles, labels)
    figure.suptitle(f"{experiment.problem.title} ({cell.budget:,} calls)", fontsize=11)
    figure.savefig(path, dpi=120)
    return path


def _marginals(ax: Axes, parts: Mapping[str, Tensor], exact: Tensor | None, ends: Ends) -> None:
    known = {method: part.double().numpy() for method, part in parts.items()}
    # Methods that are far off set no axis: the exact posterior does, or ABI where there is none.
    frame = exact.double().numpy() if exact is not None else known.get("abi")
    if frame is None:
        frame = next(iter(known.values()))
    low, high = view([frame], ends, tail=0.005)
    reach = 0.6 * (high - low)
    span = (max(low - reach, ends[0]), min(high + reach, ends[1]))
    tops = {}
    for method, part in known.items():
        colour, line = STYLES.get(method, OTHER)
        grid, density = curve(part, span, ends, num=240)
        width = 2.2 if method == "abi" else 1.3
        ax.plot(grid, density, line, color=colour, linewidth=width, label=method)
        tops[method] = float(density.max())
    if exact is not None:
        grid, density = curve(exact.double().numpy(), span, ends, num=240)
        ax.plot(grid, density, "--", color=EXACT, linewidth=1.8, label="exact")
        height = 1.6 * float(density.max())
    else:  # nor do spikes of methods that are far off
        height = min(max(tops.values()), 2.5 * tops.get("abi", max(tops.values())))
    ax.set_ylim(0.0, 1.05 * height)
    ax.set_xlim(*span)
    bare(ax)


def _shown(
    experiment: Experiment, cells: Sequence[Cell]
) -> Iterator[tuple[str, tuple[Cell, dict[str, Tensor]]]]:
    """Of each method the cell of the first observation, the first seed and the largest budget."""
    good = [c for c in cells if not c.error and c.method != FLOOR]
    if not good:
        return
    least = min(c.observation for c in good)
    for method in dict.fromkeys(c.method for c in good):
        mine = [c for c in good if c.method == method and c.observation == least]
        if mine:
            cell = min(mine, key=lambda c: (-c.budget, c.seed))
            draws = experiment.draws(cell)
            if draws:  # else somebody took the file away
                yield method, (cell, draws)
