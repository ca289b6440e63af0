"""Simulators that go wrong on purpose; a module of its own, so that worker processes import it.

The first parameter names the fault of the row, the second is the simulated value's mean.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from simulators.random import child_seed

HEALTHY, RAISE, NAN, INF, SHAPE, HANG, EXIT, EXIT_0, KILL = range(9)
HARMLESS = (RAISE, NAN, INF, SHAPE)
"""Faults that a process survives."""
REASONS = {
    RAISE: "ArithmeticError: no convergence at step 7",
    NAN: "not finite: 1 of 3 values are NaN or infinite",
    INF: "not finite: 1 of 3 values are NaN or infinite",
    SHAPE: "wrong shape",
    HANG: "timeout: no result within",
    EXIT: "worker died: exit status 3",
    EXIT_0: "worker died: exit status 0",
    KILL: "worker died: killed by SIGKILL",
}


def strike(code: int) -> None:
    """Go wrong, where the fault is one of the process."""
    if code == RAISE:
        raise ArithmeticError("no convergence\nat step 7")
    if code == HANG:
        time.sleep(3600)
    if code == EXIT:
        os._exit(3)
    if code == EXIT_0:
        os._exit(0)
    if code == KILL:
        os.kill(os.getpid(), signal.SIGKILL)


def spoil(x: Tensor, code: int) -> Tensor:
    """Go wrong, where the fault is one of the values x (p,)."""
    if code == NAN:
        x[1] = torch.nan
    if code == INF:
        x[2] = -torch.inf
    return x[:2] if code == SHAPE else x


def one_row(theta: Tensor) -> Tensor:
    """A simulator of one theta (2,) that draws from torch's global stream."""
    strike(int(theta[0]))
    return spoil(theta[1] + torch.randn(3), int(theta[0]))


def many_rows(theta: Tensor) -> Tensor:
    """A plain batched simulator; a row of another shape makes the whole batch fail."""
    for code in theta[:, 0].tolist():
        strike(int(code))
    x = theta[:, 1:] + torch.randn(len(theta), 3)
    rows = [spoil(row, int(code)) for row, code in zip(x, theta[:, 0], strict=True)]
    return torch.stack(rows)[: -1 if theta[:, 0].eq(SHAPE).any() and len(theta) > 1 else None]


@dataclass(frozen=True)
class Seeded:
    """A batched simulator whose row i is a function of (seed, first_row + i)."""

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        rows = []
        for i, (code, mean) in enumerate(theta.tolist()):
            strike(int(code))
            noise = np.random.default_rng(child_seed(seed or 0, first_row + i)).standard_normal(3)
            rows.append(spoil(mean + torch.from_numpy(noise).float(), int(code)))
        return torch.stack(rows)


@dataclass(frozen=True)
class Logged:
    """Writes a line a row to a file, with the process that simulates it, then takes its time.

    Neither changes the rows, so a store may go on with another file and another time.
    """

    log: str = field(compare=False)
    seconds: float = field(default=0.0, compare=False)

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        with Path(self.log).open("a") as file:
            for i in range(len(theta)):
                file.write(f"{first_row + i} {os.getpid()}\n")
        time.sleep(self.seconds * len(theta))
        return Seeded()(theta, seed, first_row=first_row)


@dataclass(frozen=True)
class LoggedOneByOne:
    """The same for one theta (2,) at a time; fails where the fault says so."""

    log: str
    seconds: float = 0.0

    def __call__(self, theta: Tensor) -> Tensor:
        with Path(self.log).open("a") as file:
            file.write(f"{theta[1]} {os.getpid()}\n")
        time.sleep(self.seconds)
        return one_row(theta)


class SlowToLoad:
    """Takes seconds to load in a worker, as an import of a large library does."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __setstate__(self, state: dict[str, float]) -> None:
        time.sleep(state["seconds"])
        self.__dict__.update(state)

    def __call__(self, theta: Tensor) -> Tensor:
        return theta.clone()


class SlowFirstCall:
    """Takes seconds at its first call in a process, as compilers do."""

    seconds = 2.5

    def __call__(self, theta: Tensor) -> Tensor:
        time.sleep(self.seconds)
        type(self).seconds = 0.0
        return theta.clone()


def slow_rows(theta: Tensor) -> Tensor:
    """Takes as many seconds a row as its first parameter says."""
    time.sleep(float(theta[:, 0].sum()))
    return theta.clone()


class Explained:
    """Simulates NaN where the first parameter is negative, and says why."""

    def __call__(self, theta: Tensor) -> Tensor:
        return theta.sqrt()

    def failure_reason(self, theta: Tensor, x: Tensor) -> str | None:
        """Why a row is not finite."""
        return f"negative root of {theta[0]:g}" if theta[0] < 0 and x.isnan().any() else None


def slow_rows_one(theta: Tensor) -> Tensor:
    """The same for one theta at a time."""
    time.sleep(float(theta[0]))
    return theta.clone()


class CannotLoad:
    """Raises when a worker loads it."""

    def __getstate__(self) -> dict[str, int]:
        return {"divisor": 0}

    def __setstate__(self, state: dict[str, int]) -> None:
        self.share = 1 / state["divisor"]

    def __call__(self, theta: Tensor) -> Tensor:
        return theta.clone()


class DiesLoading:
    """Ends the process that loads it."""

    def __getstate__(self) -> dict[str, int]:
        return {"status": 9}

    def __setstate__(self, state: dict[str, int]) -> None:
        os._exit(state["status"])

    def __call__(self, theta: Tensor) -> Tensor:
        return theta.clone()
