"""One batch of simulations: the unit that engines carry, and what a fault in it costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from .base import Failure, SeededSimulator

_MAX_ROWS = 1_000
_MIN_BATCHES = 32


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive rows of a submission: ``theta`` (b, d) from row ``first_row`` on."""

    first_row: int
    theta: Tensor
    seed: int


@dataclass(frozen=True, eq=False)
class BatchResult:
    """What became of a batch: ``x`` (k, p) at the submitted rows ``index`` (k,), and failures."""

    first_row: int
    index: Tensor
    x: Tensor
    failures: tuple[Failure, ...]


def split(theta: Tensor, seed: int) -> Iterator[Batch]:
    """Cut a submission into batches.

    The cut depends on the number of rows alone, never on the workers: a plain batched function
    draws its noise a batch at a time, and its results must not change with the workers.
    """
    rows = max(1, min(_MAX_ROWS, -(-len(theta) // _MIN_BATCHES)))
    for first_row in range(0, len(theta), rows):
        yield Batch(first_row, theta[first_row : first_row + rows], seed)


def simulate_batch(simulator: SeededSimulator, batch: Batch) -> BatchResult:
    """Simulate a batch; where it raises, row by row, so that one bad row costs itself alone.

    Raises:
        ValueError: if the simulator gives the wrong number of rows, which no retry can mend.
    """
    try:
        x = simulator(batch.theta, batch.seed, first_row=batch.first_row)
    except Exception as error:
        if len(batch.theta) == 1:
            failure = Failure(batch.first_row, f"{type(error).__name__}: {error}")
            return BatchResult(batch.first_row, torch.empty(0, dtype=torch.long), _NONE, (failure,))
        return join(batch.first_row, [simulate_batch(simulator, row) for row in _rows(batch)])
    if x.ndim != 2 or len(x) != len(batch.theta):
        raise ValueError(
            f"`simulator` must return one row for each parameter: theta of shape "
            f"{tuple(batch.theta.shape)} gave x of shape {tuple(x.shape)}. If it takes one "
            "parameter at a time, wrap it with simulators.from_function(f, prior)."
        )
    finite = torch.isfinite(x).all(dim=1)
    index = batch.first_row + torch.arange(len(x))
    failures = tuple(
        Failure(int(row), "not finite: the simulation holds NaN or Inf") for row in index[~finite]
    )
    return BatchResult(batch.first_row, index[finite], x[finite], failures)


def join(first_row: int, results: list[BatchResult]) -> BatchResult:
    """Put results together in submission order; rows of another width become failures."""
    results = sorted(results, key=lambda result: result.first_row)
    filled = [result for result in results if len(result.index)]
    failures = [failure for result in results for failure in result.failures]
    width = filled[0].x.shape[1] if filled else 0
    kept = [result for result in filled if result.x.shape[1] == width]
    for result in filled:
        if result.x.shape[1] != width:
            reason = f"wrong shape: {result.x.shape[1]} values where the first row has {width}"
            failures += [Failure(int(row), reason) for row in result.index]
    index = torch.cat([result.index for result in kept]) if kept else torch.empty(0).long()
    x = torch.cat([result.x for result in kept]) if kept else _NONE
    return BatchResult(first_row, index, x, tuple(sorted(failures, key=lambda f: f.index)))


def _rows(batch: Batch) -> Iterator[Batch]:
    for i in range(len(batch.theta)):
        yield Batch(batch.first_row + i, batch.theta[i : i + 1], batch.seed)


_NONE = torch.empty(0, 0)
