"""One run of one test against one estimate, worked once and kept as JSON."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from simulators.files.records import read_record, record_path, write_record
from simulators.random import child_seed
from validation import as_posterior

from ....baselines.guest import guest
from .estimate import Recipe, estimate
from .judges import JUDGES, Question
from .parts import LocalPart

_KIND, _VERSION = "local_cell", 1
_ANSWERS = ("statistics", "p_values", "seconds", "error")


@dataclass(frozen=True)
class LocalCell:
    """Statistics and p-values of one test at the observations of a task, from one set of pairs."""

    part: str
    method: str
    num_train: int
    num_cal: int
    exact: bool
    """Whether q itself played the truth."""
    repetition: int
    seed_index: int
    """Which of the networks at this N_train."""
    seed: int
    settings: str
    statistics: tuple[float, ...] = ()
    p_values: tuple[float, ...] = ()
    seconds: float | None = None
    """CPU time; None before it is worked."""
    error: str | None = None
    """What the test raised, in one line."""


def asked_cells(part: LocalPart, methods: list[str], seed: int) -> list[list[LocalCell]]:
    """Cells to be worked, in groups that share calibration pairs; run by run.

    Each run holds everything once: a study that is stopped has a balanced table.
    """
    settings = f"{part.sizes}, max_epochs={part.max_epochs}"
    return [
        [
            LocalCell(part.label, method, train, num_cal, exact, run, index, seed, settings)
            for train, cal, exact in part.points()
            if cal == num_cal
        ]
        for run in range(part.repetitions)
        for index in range(part.num_seeds)
        for num_cal in part.num_cals
        for method in methods
    ]


def recipe(part: LocalPart, num_train: int, seed_index: int, seed: int) -> Recipe:
    """How the estimate of a cell is made."""
    own = child_seed(seed, 0, seed_index, num_train)
    return Recipe(part.estimates, num_train, own, max_epochs=part.max_epochs)


def work_cell(cell: LocalCell, part: LocalPart, folder: Path) -> None:
    """Ask the cell's test and keep its answer; an error costs this cell alone."""
    start = time.process_time()
    values = asdict(cell)
    try:
        how = recipe(part, cell.num_train, cell.seed_index, cell.seed)
        q = as_posterior(estimate(part.task, how, folder))
        pairs_seed = child_seed(cell.seed, 1, cell.seed_index, cell.repetition)
        question = Question(part.task, q, cell.exact, cell.num_cal, pairs_seed, part.sizes)
        # On one thread, because a sum of floats depends on how many threads share it.
        with guest(pairs_seed):
            values["statistics"], values["p_values"] = JUDGES[cell.method](question)
    except Exception as raised:  # whatever a test raises, the other cells go on
        values["error"] = f"{type(raised).__name__}: {' '.join(str(raised).split())}"
    values["seconds"] = round(time.process_time() - start, 3)
    write_record(cell_path(cell, folder), _KIND, _VERSION, values)


def stored_cell(asked: LocalCell, folder: Path) -> LocalCell | None:
    """The finished cell that ``folder`` holds for these settings; None where it is to be worked.

    A file that is damaged, or a cell that had an error, is worked again.
    """
    values = read_record(cell_path(asked, folder), _KIND, _VERSION)
    if values is None:
        return None
    try:
        kept = LocalCell(**values | {key: tuple(values[key]) for key in _ANSWERS[:2]})
    except (KeyError, TypeError):
        return None
    return kept if _request(kept) == _request(asked) else None


def cell_path(cell: LocalCell, folder: Path) -> Path:
    """Where the cell is kept: readable, and different for different settings."""
    kind = "level" if cell.exact else "power"
    words = f"{cell.part}--{cell.method}--{kind}--{cell.num_train}--{cell.num_cal}"
    words += f"--{cell.seed_index}-{cell.repetition}"
    return record_path(folder, words, json.dumps(_request(cell)))


def _request(cell: LocalCell) -> dict[str, Any]:
    """What was asked, without what came of it."""
    return {key: value for key, value in asdict(cell).items() if key not in _ANSWERS}
