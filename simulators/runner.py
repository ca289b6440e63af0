"""Run many simulations: in order, reproducible, and no fault costs more than its own row."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
from torch import Tensor

from .base import Failure, SeededSimulator, Simulations, as_rows
from .given.function import as_seeded, declared_form, is_seeded
from .random import fresh_seed, stream_seed
from .running.batches import BatchResult, FloatArray, any_cut, join
from .running.cuts import Pace, cut_by_rows, cut_by_time
from .running.engines import Engine, Workers, open_engine
from .running.progress import Progress
from .store.folder import to_simulations
from .store.identity import identify
from .store.writer import Store, open_store

_MIN_ROWS_TO_JUDGE = 50
_SIGMAS_TO_JUDGE = 4.0
_SHOWN = 6  # parameters of a theta that a message names


def simulate(
    simulator: Callable[..., Any],
    theta: Tensor,
    *,
    workers: Workers = 1,
    engine: Engine | str | Any = None,
    timeout: float | None = None,
    seed: int | None = None,
    store: str | os.PathLike[str] | None = None,
    progress: bool = True,
    max_failure_fraction: float = 0.5,
) -> Simulations:
    """Simulate x for every row of theta, and say which simulations failed and why.

    A simulation fails if it raises an error, returns infinity, NaN (but from
    :func:`simulators.with_gaps`) or another number of values than most, takes longer than
    ``timeout``, or ends its worker process. The result depends on ``simulator``, ``theta`` and
    ``seed`` only, not on workers, engine or interruptions. A simulator may have a method
    ``failure_reason(theta_row, x_row)`` that says why a row is not finite.

    A ``store`` remembers its simulator: the name, its settings (fields of a dataclass but those
    with ``compare=False``, arguments of a ``functools.partial``), its code, and plain values that
    the code refers to, though not whole numbers and lists, which may count calls. A simulator with
    another name or other settings is refused, as is another lambda. If only the code has changed,
    which may be a mended bug, the run goes on with the rows it has, and warns.

    Args:
        simulator: a task, a command, or your own function of many theta (n, d) -> x (n, p). For a
            function of one theta see :func:`simulators.from_function`.
        theta: parameters, (n, d).
        workers: simulations at the same time; 1 runs in this process, unless there is a timeout.
        engine: where they run: ``"in-process"``, ``"processes"``, ``"distributed"``, the address
            of a ``dask`` scheduler or its ``Client``, or an engine of yours that stays open
            (:func:`simulators.running.engines.open_engine`).
        timeout: seconds after which a simulation counts as failed; no limit when omitted. Of a
            function of many theta a whole batch is timed, so one slow row may pass unnoticed.
        seed: of the noise; a new one is drawn, and recorded in the result, when omitted.
        store: folder that keeps every finished simulation. Run the same call again to go on after
            an interruption. Failures are kept too and not tried again, unless
            :func:`simulators.forget_failures` is called first.
        progress: show a progress bar in a terminal, if it takes more than a second.
        max_failure_fraction: stop with an error where a larger share fails, in [0, 1].

    Returns:
        The simulations that did not fail, in the order of ``theta``, and the failures.

    Raises:
        TypeError: if the simulator cannot be called, or theta are no numbers.
        ValueError: if ``theta`` is not (n, d); if the store holds simulations of another theta,
            seed or simulator; or if more than ``max_failure_fraction`` of the simulations failed.

    Warns:
        UserWarning: if the store holds simulations of other code of the same simulator.
    """
    rows: FloatArray = as_rows(theta).numpy()
    if not 0.0 <= max_failure_fraction <= 1.0:
        raise ValueError(f"`max_failure_fraction` must lie in [0, 1]; got {max_failure_fraction}.")
    seed = None if seed is None else stream_seed(seed)
    timeout = None if timeout == math.inf else timeout
    seeded = as_seeded(simulator)
    with ExitStack() as resources:
        kept: list[BatchResult] = []
        archive: Store | None = None
        if store is not None:
            archive = resources.enter_context(open_store(store, rows, seed, identify(seeded)))
            seed, kept = archive.seed, archive.kept
        seed = fresh_seed() if seed is None else seed
        plain = not is_seeded(simulator) and declared_form(simulator) is None
        judge = _Judge(rows, max_failure_fraction, store, plain)
        for result in kept:
            judge.consider(result)
        if judge.done < len(rows):
            bar = resources.enter_context(Progress(len(rows), judge.done, progress))
            for result in _run(seeded, rows, seed, kept, workers, engine, timeout, resources):
                kept.append(result)
                if archive is not None:
                    archive.append(result)
                judge.consider(result)
                bar.update(judge.done, judge.failed)
    return to_simulations(join(kept), rows, seed)


def _run(
    simulator: SeededSimulator,
    theta: FloatArray,
    seed: int,
    kept: list[BatchResult],
    workers: Workers,
    engine: Any,
    timeout: float | None,
    resources: ExitStack,
) -> Iterator[BatchResult]:
    """Simulate the rows that are not kept yet; results come as they complete."""
    given = isinstance(engine, Engine)
    opened: Engine = engine if given else open_engine(workers, timeout, engine)
    if not given:
        resources.callback(opened.close)
    missing = np.ones(len(theta), bool)
    for result in kept:
        missing[result.index] = False
        missing[[failure.index for failure in result.failures]] = False
    pace = Pace()
    if any_cut(simulator):
        batches = cut_by_time(theta, seed, missing, opened.workers, pace)
    else:
        batches = cut_by_rows(theta, seed, missing)
    results = opened.run(simulator, batches, timeout if given else None)
    resources.callback(getattr(results, "close", lambda: None))
    for result in results:
        pace.learn(result)
        yield result


class _Judge:
    """Counts rows and failures, and stops a run whose share of failures is beyond doubt too large.

    A row counts once, however often it comes: a plain batched function that goes on after an
    interruption simulates whole batches again. As in the result, values count before a failure.
    """

    def __init__(
        self, theta: FloatArray, limit: float, store: object, is_plain: bool = False
    ) -> None:
        num_rows = len(theta)
        self._theta, self._is_plain = theta, is_plain
        self.done = self.failed = 0
        self._finished = np.zeros(num_rows, bool)
        self._lost = np.zeros(num_rows, bool)
        self._num_rows, self._limit, self._store = num_rows, limit, store
        self._widths: dict[int, int] = {}
        self._failures = 0
        self._first: Failure | None = None

    def consider(self, result: BatchResult) -> None:
        """Count a result.

        Failures above ``limit`` times all rows are certain. Sooner, from 50 rows on, a share
        four standard errors above the limit is no accident of the rows that came first.
        """
        new = result.index[~self._finished[result.index]]
        if len(new):
            width = result.x.shape[1]
            self._widths[width] = self._widths.get(width, 0) + len(new)
        self._finished[new] = True
        self._failures -= int(self._lost[new].sum())
        self._lost[new] = False
        for failure in result.failures:
            if not (self._finished[failure.index] or self._lost[failure.index]):
                self._lost[failure.index] = True
                self._failures += 1
        self._first = min(
            (f for f in (self._first, *result.failures[:1]) if f is not None),
            key=lambda failure: failure.index,
            default=None,
        )
        finished = sum(self._widths.values())
        self.done = finished + self._failures
        self.failed = self.done - max(self._widths.values(), default=0)
        spread = math.sqrt(self._limit * (1.0 - self._limit) * self.done)
        doubtless = self._limit * self.done + _SIGMAS_TO_JUDGE * spread
        enough = self.done >= _MIN_ROWS_TO_JUDGE and self.failed > doubtless
        if enough or self.failed > self._limit * self._num_rows:
            self._stop()

    def _stop(self) -> None:
        first = self._first
        example, widths = "", sorted(self._widths)
        if first is not None:
            numbers = ", ".join(f"{value:.4g}" for value in self._theta[first.index][:_SHOWN])
            more = ", ..." if self._theta.shape[1] > _SHOWN else ""
            reason = first.reason.rstrip(".")
            example = (
                f" The first, row {first.index}, theta = [{numbers}{more}]: {reason}. Call it "
                "there to see why."
            )
            if reason.startswith("not finite"):
                example += " Where NaN is a value not measured: simulators.with_gaps(simulator)."
        elif len(widths) > 1:
            example = f" It gave {widths[0]} values of some theta and {widths[-1]} of others."
        hint = (
            " A simulator of one theta is wrapped: simulators.from_function(simulator, prior)."
            if self._is_plain
            else ""
        )
        kept = (
            f" All {self.done} results are kept in {self._store}; to have the failures tried "
            "again, call simulators.forget_failures on it."
        )
        raise ValueError(
            f"`simulator` failed for {self.failed} of the {self.done} theta tried, more than the "
            f"{self._limit:.0%} that `max_failure_fraction` allows.{example}{hint}"
            f"{kept if self._store is not None else ''}"
        )
