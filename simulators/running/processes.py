"""Worker processes as an engine: a simulation that hangs or kills its worker costs itself alone.

What is lost and what is not:

- A batch that outlasts its limit is stopped and simulated again row by row; a row that outlasts
  ``timeout`` on its own is lost. The limit of a batch follows the pace of the others, so a hang
  shows after about one ``timeout``, and no row is lost for the slowness of its neighbours.
- A row that comes back late is lost too. A function of one theta is timed row by row; a batch of a
  task that took longer than a row may is halved, down to the row. A batch of a plain function has
  other rows when it is cut, so one that comes back before its limit is kept.
- A worker's start, imports and loading of the simulator do not count; its first call, in which
  simulators compile, has some seconds more.
- A batch or row whose worker dies is tried once more as it was, as the cause may lie outside (the
  system's memory ran out, an administrator); dying twice, a batch is taken apart and a row is lost.
"""

from __future__ import annotations

import hashlib
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing import connection as pipes
from threading import Event
from time import monotonic

from ..base import SeededSimulator
from .batches import Batch, BatchResult, late_reason, lost, row_wise
from .cuts import Pace
from .workers import Worker, pack

_FIRST_CALL_SECONDS = 5.0
_MAX_FAILED_STARTS = 3


@dataclass(frozen=True, eq=False)
class Processes:
    """Worker processes that start with the first run and stay for the next, until closed.

    Args:
        workers: number of processes.
        timeout: seconds one simulation may take; unlimited when omitted.
    """

    workers: int
    timeout: float | None = None
    _staff: list[_Seat] = field(default_factory=list, repr=False)
    _known: dict[str, _Experience] = field(default_factory=dict, repr=False)
    _given_up: Event = field(default_factory=Event, repr=False)

    def __post_init__(self) -> None:
        weakref.finalize(self, _dismiss, self._staff)

    def run(
        self, simulator: SeededSimulator, batches: Iterator[Batch], timeout: float | None = None
    ) -> Iterator[BatchResult]:
        """Simulate every batch; results come as they complete."""
        return self.run_packed(pack(simulator), row_wise(simulator), batches, timeout)

    def run_packed(
        self,
        packed: bytes,
        by_row: bool,
        batches: Iterator[Batch],
        timeout: float | None = None,
        row_seconds: float | None = None,
    ) -> Iterator[BatchResult]:
        """Simulate every batch with a packed simulator.

        Args:
            packed: the simulator, by :func:`simulators.running.workers.pack`.
            by_row: whether any cut gives the same rows.
            batches: what to simulate.
            timeout: seconds a row may take.
            row_seconds: what is known of the pace from elsewhere.
        """
        limit = self.timeout if timeout is None else timeout
        digest = hashlib.sha256(packed).hexdigest()
        if digest not in self._known:
            self._known.clear()
            self._known[digest] = _Experience()
        known = self._known[digest]
        if row_seconds is not None and not known.pace.rows:
            known.pace = Pace(1, row_seconds)
        job = _Job(packed, digest, by_row, batches, limit)
        return _Run(self._staff, self._given_up, self.workers, job, known).results()

    def close(self) -> None:
        """Stop the workers."""
        _dismiss(self._staff)

    def abandon(self) -> None:
        """From another thread: end the run that is going on, with an error, and the workers."""
        self._given_up.set()
        for seat in list(self._staff):
            seat.worker.process.kill()


@dataclass(eq=False)
class _Experience:
    """What is known of a simulator's times."""

    pace: Pace = field(default_factory=Pace)
    first_call: float = _FIRST_CALL_SECONDS
    """Seconds a worker's first call may take beyond its limit."""
    answered: bool = False
    """Whether a first call has ever come back."""


@dataclass(frozen=True, eq=False)
class _Job:
    """What a run is to do."""

    packed: bytes
    digest: str
    by_row: bool
    batches: Iterator[Batch]
    timeout: float | None


@dataclass(eq=False)
class _Task:
    batch: Batch
    deaths: int = 0


@dataclass(eq=False)
class _Seat:
    """A worker and what it is doing: loading a simulator, idle, or busy with a task."""

    worker: Worker
    simulator: str = ""
    loading: bool = False
    warm: bool = False
    task: _Task | None = None
    began: float = 0.0

    @property
    def idle(self) -> bool:
        return self.task is None and not self.loading

    def load(self, packed: bytes, digest: str) -> None:
        self.simulator, self.loading, self.warm = digest, True, False
        self.worker.send(packed)

    def give(self, task: _Task, timeout: float | None) -> None:
        self.task, self.began = task, monotonic()
        self.worker.send((task.batch, timeout))


