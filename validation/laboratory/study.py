"""How often does a test reject? Level and power over strengths, resumable."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from simulators.random import as_count, as_seed

from ..perturbations import Failure, find_failure
from ..posteriors.protocol import progress_bar
from .cells import PowerCell, asked_cell, stored_cell, work_cell
from .rates import PowerStudy
from .trials import Trial, named_trials, settings_of


def power(
    method: Any,
    family: Failure | str,
    strengths: Sequence[float] | None = None,
    *,
    num_pairs: int = 200,
    repetitions: int = 100,
    num_seeds: int = 1,
    seed: int = 0,
    workers: int = 1,
    folder: Path | str | None = None,
    minutes: float | None = None,
    progress: bool = False,
) -> PowerStudy:
    """How often do tests notice a posterior that is wrong by a known amount?

    All tests see the same draws in a repetition, at every strength, so that their rates can be
    compared. The unit of work is a cell: one test at one strength with one seed. A cell is kept as
    a JSON file, and a later call with the same settings finds it there. A test that raises an error
    loses its cell, which says why in ``error``.

    Args:
        method: one test or several: names in :data:`validation.METHODS`, functions
            ``(q, theta, x, *, seed)``, :class:`~validation.laboratory.trials.WholeTest`, which
            takes settings, or those of :mod:`~validation.laboratory.trained_tests`; or a dict of
            these by names of yours.
        family: in what way the posterior is wrong: a name, or a
            :class:`~validation.perturbations.Failure`.
        strengths: how wrong it is, 0 or more, where 0 is exact; those of the paper when omitted.
        num_pairs: N, pairs that a test is given.
        repetitions: tests in a cell, at least 1.
        num_seeds: cells for each test and strength, each with its own data and networks.
        seed: of everything random.
        workers: processes.
        folder: where cells are kept. They are found again by their settings; a function of yours
            by its module and name, a failure of yours by its name, so change the name with its
            settings. Nothing is kept when omitted.
        minutes: start no cell after so many minutes; a later call with the same ``folder`` goes on.
            0 only reads what is kept. No limit when omitted.
        progress: show a progress bar.

    Returns:
        A :class:`PowerStudy` of the cells that were worked: the same for any number of workers.

    Raises:
        TypeError: if something in ``method`` is no test.
        ValueError: if another argument is not as described, or cells of a test are to be kept whose
            settings cannot be read.

    >>> study = power("sbc", "covariance", [0.0, 3.0], repetitions=20)
    >>> study.rate("sbc", 3.0).rate
    1.0
    """
    # Python ints, for numpy's are not JSON's.
    num_pairs = as_count(num_pairs, "num_pairs", 1)
    repetitions = as_count(repetitions, "repetitions", 1)
    num_seeds, workers = as_count(num_seeds, "num_seeds", 1), as_count(workers, "workers", 1)
    seed = as_seed(seed)
    if minutes is not None and not minutes >= 0:
        raise ValueError(f"`minutes` must be 0 or more, or None; got {minutes}.")
    wrong = find_failure(family)
    places = _checked_strengths(wrong.strengths if strengths is None else strengths)
    trials = named_trials(method)
    settings = settings_of(trials, kept=folder is not None)
    sizes = (num_pairs, repetitions, seed)
    asked = [
        asked_cell(wrong, name, settings[name], strength, index, sizes)
        for name in trials
        for strength in dict.fromkeys(places)
        for index in range(num_seeds)
    ]
    place = None if folder is None else Path(folder)
    if place is not None:
        place.mkdir(parents=True, exist_ok=True)
    known = {cell: stored_cell(cell, place) for cell in asked}
    # A study that is stopped has every test at every strength before it has a second seed.
    missing = sorted((c for c in asked if known[c] is None), key=lambda cell: cell.seed_index)
    end = None if minutes is None else time.monotonic() + 60.0 * minutes
    with progress_bar(len(missing), wrong.name, progress) as advance:
        for cell, done in _worked(missing, wrong, trials, place, workers, end):
            known[cell] = done
            advance()
    return PowerStudy(wrong.name, tuple(done for done in known.values() if done is not None))


def _checked_strengths(strengths: Any) -> tuple[float, ...]:
    try:
        values = tuple(float(strength) for strength in strengths)
    except (TypeError, ValueError):
        values = ()
    if not values or not all(0 <= value < math.inf for value in values):
        raise ValueError(
            f"`strengths` must be a list of finite numbers of 0 or more; got {strengths!r}."
        )
    return values


def _worked(
    missing: list[PowerCell],
    failure: Failure,
    trials: Mapping[str, Trial],
    folder: Path | None,
    workers: int,
    end: float | None,
) -> Iterator[tuple[PowerCell, PowerCell]]:
    """Each cell begun before ``end`` and what came of it, as they finish."""
    in_time = takewhile(lambda _: end is None or time.monotonic() < end, enumerate(missing))
    if workers == 1 or len(missing) < 2:
        for _, cell in in_time:
            yield cell, work_cell(cell, failure, trials[cell.method], folder)
        return
    from joblib import Parallel, delayed

    jobs = (delayed(_numbered)(k, c, failure, trials[c.method], folder) for k, c in in_time)
    for k, done in Parallel(n_jobs=workers, return_as="generator_unordered")(jobs):
        yield missing[k], done


def _numbered(number: int, *job: Any) -> tuple[int, PowerCell]:
    return number, work_cell(*job)
