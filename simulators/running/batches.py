"""One batch of simulations: the unit that engines carry, and what a fault in it costs.

A batch that fails as a whole is simulated again row by row, so that a fault costs the rows it
is in. Rows of a plain batched function, whose noise is drawn a call at a time, then differ from
those of the whole batch, but they are the same rows wherever and how often that happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..base import Failure, SeededSimulator
from ..given.values import as_float

FloatArray = NDArray[np.float32]

_REASON_LENGTH = 300


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive rows of a submission: ``theta`` (b, d) from row ``first_row`` on."""

    first_row: int
    theta: FloatArray
    seed: int

    def __len__(self) -> int:
        return len(self.theta)

    def cut(self, size: int) -> Iterator[Batch]:
        """The batch as batches of ``size`` rows, the last perhaps of fewer."""
        for i in range(0, len(self), size):
            yield Batch(self.first_row + i, self.theta[i : i + size], self.seed)

    def rows(self) -> Iterator[Batch]:
        """Every row as a batch of its own."""
        return self.cut(1)


@dataclass(frozen=True, eq=False)
class BatchResult:
    """What became of rows: ``x`` (k, p) at the submitted rows ``index`` (k,), and failures.

    Rows that differ in their number of values are in different results.
    """

    index: NDArray[np.int64]
    x: FloatArray
    failures: tuple[Failure, ...] = ()
    seconds: float = 0.0
    """Time the simulator took; 0 where it is not known."""

    def __len__(self) -> int:
        return len(self.index) + len(self.failures)


def row_wise(simulator: object) -> bool:
    """Whether a simulator calls its function with one theta at a time."""
    return bool(getattr(simulator, "row_wise", False))


def any_cut(simulator: object) -> bool:
    """Whether every cut gives the same rows: true but for plain functions of many theta."""
    inner = getattr(simulator, "simulator", None)  # a custom task carries the user's, as gaps do
    return not getattr(simulator, "batched", False) and (inner is None or any_cut(inner))


def simulate_batch(
    simulator: SeededSimulator, batch: Batch, timeout: float | None = None
) -> list[BatchResult]:
    """Simulate a batch; where it fails as a whole, row by row, so that a bad row costs itself.

    A simulator that takes one theta at a time is called so from the start: no row is repeated.

    Args:
        simulator: what to simulate with.
        batch: the rows.
        timeout: seconds a row may take; one that comes later is lost. Rows of a task are not
            timed one by one: where a batch of them took longer, nothing is returned, and the
            caller cuts it. A batch of a plain function cannot be cut and is kept.
    """
    started = perf_counter()
    whole = None if row_wise(simulator) and len(batch) > 1 else _attempt(simulator, batch)
    late = timeout is not None and perf_counter() - started > timeout
    if whole is not None and late and len(batch) == 1:
        whole = late_reason(timeout)
    if whole is not None and late and len(batch) > 1 and any_cut(simulator):
        return []
    if isinstance(whole, np.ndarray):
        blocks, failures = [_finite_rows(simulator, batch, whole)], []
    elif whole is not None and len(batch) == 1:
        blocks, failures = [], [Failure(batch.first_row, whole)]
    else:
        blocks, failures = _row_by_row(simulator, batch, timeout)
    results = _by_width(blocks, failures)
    return [
        BatchResult(r.index, r.x, r.failures, (perf_counter() - started) if i == 0 else 0.0)
        for i, r in enumerate(results)
    ]


def late_reason(timeout: float | None) -> str:
    """The reason of a row that took more than ``timeout`` seconds."""
    return f"timeout: no result within {timeout:g} s"


def lost(batch: Batch, reason: str) -> BatchResult:
    """The result of a batch of which nothing came back."""
    failures = tuple(Failure(batch.first_row + i, reason) for i in range(len(batch)))
    return BatchResult(np.empty(0, np.int64), np.empty((0, 0), np.float32), failures)


