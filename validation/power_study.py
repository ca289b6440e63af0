"""How often does a test reject? Level and power over strengths, with intervals, resumable."""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .perturbations import Failure, find_failure
from .posteriors import progress_bar
from .power_cells import PowerCell, asked_cell, stored_cell, work_cell
from .trials import Trial, named_trials, settings_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class PowerRate:
    """The rejection rate of one test at one strength."""

    method: str
    strength: float
    rejections: int
    repetitions: int
    """Over all seeds, without those of cells that had an error."""
    rate: float | None
    """None where every cell had an error, or there was no time for any."""
    interval: tuple[float, float]
    """Clopper-Pearson, 95%; with several repetitions a trained network, given those networks."""
    seed_rates: tuple[float, ...]
    """One a seed: their spread holds what training adds."""
    standard_error: float | None
    """Of the mean over seeds, as the papers print; None for fewer than 2."""
    seconds: float | None
    """CPU time of one repetition, on average."""
    errors: tuple[str, ...]
    """What the cells raised."""


@dataclass(frozen=True)
class PowerStudy:
    """Tests by strengths by seeds of one failure."""

    failure: str
    cells: tuple[PowerCell, ...]
    """In the order of methods, strengths, seeds, whatever the order of the work."""

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the tests."""
        return tuple(dict.fromkeys(cell.method for cell in self.cells))

    @property
    def strengths(self) -> tuple[float, ...]:
        """Strengths, ascending."""
        return tuple(sorted({cell.strength for cell in self.cells}))

    def rate(self, method: str, strength: float, alpha: float = 0.05) -> PowerRate:
        """The rate at which ``method`` rejects at level ``alpha`` in (0, 1).

        Raises:
            ValueError: if the study has no such test or no such strength.
        """
        _check_alpha(alpha)
        cells = [c for c in self.cells if (c.method, c.strength) == (method, float(strength))]
        known = cells or (method in self.methods and float(strength) in self.strengths)
        if not known:
            raise ValueError(
                f"`method` and `strength` must be of this study; got {method!r} at {strength}."
            )
        good = [cell for cell in cells if cell.error is None]
        counts = [sum(p <= alpha for p in cell.p_values) for cell in good]
        total, rejections = sum(len(cell.p_values) for cell in good), sum(counts)
        by_seed = tuple(k / len(c.p_values) for k, c in zip(counts, good, strict=True))
        spread = float(np.std(by_seed, ddof=1)) / len(by_seed) ** 0.5 if len(by_seed) > 1 else None
        seconds = sum(cell.seconds or 0.0 for cell in good) / total if total else None
        return PowerRate(
            method, float(strength), rejections, total, rejections / total if total else None,
            clopper_pearson(rejections, total), by_seed, spread, seconds,
            tuple(cell.error for cell in cells if cell.error is not None),
        )  # fmt: skip

    def rates(self, alpha: float = 0.05) -> list[PowerRate]:
        """Every test at every strength."""
        _check_alpha(alpha)
        pairs = dict.fromkeys((cell.method, cell.strength) for cell in self.cells)
        return [self.rate(method, strength, alpha) for method, strength in pairs]

    def smallest_strength(
        self, method: str, power: float = 0.8, alpha: float = 0.05
    ) -> float | None:
        """The smallest strength above 0 whose observed power is ``power`` or more; None if none.

        Raises:
            ValueError: if the study has no such test, or every cell of it above 0 had an error.
        """
        if not 0.0 <= power <= 1.0:
            raise ValueError(f"`power` must lie in [0, 1]; got {power}.")
        rates = [self.rate(method, strength, alpha) for strength in self.strengths]
        wrong = [rate for rate in rates if rate.strength > 0]
        errors = [error for rate in wrong for error in rate.errors]
        if errors and all(rate.rate is None for rate in wrong):
            raise ValueError(f"`method`: {method!r} had an error in every cell: {errors[0]}")
        seen = [rate.strength for rate in wrong if rate.rate is not None and rate.rate >= power]
        return min(seen, default=None)

    def to_dict(self, alpha: float = 0.05) -> dict[str, Any]:
        """Rates and settings, JSON's types only."""
        self._refuse_empty()
        return {
            "failure": self.failure,
            "alpha": alpha,
            "seed": self.cells[0].seed,
            "num_pairs": self.cells[0].num_pairs,
            "settings": {cell.method: cell.settings for cell in self.cells},
            "rates": [_plain(rate) for rate in self.rates(alpha)],
        }

    def plot(
        self, ax: Axes | None = None, alpha: float = 0.05, order: Sequence[str] | None = None
    ) -> Axes:
        """Draw power against strength with intervals; needs matplotlib.

        ``order`` names tests by whose places colours are given: one for several pictures.
        """
        from .power_plotting import plot_power

        self._refuse_empty()
        return plot_power(self, ax, alpha, order)

    def _refuse_empty(self) -> None:
        if not self.cells:
            raise ValueError("`minutes` left time for no cell of this study, and none was kept.")


