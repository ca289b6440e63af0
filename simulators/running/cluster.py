"""Many machines as an engine, by ``dask.distributed``: pip install abi-toolkit[distributed].

A dask worker that a simulation kills takes its other tasks with it, and one that hangs must be
restarted with all it holds. So dask only carries the batches: on the machine where a batch
arrives, it is simulated in a worker process of ours, next to the dask worker, with the same
limits, second tries and isolation as on one machine (:mod:`simulators.running.processes`). dask
never sees the fault. What remains for it is the loss of a whole machine: it then gives the batch to
another one, up to its own limit of failures (``KilledWorker``), after which rows are tried one by
one.

One simulation runs at a time for each thread of each dask worker; ``dask worker --nthreads N``
gives a machine N of them.
"""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from ..base import SeededSimulator
from ..random import isolated_rng
from .batches import Batch, BatchResult, lost, row_wise
from .cuts import Pace
from .processes import Processes
from .workers import pack

_AHEAD = 2
"""Batches under way for each thread, so that none waits for the network."""

_GONE = (
    "`workers`: the dask scheduler is gone. Start another and run the same again: what a store or "
    "a run_dir holds is not simulated twice."
)

_PATIENCE = 5.0
"""Seconds for a cluster to take leave."""

_local_engines: dict[str, dict[int, Processes]] = {}
"""On a dask worker: for each run's engine, the worker process of each thread."""


@dataclass(frozen=True, eq=False)
class Distributed:
    """A dask cluster as an engine; made by :func:`simulators.running.engines.open_engine`."""

    client: Any
    timeout: float | None = None
    owned: tuple[Any, ...] = ()
    name: str = field(default_factory=lambda: uuid.uuid4().hex)

    @property
    def workers(self) -> int:
        """Threads of the cluster; it may grow and shrink."""
        threads: int = sum(self.client.nthreads().values())
        return max(1, threads)

    def run(
        self, simulator: SeededSimulator, batches: Iterator[Batch], timeout: float | None = None
    ) -> Iterator[BatchResult]:
        """Simulate every batch; results come as they complete.

        Raises:
            ConnectionError: if the scheduler dies.
        """
        from distributed import CancelledError

        limit = self.timeout if timeout is None else timeout
        fixed = (self.name, pack(simulator), row_wise(simulator), limit)
        with isolated_rng(0):  # dask draws from Python's global stream
            try:
                yield from self._results(fixed, batches)
            except (OSError, CancelledError, RuntimeError) as error:  # whatever was asked of it
                if isinstance(error, RuntimeError) and self._there:
                    raise  # asyncio has one, too, for a connection that is refused in its last try
                raise ConnectionError(_GONE) from error

    def close(self) -> None:
        """Stop the worker processes, and the cluster where it was started here."""
        with isolated_rng(0):
            self._close_workers()
            for owner in self.owned:
                owner.close(timeout=_PATIENCE)

    @property
    def _there(self) -> bool:
        """Whether the scheduler answers, as far as is known."""
        return bool(self.client.status == "running")

    def _close_workers(self, under_way: Sequence[Any] = ()) -> None:
        """Stop our processes beside the dask workers, and what they do; a dead cluster has none."""
        from distributed import CancelledError

        with suppress(OSError, CancelledError, RuntimeError):
            if under_way and self._there:
                self.client.cancel(list(under_way), force=True)
            if self._there:
                self.client.run(_close_local, self.name, on_error="ignore")

    def _results(self, fixed: tuple[Any, ...], batches: Iterator[Batch]) -> Iterator[BatchResult]:
        from distributed import as_completed

        done, again, pace = as_completed(), deque[Batch](), Pace()
        under_way: dict[Any, Batch] = {}
        try:
            while True:
                room = _AHEAD * self.workers - len(under_way)
                while room > 0 and (batch := _next(again, batches)) is not None:
                    future = self.client.submit(
                        simulate_here, *fixed, batch, pace.row_seconds, pure=False
                    )
                    under_way[future] = batch
                    done.add(future)
                    room -= 1
                if not under_way:
                    return
                future = next(done)
                batch = under_way.pop(future)
                if future.status == "finished":
                    for result in future.result():
                        pace.learn(result)
                        yield result
                    continue
                if future.status == "cancelled":
                    raise ConnectionError(_GONE)
                error = _loss(future)
                if len(batch) > 1:
                    again.extend(batch.rows())
                else:
                    yield lost(batch, f"worker lost: {error}")
        finally:
            if under_way:
                self._close_workers(tuple(under_way))


@isolated_rng(0)
def connect(target: Any, workers: int, timeout: float | None) -> Distributed:
    """An engine on a running cluster (address or Client), or on a new one of this machine."""
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise ValueError(
            '`engine="distributed"` needs dask; pip install "abi-toolkit[distributed]".'
        ) from error
    if isinstance(target, Client):
        return Distributed(target, timeout)
    if target is not None:
        try:
            client = Client(target)
        except OSError as error:
            raise ConnectionError(
                f"`workers`: no scheduler answers at {target}: {error}. Start one there (dask "
                "scheduler), or give a number of processes."
            ) from error
        return Distributed(client, timeout, (client,))
    # The simulations run in processes of their own; scheduler and worker need none.
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=workers, processes=False, dashboard_address=":0"
    )
    client = Client(cluster)
    return Distributed(client, timeout, (client, cluster))


def simulate_here(
    name: str,
    packed: bytes,
    by_row: bool,
    timeout: float | None,
    batch: Batch,
    row_seconds: float | None,
) -> list[BatchResult]:
    """On a dask worker: simulate a batch in the worker process of this thread."""
    engines = _local_engines.setdefault(name, {})
    engine = engines.setdefault(threading.get_ident(), Processes(1))
    return list(engine.run_packed(packed, by_row, iter([batch]), timeout, row_seconds))


def _close_local(name: str) -> None:
    for engine in _local_engines.pop(name, {}).values():
        engine.abandon()


def _next(again: deque[Batch], batches: Iterator[Batch]) -> Batch | None:
    return again.popleft() if again else next(batches, None)


def _loss(future: Any) -> Exception:
    """The error of a task whose machines were lost; every other error is raised.

    Raises:
        RuntimeError: if the cluster could not do the task at all.
    """
    from distributed import KilledWorker

    error: Exception | None = future.exception()
    if isinstance(error, KilledWorker):
        return cast(Exception, error)
    if isinstance(error, ValueError):
        raise error
    raise RuntimeError(
        f"`engine`: the cluster could not simulate; {type(error).__name__}: {error}. Is "
        "abi-toolkit installed, in the same version, where its workers run?"
    ) from error
