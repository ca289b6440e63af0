"""Run one experiment as the words of a command ask for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..engine.cells import Cell, CellFolder
from ..engine.study import planned
from .choice import chosen, numbers
from .experiment import NUM_DRAWN, Experiment, context
from .reproductions import reproduction

_QUICK_SAMPLES, _SAMPLES = 1_000, 2_000
_SEEDS = (0, 1, 2)


def run_reproduction(
    name: str,
    folder: Path,
    quick: bool,
    methods: str | None,
    budgets: str | None,
    observations: str,
    seeds: str | None,
    minutes: float,
    say: Callable[[str], None],
) -> tuple[Experiment, list[Cell]]:
    """The experiment, and its cells that are finished: those kept, and as many as time allows.

    Args:
        name: of the experiment.
        folder: where cells are kept.
        quick: few calls and draws, one seed.
        methods: names with commas between; all when omitted.
        budgets: numbers of calls with commas between; the paper's when omitted.
        observations: their numbers, 0 to 20, with commas between.
        seeds: with commas between; three when omitted, or one.
        minutes: after which no fit is begun.
        say: takes a line for each cell.

    Raises:
        ValueError: if a word stands for nothing, or no cell is finished.
    """
    problem = reproduction(name)
    num_samples = _QUICK_SAMPLES if quick else _SAMPLES
    experiment = Experiment(problem, CellFolder(folder, context(num_samples)), num_samples)
    wanted = chosen(methods, list(experiment.methods))
    calls = numbers(budgets, "--budgets", 1)
    calls = calls or [problem.quick_budget if quick else problem.budget]
    cells = planned(
        [problem.name],
        lambda model: wanted,
        lambda model: calls,
        numbers(observations, "--observations", 0, NUM_DRAWN),
        numbers(seeds, "--seeds", 0) or list(_SEEDS[:1] if quick else _SEEDS),
    )
    finished = experiment.run(cells, minutes, say)
    if not finished:  # and nothing that was written before is written over
        raise ValueError(f"`--minutes`: {minutes:g} left time for nothing, and no cell is kept.")
    return experiment, finished