def power(
    methods: Any,
    failure: Failure | str,
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
    """Measure how often tests reject an estimate that is wrong by a known amount.

    Repetition r of every test at every strength sees the same draws of the family, so that curves
    are compared on equal data. A cell (test, strength, seed) is the unit of work: it runs on one
    thread of one process, is kept as one JSON file, and is not worked again by a later call with
    the same settings. A test that raises costs its cell, whose ``error`` says why.

    Args:
        methods: one or several of: names in :data:`validation.METHODS`, functions,
            :class:`~validation.trials.WholeTest` with settings of their own, those of
            :mod:`~validation.trained_tests`; or a mapping to them from names of yours.
        failure: a :class:`~validation.perturbations.Failure`, or its name.
        strengths: not negative; the paper's when omitted.
        num_pairs: N, joint draws in a repetition.
        repetitions: in a cell, at least 1.
        num_seeds: cells a test and strength, each with data and networks of its own.
        seed: of everything.
        workers: processes.
        folder: where cells are kept and found again, by their settings (a function of yours by its
            module and name, a failure of yours by its name alone, which must change with its
            settings); nowhere when omitted.
        minutes: begin no cell after so many; a later call with the same ``folder`` goes on. The
            study is of the cells that there are: with 0, of those kept. No limit when omitted.
        progress: whether to show a bar with the time left.

    Returns:
        A :class:`PowerStudy`; the same for any number of workers, interrupted or not.

    Raises:
        TypeError: if something in ``methods`` is no test.
        ValueError: if another argument is not as described, or if a test whose cells are to be kept
            has settings that cannot be read.

    >>> study = power("sbc", "covariance", [0.0, 3.0], repetitions=20)
    >>> study.rate("sbc", 3.0).rate
    1.0
    """
    num_pairs, repetitions = _whole("num_pairs", num_pairs), _whole("repetitions", repetitions)
    num_seeds, workers = _whole("num_seeds", num_seeds), _whole("workers", workers)
    seed = _whole("seed", seed, least=0)
    if minutes is not None and not minutes >= 0:
        raise ValueError(f"`minutes` must be 0 or more, or None; got {minutes}.")
    wrong = find_failure(failure)
    places = _checked_strengths(wrong.strengths if strengths is None else strengths)
    trials = named_trials(methods)
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


def clopper_pearson(
    rejections: int, repetitions: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Exact interval of a proportion; (0, 1) without repetitions.

    Source: Clopper & Pearson (1934).
    """
    from scipy.special import betaincinv

    tail, missed = (1 - confidence) / 2, repetitions - rejections
    low = float(betaincinv(rejections, missed + 1, tail)) if rejections else 0.0
    high = float(betaincinv(rejections + 1, missed, 1 - tail)) if missed else 1.0
    return low, high


def _whole(argument: str, value: Any, least: int = 1) -> int:
    """A Python int, for numpy's are not JSON's."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ValueError(f"`{argument}` must be a whole number of at least {least}; got {value!r}.")
    return number


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


def _check_alpha(alpha: float) -> None:
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"`alpha` must lie between 0 and 1; got {alpha}.")


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


def _plain(rate: PowerRate) -> dict[str, Any]:
    return {key: list(v) if isinstance(v, tuple) else v for key, v in vars(rate).items()}
