"""Work what is missing, over processes and until the minutes are up; rates of what there is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from validation.laboratory.rates import clopper_pearson
from validation.posteriors.protocol import progress_bar

from ..experiment import Place
from .cells import LocalCell, asked_cells, recipe, stored_cell, work_cell
from .estimate import estimate
from .parts import LocalPart

Point = tuple[str, int, int, bool]
"""Test, N_train, N_cal, whether q played the truth."""


@dataclass(frozen=True)
class LocalRate:
    """How often one test rejects one estimate, and its statistic, over runs and observations."""

    method: str
    num_train: int
    num_cal: int
    exact: bool
    runs: int
    rejections: int
    decisions: int
    """Runs times observations."""
    rate: float
    interval: tuple[float, float]
    """95%: Clopper-Pearson over the decisions, widened to the mean ± 2 standard errors over runs
    where that is more, for the decisions of one run share a classifier."""
    rates: tuple[float, ...]
    """At each observation; the paper draws their standard deviation."""
    statistic: float
    """Mean over runs and observations."""
    statistic_error: float
    """Its standard error over runs; 0 for a single run."""
    statistics: tuple[float, ...]
    """At each observation, means over runs."""
    seconds: float
    """CPU time of one run, on average."""


@dataclass(frozen=True)
class LocalStudy:
    """The cells of one part that have been worked."""

    part: LocalPart
    methods: tuple[str, ...]
    cells: tuple[LocalCell, ...]
    num_asked: int
    """Cells of the whole part."""

    def rate(self, point: Point, alpha: float = 0.05) -> LocalRate | None:
        """The rate at a point; None where no run of it has been worked."""
        cells = [c for c in self.cells if _point(c) == point and c.error is None]
        if not cells:
            return None
        rejected = np.array([cell.p_values for cell in cells]) <= alpha
        statistics = np.array([cell.statistics for cell in cells])
        count, total = int(rejected.sum()), rejected.size
        low, high = clopper_pearson(count, total)
        rate, reach = count / total, 2 * _standard_error(rejected.mean(axis=1))
        return LocalRate(
            *point, len(cells), count, total, rate,
            (max(0.0, min(low, rate - reach)), min(1.0, max(high, rate + reach))),
            tuple(rejected.mean(axis=0).tolist()), float(statistics.mean()),
            _standard_error(statistics.mean(axis=1)), tuple(statistics.mean(axis=0).tolist()),
            sum(c.seconds or 0.0 for c in cells) / len(cells),
        )  # fmt: skip

    def rates(self) -> list[LocalRate]:
        """Every point that has a run."""
        points = dict.fromkeys(_point(cell) for cell in self.cells)
        found = [self.rate(point) for point in sorted(points, key=self._order)]
        return [rate for rate in found if rate is not None]

    def over_train(self, method: str) -> list[LocalRate]:
        """Power over N_train, at the most pairs."""
        most = self.part.num_cals[-1]
        return self._curve((method, train, most, False) for train in self.part.num_trains)

    def over_cal(self, method: str) -> list[LocalRate]:
        """Power over N_cal."""
        train = self.part.num_train
        return self._curve((method, train, cal, False) for cal in self.part.num_cals)

    def type_one(self, method: str) -> list[LocalRate]:
        """Type I error over N_cal."""
        train = self.part.num_train
        return self._curve((method, train, cal, True) for cal in self.part.num_cals)

    @property
    def errors(self) -> list[str]:
        """What cells raised, each message once."""
        raised = (f"{c.part}, {c.method}: {c.error}" for c in self.cells if c.error is not None)
        return list(dict.fromkeys(raised))

    def _curve(self, points: Iterable[Point]) -> list[LocalRate]:
        return [rate for point in points if (rate := self.rate(point)) is not None]

    def _order(self, point: Point) -> tuple[bool, int, int, int]:
        method, train, cal, exact = point
        return exact, cal, train, self.methods.index(method)


def study(parts: Sequence[LocalPart], methods: list[str], place: Place) -> list[LocalStudy]:
    """Train the estimates that are missing, work the cells that are missing.

    ``methods`` are names of :data:`~.judges.JUDGES`.
    """
    folder = place.cells
    folder.mkdir(parents=True, exist_ok=True)
    asked = {part.label: asked_cells(part, methods, place.seed) for part in parts}
    recipes = [
        (part.task, recipe(part, num_train, index, place.seed), folder)
        for part in parts
        for index in range(part.num_seeds)
        for num_train in sorted({train for train, _, _ in part.points()})
    ]
    untrained = [job for job in recipes if not job[1].path(folder).is_file()]
    _in_processes(estimate, untrained, "training", place)
    # Run by run over all parts, not part by part: what is stopped early is balanced.
    groups = [
        (group, part, folder)
        for part in parts
        for group in asked[part.label]
        if _missing(group, folder)
    ]
    groups.sort(key=lambda job: job[0][0].repetition)
    _in_processes(_work_group, groups, "testing", place)
    return [_collected(part, methods, asked[part.label], folder) for part in parts]


def _in_processes(
    work: Callable[..., object], jobs: Sequence[tuple[Any, ...]], label: str, place: Place
) -> None:
    """Do the jobs, none of which is begun when the time is up."""
    from joblib import Parallel, delayed

    calls = (delayed(_quietly)(work, *job) for job in jobs if place.seconds_left > 0.0)
    with progress_bar(len(jobs), label, place.progress) as advance:
        n = place.workers
        for _ in Parallel(n_jobs=n, return_as="generator_unordered", pre_dispatch=n)(calls):
            advance()


def _quietly(work: Callable[..., object], *job: Any) -> None:
    """What a job gives is on the disk: nothing travels back."""
    work(*job)


def _work_group(group: list[LocalCell], part: LocalPart, folder: Path) -> None:
    for cell in _missing(group, folder):
        work_cell(cell, part, folder)


def _missing(group: list[LocalCell], folder: Path) -> list[LocalCell]:
    kept = ((cell, stored_cell(cell, folder)) for cell in group)
    return [cell for cell, known in kept if known is None or known.error is not None]


def _collected(
    part: LocalPart, methods: list[str], asked: list[list[LocalCell]], folder: Path
) -> LocalStudy:
    wanted = [cell for group in asked for cell in group]
    found = [stored_cell(cell, folder) for cell in wanted]
    return LocalStudy(part, tuple(methods), tuple(c for c in found if c is not None), len(wanted))


def _standard_error(by_run: NDArray[np.float64]) -> float:
    return float(by_run.std(ddof=1)) / len(by_run) ** 0.5 if len(by_run) > 1 else 0.0


def _point(cell: LocalCell) -> Point:
    return cell.method, cell.num_train, cell.num_cal, cell.exact