def join(results: list[BatchResult]) -> BatchResult:
    """Put results together in submission order.

    The number of values that most rows have is the right one; the others become failures. A row
    that came twice, before and after an interruption, is taken once.
    """
    width = most_common_width(results)
    failures = {f.index: f for result in results for f in result.failures}
    for result in results:
        if result.x.shape[1] != width:
            reason = f"wrong shape: {result.x.shape[1]} values where most rows have {width}"
            failures |= {int(row): Failure(int(row), reason) for row in result.index}
    kept = [result for result in results if len(result.index) and result.x.shape[1] == width]
    if not kept:
        index, x = np.empty(0, np.int64), np.empty((0, 0), np.float32)
    else:
        index, first = np.unique(np.concatenate([r.index for r in kept]), return_index=True)
        x = np.concatenate([r.x for r in kept])
        if not np.array_equal(first, np.arange(len(x))):
            x = x[first]
    if failures:
        for row in np.intersect1d(index, list(failures)):
            del failures[int(row)]
    return BatchResult(index, x, tuple(failures[row] for row in sorted(failures)))


def most_common_width(results: list[BatchResult]) -> int:
    """Number of values that most rows have; of equally many, the smallest."""
    counts: dict[int, int] = {}
    for result in results:
        if len(result.index):
            width = result.x.shape[1]
            counts[width] = counts.get(width, 0) + len(result.index)
    return max(sorted(counts), key=lambda width: counts[width], default=0)


def _attempt(simulator: SeededSimulator, batch: Batch) -> FloatArray | str:
    """The values of a batch (b, p), or why there are none."""
    try:
        theta = torch.from_numpy(batch.theta.copy())
        x = as_float(simulator(theta, batch.seed, first_row=batch.first_row))
    except (Exception, SystemExit) as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:_REASON_LENGTH]
    if x.ndim != 2 or len(x) != len(batch):
        return (
            f"wrong shape: theta of shape {tuple(batch.theta.shape)} gave x of shape "
            f"{tuple(x.shape)}, which is not one row a parameter"
        )
    return x.numpy()


def _row_by_row(
    simulator: SeededSimulator, batch: Batch, timeout: float | None
) -> tuple[list[BatchResult], list[Failure]]:
    blocks, failures = [], []
    for row in batch.rows():
        started = perf_counter()
        x = _attempt(simulator, row)
        if timeout is not None and perf_counter() - started > timeout:
            x = late_reason(timeout)
        if isinstance(x, str):
            failures.append(Failure(row.first_row, x))
        else:
            blocks.append(_finite_rows(simulator, row, x))
    return blocks, failures


def _finite_rows(simulator: SeededSimulator, batch: Batch, x: FloatArray) -> BatchResult:
    own = getattr(simulator, "usable_rows", None)  # where NaN may be data
    finite = np.isfinite(x).all(axis=1) if own is None else own(x)
    index = batch.first_row + np.arange(len(x))
    failures = tuple(
        Failure(int(index[i]), _why_not_finite(simulator, batch.theta[i], x[i]))
        for i in np.flatnonzero(~finite)
    )
    return BatchResult(index[finite], x[finite], failures)


def _why_not_finite(simulator: Any, theta: FloatArray, x: FloatArray) -> str:
    """The simulator's own reason, where it offers ``failure_reason(theta_row, x_row)``."""
    explain = getattr(simulator, "failure_reason", None)
    reason = None
    if explain is not None:
        try:
            reason = explain(torch.from_numpy(theta.copy()), torch.from_numpy(x.copy()))
        except Exception as error:
            reason = f"not finite, and failure_reason raised {type(error).__name__}: {error}"
    if reason:
        return " ".join(str(reason).split())[:_REASON_LENGTH]
    bad = int((~np.isfinite(x)).sum())
    return f"not finite: {bad} of {len(x)} values are NaN or infinite"


def _by_width(blocks: list[BatchResult], failures: list[Failure]) -> list[BatchResult]:
    """One result for each number of values; the failures go with the first."""
    every = [*failures, *(f for block in blocks for f in block.failures)]
    widths = sorted({block.x.shape[1] for block in blocks if len(block.index)})
    results = []
    for width in widths:
        same = [b for b in blocks if len(b.index) and b.x.shape[1] == width]
        index = np.concatenate([b.index for b in same])
        results.append(BatchResult(index, np.concatenate([b.x for b in same])))
    if not results:
        results.append(BatchResult(np.empty(0, np.int64), np.empty((0, 0), np.float32)))
    every.sort(key=lambda failure: failure.index)
    results[0] = BatchResult(results[0].index, results[0].x, tuple(every))
    return results
