"""The pictures of an experiment: marginals of every method, pairs, rounds, and predictions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from ...support import Support
from ..report.density import Ends, curve, levels_of_mass, surface, view
from .cells import Cell
from .experiment import Experiment
from .methods import PAPER_GENERATORS
from .study import FLOOR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXACT = "#000000"
_ABI = "#D55E00"
# Okabe & Ito's colours, and lines that tell them apart in grey.
_STYLES: Mapping[str, tuple[str, Any]] = {
    "abi": (_ABI, "-"),
    "abi_paper": ("#E69F00", "-"),
    "abi_paper_potnet": ("#E69F00", ":"),
    "abi_paper_mixture": ("#E69F00", "--"),
    "abi_paper_wgan": ("#E69F00", "-."),
    "snpe": ("#0072B2", "-"),
    "snpe_1": ("#0072B2", ":"),
    "snle": ("#009E73", "-"),
    "snle_1": ("#009E73", ":"),
    "smc_abc": ("#CC79A7", "-"),
    "wabc": ("#56B4E9", "-"),
    "abc_ss": ("#000080", "-."),
    "wgan_gp": ("#8B4513", "-."),
    "rejection_abc": ("#999999", "-"),
}
_OTHER = ("#556B2F", "-.")
_SHARES = (0.5, 0.9)
_COLUMNS = 4
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
    of_abi: list[str] = [m for m in ("abi", *PAPER_GENERATORS) if m in shown]
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
    return paths


def draw_marginals(
    experiment: Experiment, shown: Mapping[str, Any], exact: Tensor | None, path: Path
) -> Path:
    """Marginal densities: a panel a parameter, a line a method, the exact posterior dashed."""
    from matplotlib.figure import Figure

    names = experiment.problem.task.parameter_names
    rows = -(-len(names) // _COLUMNS)
    columns = -(-len(names) // rows)
    figure = Figure(figsize=(max(_INCHES * columns, 5.0), 2.7 * rows + 1.2), layout="constrained")
    panels = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    draws = {method: kept["samples"] for method, (_, kept) in shown.items()}
    cell = next(iter(shown.values()))[0]
    truth = experiment.truth(cell.observation)
    ends = _ends(experiment)
    for j, ax in enumerate(panels[: len(names)]):
        parts = {method: part[:, j] for method, part in draws.items()}
        _marginals(ax, parts, None if exact is None else exact[:, j], ends[j])
        if exact is None and truth is not None:
            ax.axvline(float(truth[j]), color=EXACT, linestyle="--", linewidth=1.4, label="truth")
        ax.set_xlabel(names[j])
    for ax in panels[len(names) :]:
        ax.set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    # A method that is not held to the budget says what it took.
    beyond = {m: f"{m} ({c.calls:,} calls)" for m, (c, _) in shown.items() if c.calls > c.budget}
    labels = [beyond.get(label, label) for label in labels]
    across = min(len(labels), 2 * columns)
    figure.legend(handles, labels, loc="outside lower center", ncols=across, frameon=False)
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
        colour, line = _STYLES.get(method, _OTHER)
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
    _bare(ax)


def draw_pairs(
    experiment: Experiment, cell: Cell, samples: Tensor, exact: Tensor | None, path: Path
) -> Path:
    """Pairs of parameters: regions of 50% and 90% of ABI's draws, contours of the exact ones."""
    from matplotlib.figure import Figure

    names = experiment.problem.task.parameter_names
    dim = len(names)
    side = max(1.9, 5.4 / dim)
    figure = Figure(figsize=(side * dim + 0.6, side * dim + 0.9), layout="constrained")
    panels = figure.subplots(dim, dim, squeeze=False)
    ends = _ends(experiment)
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
    grids = [np.linspace(*span, 49)[:-1] + (span[1] - span[0]) / 96 for span in spans]
    density = surface(ours[0], ours[1], spans)
    half, most = levels_of_mass(density, _SHARES)
    top = float(density.max()) * 1.001
    if most < half < top:
        ax.contourf(*grids, density, levels=[most, half, top], colors=[_ABI] * 2, alpha=0.25)
        ax.contourf(*grids, density, levels=[half, top], colors=[_ABI], alpha=0.35)
    if theirs is not None:
        exact = surface(theirs[0], theirs[1], spans)
        levels = sorted(set(levels_of_mass(exact, _SHARES)))
        ax.contour(*grids, exact, levels=levels, colors=EXACT, linestyles="--", linewidths=1.0)
    ax.set(xlim=spans[0], ylim=spans[1])


