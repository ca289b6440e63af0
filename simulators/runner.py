"""Run many simulations: in order, reproducible, and no fault costs more than its own row."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .base import Failure, SeededSimulator, Simulations
from .given.function import as_seeded
from .random import fresh_seed, stream_seed
from .running.batches import BatchResult, FloatArray, any_cut, join
from .running.cuts import Pace, cut_by_rows, cut_by_time
from .running.engines import Engine, Workers, open_engine
from .running.progress import Progress
from .store.folder import identify, to_simulations
from .store.writer import Store, open_store

_MIN_ROWS_TO_JUDGE = 50
_SIGMAS_TO_JUDGE = 4.0


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
    """Simulate every row of ``theta``.

    The result is a function of ``(simulator, theta, seed)`` alone, whatever the engine, the
    number of workers, and the interruptions between. A row that raises, returns NaN or Inf or a
    wrong number of values, outlasts ``timeout`` or kills its worker is left out, and listed in
    ``failures`` with the reason and its theta. A simulator may offer ``failure_reason(theta_row,
    x_row)`` to say why a row is not finite.

    A store remembers its simulator: the name, the plain settings (fields of a dataclass but those
    with ``compare=False``, arguments of a ``functools.partial``) and a digest of its own code and
    of the plain values that come with it (defaults, attributes and what it closes over, but no
    whole numbers and lists there, which may count calls). Another name, other settings, or other
    code of a lambda or under that name in another module are another simulator, which is refused.
    Other code alone may be a mended bug: the run goes on with the rows it has, and warns.

    Args:
        simulator: callable theta (n, d) -> x (n, p); a task, a command, or a plain batched
            function. For one of another form see :func:`simulators.from_function`.
        theta: parameters, (n, d).
        workers: simulations at a time; 1 runs in this process unless a timeout is set. Or the
            cluster that simulates: the address of a ``dask`` scheduler, such as "tcp://host:8786",
            its ``Client``, or a cluster of dask.
        engine: ``"in-process"``, ``"processes"``, ``"distributed"``, the address of a ``dask``
            scheduler or its ``Client``, or an open engine
            (:func:`simulators.running.engines.open_engine`), which stays open.
        timeout: seconds one simulation may take; None or infinity for any time. A plain batched
            function is timed by the batch: a slow row that quick ones make up for is kept.
        seed: seed of the noise; a fresh one is drawn and recorded when omitted.
        store: a folder in which every finished simulation is kept. A run that finds it there goes
            on where the last one ended; failures are kept too, and not tried again
            (:func:`simulators.forget_failures` changes that).
        progress: show a bar when the run takes more than a second and someone is there to see it.
        max_failure_fraction: share of failures, in [0, 1], above which the run is stopped, as
            soon as that is beyond doubt.

    Raises:
        ValueError: if ``theta`` is not (n, d), if the store holds simulations of another theta,
            seed or simulator, or if more than ``max_failure_fraction`` of the simulations failed.

    Warns:
        UserWarning: if the store holds simulations of other code of the same simulator.
    """
    rows = _as_rows(theta)
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
        judge = _Judge(len(rows), max_failure_fraction, store)
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

    def __init__(self, num_rows: int, limit: float, store: object) -> None:
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
        example = f" The first, row {first.index}: {first.reason}." if first else ""
        shape = first is None or first.reason.startswith("wrong shape")
        hint = (
            " A simulator that takes one parameter at a time is wrapped with "
            "simulators.from_function(f, prior)."
        )
        kept = (
            f" All {self.done} results are kept in {self._store}; to have the failures tried "
            "again, call simulators.forget_failures on it."
        )
        raise ValueError(
            f"`simulator` failed for {self.failed} of the {self.done} parameters tried, more "
            f"than the {self._limit:.0%} that `max_failure_fraction` allows.{example}"
            f"{hint if shape else ''}{kept if self._store is not None else ''}"
        )


def _as_rows(theta: Tensor) -> FloatArray:
    rows = torch.as_tensor(theta).detach().to("cpu", torch.float32)
    if rows.ndim != 2:
        raise ValueError(
            f"`theta` must have shape (n, d), one row a simulation; got {tuple(rows.shape)}."
        )
    return np.ascontiguousarray(rows.numpy())
