"""Where batches are simulated: in this process, or in worker processes that may die alone."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from .base import Failure, SeededSimulator
from .batches import Batch, BatchResult, simulate_batch


class Engine(Protocol):
    """Carries batches to a simulator and brings the results back in the order submitted."""

    def run(self, simulator: SeededSimulator, batches: Iterator[Batch]) -> Iterator[BatchResult]:
        """Simulate every batch."""
        ...

    def close(self) -> None:
        """Let go of workers."""
        ...


@dataclass(frozen=True)
class InProcess:
    """One batch after the other, here: the fastest way for vectorised and compiled simulators."""

    def run(self, simulator: SeededSimulator, batches: Iterator[Batch]) -> Iterator[BatchResult]:
        """Simulate every batch."""
        return (simulate_batch(simulator, batch) for batch in batches)

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass(frozen=True)
class Processes:
    """Worker processes: a simulation that hangs or kills its worker costs itself alone.

    ``pebble`` is the pool that survives both (its workers are replaced). Workers start from a
    clean server process, so the simulator must be importable or picklable.

    Args:
        workers: number of processes.
        timeout: seconds one simulation may take; unlimited when omitted.
    """

    workers: int
    timeout: float | None = None
    _pool: list[Any] = field(default_factory=list, repr=False)

    def run(self, simulator: SeededSimulator, batches: Iterator[Batch]) -> Iterator[BatchResult]:
        """Simulate every batch."""
        pending = [(batch, self._submit(simulator, batch)) for batch in batches]
        for batch, future in pending:
            yield self._collect(simulator, batch, future)

    def close(self) -> None:
        """Stop the workers."""
        while self._pool:
            pool = self._pool.pop()
            pool.stop()
            pool.join()

    def _submit(self, simulator: SeededSimulator, batch: Batch) -> Future[BatchResult]:
        if not self._pool:
            self._pool.append(self._start())
        limit = None if self.timeout is None else self.timeout * len(batch.theta)
        future: Future[BatchResult] = self._pool[0].schedule(
            _work, args=(simulator, batch), timeout=limit
        )
        return future

    def _start(self) -> Any:
        import multiprocessing

        from pebble import ProcessPool

        context = multiprocessing.get_context("forkserver")
        return ProcessPool(max_workers=self.workers, context=context)

    def _collect(
        self, simulator: SeededSimulator, batch: Batch, future: Future[BatchResult]
    ) -> BatchResult:
        from pebble import ProcessExpired

        try:
            return future.result()
        except TimeoutError:
            reason = f"timeout: no result within {self.timeout} s"
        except ProcessExpired as error:
            reason = f"worker died: exit code {error.exitcode}"
        if len(batch.theta) == 1:
            failure = Failure(batch.first_row, reason)
            none = torch.empty(0, dtype=torch.long)
            return BatchResult(batch.first_row, none, torch.empty(0, 0), (failure,))
        # The fault is one row's: its neighbours are simulated again, each on its own.
        from .batches import join

        rows = [
            Batch(batch.first_row + i, batch.theta[i : i + 1], batch.seed)
            for i in range(len(batch.theta))
        ]
        return join(batch.first_row, list(self.run(simulator, iter(rows))))


def _work(simulator: SeededSimulator, batch: Batch) -> BatchResult:
    torch.set_num_threads(1)
    return simulate_batch(simulator, batch)


def open_engine(workers: int, timeout: float | None) -> Engine:
    """The engine for a number of workers: in process for one without a timeout."""
    if workers < 1:
        raise ValueError(f"`workers` must be at least 1; got {workers}.")
    if workers == 1 and timeout is None:
        return InProcess()
    return Processes(workers, timeout)