def _diagonal(ax: Axes, ours: Any, theirs: Any, span: Ends, ends: Ends) -> None:
    grid, density = curve(ours, span, ends)
    ax.fill_between(grid, density, color=_ABI, alpha=0.3, linewidth=0)
    ax.plot(grid, density, color=_ABI, linewidth=1.4)
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
        ax.set_xlabel(names[j], fontsize=9)
    if j == 0 and i > 0:
        ax.set_ylabel(names[i], fontsize=9)
    if i == j:
        ax.set_yticks([])
        ax.spines[["left", "top", "right"]].set_visible(False)


def draw_rounds(
    experiment: Experiment, rounds: Mapping[str, Any], exact: Tensor | None, path: Path
) -> Path:
    """Tolerance and distance after each round, and the marginals of ABI as they move."""
    from matplotlib.figure import Figure

    names = experiment.problem.task.parameter_names
    told = 1 if exact is None else 2  # panels before the marginals
    columns = told + min(len(names), 5)
    figure = Figure(figsize=(2.8 * columns, 3.5), layout="constrained")
    panels = figure.subplots(1, columns)
    for method, (cell, _) in rounds.items():
        colour, line = _STYLES[method]
        numbers = [record["round"] for record in cell.details["rounds"]]
        tolerances = [record["tolerance"] for record in cell.details["rounds"]]
        panels[0].plot(numbers, tolerances, "o", linestyle=line, color=colour, label=method)
        if exact is not None:
            distances = cell.details["w1_by_round"]
            panels[1].plot(numbers, distances, "o", linestyle=line, color=colour, label=method)
    panels[0].set(xlabel="round", ylabel="tolerance, in units of its network")
    drawn = [value for line in panels[0].lines for value in line.get_ydata()]
    if max(drawn) > 10 * min(drawn):
        panels[0].set_yscale("log")  # within a decade its labels are crowded
    else:
        panels[0].set_ylim(bottom=0.0)
    if exact is not None:
        panels[1].set(xlabel="round", ylabel="W1 to the exact posterior, sds")
        panels[1].set_ylim(bottom=0.0)
    for ax in panels[:told]:
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=8)
    method, (_, draws) = max(rounds.items(), key=lambda item: len(item[1][0].details["rounds"]))
    _by_round(experiment, draws, exact, panels[told:])
    dashed = ", the exact posterior dashed" if exact is not None else ""
    figure.suptitle(f"After each round; densities: {method}, light to dark{dashed}", fontsize=10)
    figure.savefig(path, dpi=110)
    return path


def _by_round(
    experiment: Experiment, draws: Mapping[str, Tensor], exact: Tensor | None, panels: Any
) -> None:
    from matplotlib import colormaps

    names = experiment.problem.task.parameter_names
    ends = _ends(experiment)
    stages = [draws[key] for key in sorted(draws) if key.startswith("round_")]
    for j, ax in enumerate(panels):
        last = (stages[-1] if exact is None else exact)[:, j].double().numpy()
        low, high = view([last], ends[j], tail=0.005)
        span = max(low - 0.8 * (high - low), ends[j][0]), min(high + 0.8 * (high - low), ends[j][1])
        for t, stage in enumerate(stages, start=1):
            shade = colormaps["Oranges"](0.25 + 0.65 * t / len(stages))
            ax.plot(*curve(stage[:, j].double().numpy(), span, ends[j]), color=shade, linewidth=1.6)
        if exact is not None:
            ax.plot(*curve(last, span, ends[j]), "--", color=EXACT, linewidth=1.4)
        ax.set_xlabel(names[j])
        ax.set_xlim(*span)
        ax.set_ylim(bottom=0.0)
        _bare(ax)


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
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.suptitle(f"What {cell.method} predicts; {cell.budget:,} calls", fontsize=10)
    figure.savefig(path, dpi=120)
    return path


def band(ax: Axes, steps: Any, paths: Any, observed: Any) -> None:
    """Central 50% and 90% of paths (n, T), their median, and what was observed (T,)."""
    low, left, middle, right, high = np.quantile(paths, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    ax.fill_between(steps, low, high, color=_ABI, alpha=0.18, linewidth=0, label="90%")
    ax.fill_between(steps, left, right, color=_ABI, alpha=0.35, linewidth=0, label="50%")
    ax.plot(steps, middle, color=_ABI, linewidth=1.2, label="median")
    ax.plot(steps, observed, ".", color=EXACT, markersize=5, label="observed")
    ax.spines[["top", "right"]].set_visible(False)


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


def _ends(experiment: Experiment) -> list[Ends]:
    """The ends of the prior's support, a pair a parameter."""
    task = experiment.problem.task
    support = Support.of(task.prior, task.theta_dim)
    return list(zip(support.lower.tolist(), support.upper.tolist(), strict=True))


def _bare(ax: Axes) -> None:
    ax.set_yticks([])
    ax.locator_params(axis="x", nbins=4)
    ax.spines[["left", "right", "top"]].set_visible(False)
