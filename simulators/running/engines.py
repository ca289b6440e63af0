"""Where batches are simulated: in this process, in worker processes, or on other machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol, runtime_checkable

from ..base import SeededSimulator
from ..random import as_count
from .batches import Batch, BatchResult, simulate_batch

NAMES = ("in-process", "processes", "distributed")


@runtime_checkable
class Engine(Protocol):
    """Carries batches to a simulator. Open one and reuse it: workers stay between runs."""

    @property
    def workers(self) -> int:
        """How many batches are simulated at a time."""
        ...

    def run(
        self, simulator: SeededSimulator, batches: Iterator[Batch], timeout: float | None = None
    ) -> Iterator[BatchResult]:
        """Simulate every batch, taken from the iterator when there is room for it.

        Results come as they complete, one or more a batch. Closing the iterator that brings them
        gives up what is going on.
        """
        ...

    def close(self) -> None:
        """Let go of workers."""
        ...


@dataclass(frozen=True)
class InProcess:
    """One batch after the other, here: the fastest way for vectorised and compiled simulators."""

    workers = 1

    def run(
        self, simulator: SeededSimulator, batches: Iterator[Batch], timeout: float | None = None
    ) -> Iterator[BatchResult]:
        """Simulate every batch."""
        if timeout is not None:
            raise ValueError(
                f"`timeout` needs a simulation that can be stopped, so worker processes; got "
                f"timeout={timeout:g} with an open in-process engine. Open another with "
                "open_engine(workers, timeout), or pass no engine."
            )
        return (result for batch in batches for result in simulate_batch(simulator, batch))

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass(frozen=True)
class Counted:
    """An engine that tells of every row that is done, for a bar of one's own."""

    engine: Engine
    advance: Callable[[], None]

    @property
    def workers(self) -> int:
        """Those of the engine."""
        return self.engine.workers

    def run(
        self, simulator: SeededSimulator, batches: Iterator[Batch], timeout: float | None = None
    ) -> Iterator[BatchResult]:
        """What the engine gives, told row by row."""
        for result in self.engine.run(simulator, batches, timeout):
            for _ in range(len(result)):
                self.advance()
            yield result

    def close(self) -> None:
        """Let go of the engine's workers."""
        self.engine.close()


class Dask(Protocol):
    """A ``Client`` of dask, or one of its clusters: ``LocalCluster``, ``SLURMCluster``."""

    @property
    def scheduler_info(self) -> Any:
        """What its scheduler says of it."""
        ...


Workers = int | str | Dask
"""How many processes simulate here; or the cluster that does, by the address of its scheduler."""


def is_cluster(workers: Any) -> bool:
    """Whether it is an address, a client or a cluster of dask, rather than a number."""
    return "://" in workers if isinstance(workers, str) else hasattr(workers, "scheduler_info")


def check_workers(workers: Workers, timeout: float | None) -> None:
    """Refuse what no engine can be opened with.

    Raises:
        ValueError: if ``workers`` is neither a whole number of at least 1 nor a cluster, or
            ``timeout`` not positive.
    """
    if not is_cluster(workers):
        as_count(workers, "workers", 1)
    number = isinstance(timeout, Real) and not isinstance(timeout, bool)
    if timeout is not None and not (number and timeout > 0.0):
        raise ValueError(f"`timeout` must be a positive number of seconds; got {timeout!r}.")


def open_engine(workers: Workers = 1, timeout: float | None = None, engine: Any = None) -> Engine:
    """Open an engine; close it when done.

    Args:
        workers: simulations at a time, for engines that start their own workers; or, with no
            engine named, the cluster that simulates: an address, a ``Client``, a cluster of dask.
        timeout: seconds one simulation may take, for every run that names no other.
        engine: ``"in-process"``, ``"processes"``, ``"distributed"`` (a cluster of this machine),
            the address of a running ``dask`` scheduler (``"tcp://host:8786"``) or its ``Client``.
            When omitted: in process for one worker without a timeout, else processes. A timeout
            needs a process that can be stopped, so with one ``"in-process"`` means one process.

    Raises:
        ValueError: if ``workers`` is no whole number of at least 1, ``timeout`` not positive, or
            the name not known.
    """
    check_workers(workers, timeout)
    timeout = None if timeout == math.inf else timeout
    number = workers if isinstance(workers, int) else 1
    if engine is None and is_cluster(workers):
        engine = workers
    if engine is None:
        engine = "in-process" if number == 1 else "processes"
    if engine == "in-process" and timeout is None:
        return InProcess()
    if engine in ("in-process", "processes"):
        from .processes import Processes

        return Processes(1 if engine == "in-process" else number, timeout)
    if isinstance(engine, str) and engine != "distributed" and "://" not in engine:
        raise ValueError(
            f"`engine` must be one of {', '.join(NAMES)}, the address of a scheduler, or an open "
            f"engine; got {engine!r}."
        )
    from .cluster import connect

    return connect(None if engine == "distributed" else engine, number, timeout)