@dataclass(eq=False)
class _Run:
    """One run over the batches: who does what, since when, and what to do about faults."""

    staff: list[_Seat]
    given_up: Event
    workers: int
    job: _Job
    known: _Experience
    queue: deque[_Task] = field(default_factory=deque)
    failed_starts: int = 0

    def results(self) -> Iterator[BatchResult]:
        """Give out work, take in results, until there is none."""
        try:
            while self._give_out():
                for seat in self._wait():
                    yield from self._take_in(seat)
                yield from self._end_overdue()
        finally:  # the run was given up: what is still going on is of no use to anyone
            for seat in [seat for seat in self.staff if seat.task is not None]:
                self._remove(seat)

    def _give_out(self) -> bool:
        """Occupy the workers, starting them where they are missing; whether any is occupied."""
        if self.given_up.is_set():
            raise RuntimeError("the engine was closed while it was simulating.")
        free = self.workers - sum(seat.task is not None for seat in self.staff)
        while len(self.queue) < free and (batch := next(self.job.batches, None)) is not None:
            self.queue.append(_Task(batch))
        missing = len(self.queue) - sum(seat.task is None for seat in self.staff)
        for _ in range(min(missing, self.workers - len(self.staff))):
            self.staff.append(_Seat(Worker()))
        for seat in [seat for seat in self.staff if seat.idle][: len(self.queue)]:
            if seat.simulator != self.job.digest:
                seat.load(self.job.packed, self.job.digest)
            else:
                seat.give(self.queue.popleft(), self.job.timeout)
        return bool(self.queue) or any(seat.task is not None for seat in self.staff)

    def _wait(self) -> list[_Seat]:
        """Seats whose worker has something to say, or has died; none when a limit is reached."""
        ends = [end for seat in self.staff if (end := self._limit_of(seat)) is not None]
        pause = max(0.0, min(ends) - monotonic()) if ends else None
        seats = {}
        for seat in self.staff:
            seats[seat.worker.connection] = seats[seat.worker.process.sentinel] = seat
        return list(dict.fromkeys(seats[handle] for handle in pipes.wait(seats, pause)))

    def _take_in(self, seat: _Seat) -> Iterator[BatchResult]:
        try:
            answer = seat.worker.receive()
        except EOFError:
            yield from self._bury(seat)
            return
        if seat.loading:
            self.failed_starts, seat.loading = 0, False
            if answer and seat.simulator == self.job.digest:
                raise ValueError(
                    f"`simulator` could not be loaded in a worker process: {answer}. Its module "
                    "must be importable there: install it, or run from its folder."
                )
            return
        results: list[BatchResult] = answer
        task, seat.task = seat.task, None
        if seat.warm:
            for result in results[:1]:
                self.known.pace.learn(result)
        else:
            seat.warm = self.known.answered = True
            self.known.first_call = min(_FIRST_CALL_SECONDS, 2.0 * (monotonic() - seat.began))
        if task is not None and not results:
            self._take_apart(task, -(-len(task.batch) // 2))
        yield from results

    def _bury(self, seat: _Seat) -> Iterator[BatchResult]:
        """A worker has died: its task is tried again, taken apart, or lost."""
        task, loading = seat.task, seat.loading
        ending = self._remove(seat, patience=1.0)
        if loading:
            self.failed_starts += 1
            if self.failed_starts >= _MAX_FAILED_STARTS:
                raise RuntimeError(
                    f"`workers`: {self.failed_starts} worker processes died before they could "
                    f"simulate, the last with {ending}. Does loading the simulator end the process?"
                )
        if task is None:
            return
        task.deaths += 1
        if task.deaths == 1:
            self.queue.appendleft(task)
        elif len(task.batch) > 1:
            self._take_apart(task)
        else:
            yield lost(task.batch, f"worker died: {ending}")

    def _end_overdue(self) -> Iterator[BatchResult]:
        for seat in list(self.staff):
            end, task = self._limit_of(seat), seat.task
            if task is None or end is None or monotonic() < end or seat.worker.connection.poll():
                continue
            self._remove(seat)
            if not self.known.answered:  # perhaps nothing ever will: wait less each time
                self.known.first_call /= 2.0
            if len(task.batch) > 1:
                self._take_apart(task)
            else:
                yield lost(task.batch, late_reason(self.job.timeout))

    def _limit_of(self, seat: _Seat) -> float | None:
        """When the seat's task is overdue; None for never."""
        if self.job.timeout is None or seat.task is None:
            return None
        rows, pace = len(seat.task.batch), self.known.pace.row_seconds
        limit = self.job.timeout * rows
        if rows > 1 and pace is not None and self.job.by_row:
            # Taking a batch apart costs such simulators nothing but time.
            limit = min(limit, max(0.5, 4.0 * rows * pace))
        elif rows > 1 and pace is not None:
            limit = min(limit, self.job.timeout + 4.0 * rows * pace)
        return seat.began + limit + (0.0 if seat.warm else self.known.first_call)

    def _take_apart(self, task: _Task, size: int = 1) -> None:
        self.queue.extendleft(reversed([_Task(part) for part in task.batch.cut(size)]))

    def _remove(self, seat: _Seat, patience: float = 0.0) -> str:
        self.staff.remove(seat)
        return seat.worker.stop(patience)


def _dismiss(staff: list[_Seat]) -> None:
    while staff:
        staff.pop().worker.stop()
