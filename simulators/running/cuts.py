"""How a submission is cut into batches.

A plain batched function draws its noise a call at a time: its results are a function of the
cut, so the cut is a function of the number of rows alone, never of workers or time. It starts
with single rows, so that a simulator that is broken, or hangs, or is slow, shows soon.

A function of one theta, and a task, whose rows have seeds of their own, give the same rows under
any cut: there the batches are sized by time, long enough to cost little to carry, short enough that
little is lost when the power fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .batches import Batch, BatchResult, FloatArray

_MAX_ROWS = 1_000  # of a plain batched function, on which its results depend
_MAX_TIMED_ROWS = 25_000  # where they do not: of microseconds a row, carrying would be most
_MIN_BATCHES = 32
_GROWTH = 4
_BATCH_SECONDS = 0.5


@dataclass
class Pace:
    """Seconds a row takes, averaged over the rows seen so far."""

    rows: int = 0
    seconds: float = 0.0

    def learn(self, result: BatchResult) -> None:
        """Take in the time of one result; results without one are passed over."""
        if result.seconds > 0.0:
            self.rows += len(result)
            self.seconds += result.seconds

    @property
    def row_seconds(self) -> float | None:
        """Seconds a row; None before the first."""
        return self.seconds / self.rows if self.rows else None


def cut_by_rows(theta: FloatArray, seed: int, missing: NDArray[np.bool_]) -> Iterator[Batch]:
    """Batches of 1, 4, 16, ... rows, up to 1,000 or a 32nd of all; those with a missing row."""
    largest = max(1, min(_MAX_ROWS, -(-len(theta) // _MIN_BATCHES)))
    first_row, rows = 0, 1
    while first_row < len(theta):
        last = first_row + rows
        if missing[first_row:last].any():
            yield Batch(first_row, theta[first_row:last], seed)
        first_row, rows = last, min(largest, rows * _GROWTH)


def cut_by_time(
    theta: FloatArray, seed: int, missing: NDArray[np.bool_], workers: int, pace: Pace
) -> Iterator[Batch]:
    """Batches of missing rows that take about half a second each at the present ``pace``.

    Sizes grow at most fourfold from one batch to the next, as the first rows may be the quick
    ones, and shrink towards the end where there are several workers, so that they finish together.
    """
    rows = np.flatnonzero(missing)
    largest = 1
    while len(rows):
        share = -(-len(rows) // (2 * workers)) if workers > 1 else len(rows)
        affordable = int(_BATCH_SECONDS / pace.row_seconds) if pace.row_seconds else 1
        size = max(1, min(largest, share, affordable, _MAX_TIMED_ROWS))
        gaps = np.flatnonzero(np.diff(rows[:size]) != 1)
        size = int(gaps[0]) + 1 if len(gaps) else size
        first_row = int(rows[0])
        yield Batch(first_row, theta[first_row : first_row + size], seed)
        rows = rows[size:]
        largest = max(largest, _GROWTH * size)
