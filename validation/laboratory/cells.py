"""One cell of a study of power: a test at a strength with a seed, worked once and kept as JSON."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from simulators.files.records import read_record, record_path, write_record

from ..perturbations import Failure
from ..posteriors.pairs.repeats import told_of_repeats
from ..seeds import part_seed
from ..threads import one_thread
from .trials import Trial

_KIND, _VERSION = "power_cell", 3


@dataclass(frozen=True)
class PowerCell:
    """The p-values of one test of one failure at one strength from one seed."""

    failure: str
    method: str
    strength: float
    seed: int
    """Of the study."""
    seed_index: int
    """Which of the study's seeds: cells of one index share their data, whatever the test."""
    num_pairs: int
    """N, in every repetition."""
    repetitions: int
    """Asked for."""
    settings: str
    """Of the test, in words."""
    p_values: tuple[float, ...] = ()
    """One a repetition; none where the test raised."""
    seconds: float | None = None
    """CPU time of the cell, data included; None before it is worked."""
    error: str | None = None
    """What the test raised, in one line."""


def work_cell(cell: PowerCell, failure: Failure, trial: Trial, folder: Path | None) -> PowerCell:
    """Run the cell on one thread, and keep it in ``folder``; an error costs this cell alone.

    On one thread, so that the result is the same with any number of workers.
    """
    start = time.process_time()
    p_values: tuple[float, ...] = ()
    error = None
    try:
        with one_thread():
            task = failure.at(cell.strength)
            seed = part_seed(cell.seed, cell.seed_index)
            with told_of_repeats():  # a law of few images gives them again and again
                p_values = tuple(trial.p_values(task, cell.num_pairs, cell.repetitions, seed))
            _check_p_values(p_values)
    except Exception as raised:  # whatever a test raises, the other cells go on
        p_values = ()
        error = f"{type(raised).__name__}: {' '.join(str(raised).split())}"
    seconds = round(time.process_time() - start, 3)
    values = asdict(cell) | {"p_values": p_values, "seconds": seconds, "error": error}
    done = PowerCell(**values)
    if folder is not None:
        write_record(cell_path(done, folder), _KIND, _VERSION, asdict(done))
    return done


def asked_cell(
    failure: Failure,
    name: str,
    settings: str,
    strength: float,
    seed_index: int,
    sizes: tuple[int, int, int],
) -> PowerCell:
    """A cell that is yet to be worked.

    Args:
        failure: what it is of.
        name: of the test.
        settings: of the test, in words.
        strength: of the failure.
        seed_index: which of the study's seeds.
        sizes: num_pairs, repetitions and the study's seed.
    """
    num_pairs, repetitions, seed = sizes
    return PowerCell(
        failure.name, name, float(strength), seed, seed_index, num_pairs, repetitions, settings
    )


def stored_cell(asked: PowerCell, folder: Path | None) -> PowerCell | None:
    """The finished cell that ``folder`` holds for exactly these settings, or None.

    A file that is damaged, or a cell that had an error, is worked again.
    """
    values = None if folder is None else read_record(cell_path(asked, folder), _KIND, _VERSION)
    if values is None:
        return None
    try:
        kept = PowerCell(**values | {"p_values": tuple(values["p_values"])})
        _check_p_values(kept.p_values)
    except (KeyError, TypeError, ValueError):
        return None
    finished = kept.error is None and len(kept.p_values) == kept.repetitions
    return kept if finished and _request(kept) == _request(asked) else None


def cell_path(cell: PowerCell, folder: Path) -> Path:
    """Where the cell is kept: readable, and different for different settings."""
    words = f"{cell.failure}--{cell.method}--{cell.strength:g}--{cell.seed_index}"
    return record_path(folder, words, json.dumps(_request(cell)))


def _check_p_values(p_values: tuple[float, ...]) -> None:
    """NaN would count as not rejected."""
    for r, p in enumerate(p_values):
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"the p-value of repetition {r} must lie in [0, 1]; got {p}.")


def _request(cell: PowerCell) -> dict[str, Any]:
    """What was asked, without what came of it."""
    values = asdict(cell)
    return {key: values[key] for key in values if key not in ("p_values", "seconds", "error")}
