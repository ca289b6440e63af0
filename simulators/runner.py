"""Run many simulations: in order, reproducible, and no fault costs more than its own row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .base import Simulations
from .batches import BatchResult, join, split
from .custom import as_seeded
from .engines import Engine, open_engine
from .random import fresh_seed


def simulate(
    simulator: Callable[..., Any],
    theta: Tensor,
    *,
    workers: int = 1,
    engine: Engine | None = None,
    timeout: float | None = None,
    seed: int | None = None,
    max_failure_fraction: float = 0.5,
) -> Simulations:
    """Simulate every row of ``theta``.

    The result is a function of ``(simulator, theta, seed)`` alone, whatever the engine and the
    number of workers. A row that raises, returns NaN or Inf, outlasts ``timeout`` or kills its
    worker is left out, and listed in ``failures``.

    Args:
        simulator: callable theta (n, d) -> x (n, p); a task, or a plain batched function.
        theta: parameters, (n, d).
        workers: processes; 1 runs in this process unless a timeout is set.
        engine: an open engine to use instead; it stays open.
        timeout: seconds one simulation may take.
        seed: seed of the noise; a fresh one is drawn and recorded when omitted.
        max_failure_fraction: share of failures, in [0, 1], above which the run is refused.

    Raises:
        ValueError: if ``theta`` is not (n, d), if the simulator returns the wrong number of rows,
            or if more than ``max_failure_fraction`` of the simulations failed.
    """
    theta = torch.as_tensor(theta).detach().to("cpu", torch.float32)
    if theta.ndim != 2:
        raise ValueError(f"`theta` must have shape (n, d); got {tuple(theta.shape)}.")
    seeded = as_seeded(simulator)
    seed = fresh_seed() if seed is None else seed
    opened = open_engine(workers, timeout) if engine is None else engine
    try:
        result = join(0, list(opened.run(seeded, split(theta, seed))))
    finally:
        if engine is None:
            opened.close()
    _check_failures(result, len(theta), max_failure_fraction)
    return Simulations(theta[result.index], result.x, result.index, result.failures, seed)


def _check_failures(result: BatchResult, num_rows: int, limit: float) -> None:
    if num_rows and len(result.failures) > limit * num_rows:
        first = result.failures[0]
        raise ValueError(
            f"`simulator` failed for {len(result.failures)} of {num_rows} parameters, more than "
            f"the {limit:.0%} allowed; the first, row {first.index}: {first.reason}"
        )
