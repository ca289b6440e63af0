"""The calls of the simulator in one round: seeded, judged by their failures, kept if slow."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from simulators import Simulations, simulate
from simulators.gaps.mechanism import UNDECLARED, declares_gaps
from simulators.random import child_seed
from simulators.running.engines import Engine

from .problem import Problem, check_shapes, check_varies, check_width
from .rejection import Sampled

_ENOUGH_TO_JUDGE, _MAX_FAILURES, _ALMOST_ALL = 32, 0.9, 0.99
_SLOW_SECONDS = 1.0  # calls that take longer are kept on disk as they come


@dataclass(frozen=True, eq=False)
class SimulatorCalls:
    """``calls(theta, key)`` simulates theta (n, d); the key separates the streams of the calls.

    Attributes:
        problem: whose simulator it is.
        engine: where it runs.
        slow_dir: where slow simulations are kept; None keeps nothing.
        seed: of the round.
        most_failures: share of failures that is borne; None for what no sound simulator reaches.
        pace: seconds a simulation, of each call so far.
    """

    problem: Problem
    engine: Engine
    slow_dir: Path | None
    seed: int
    most_failures: float | None = None
    pace: list[float] = field(default_factory=list)

    def __call__(self, theta: Tensor, key: int) -> Simulations:
        """Simulate, and refuse a simulator that nearly always fails."""
        # Few rows may all fail by chance; many that do mean a broken simulator.
        chance = 4.0 * (_MAX_FAILURES * (1.0 - _MAX_FAILURES) / len(theta)) ** 0.5
        limit = 1.0 if len(theta) < _ENOUGH_TO_JUDGE else min(_MAX_FAILURES + chance, _ALMOST_ALL)
        limit = limit if self.most_failures is None else self.most_failures
        started = time.perf_counter()
        seed = child_seed(self.seed, 1, key)
        runs = simulate(
            self.problem.simulator,
            theta,
            engine=self.engine,
            seed=seed,
            store=self._store(seed, len(theta)),
            progress=False,
            max_failure_fraction=limit,
        )
        self.pace.append((time.perf_counter() - started) / len(theta))
        check_width(runs.x, self.problem.x_o)
        if any(failure.reason == UNDECLARED for failure in runs.failures):
            raise ValueError(f"`simulator`: {UNDECLARED}.")
        return runs

    def _store(self, seed: int, num_rows: int) -> Path | None:
        """Where to keep simulations that take long; an interrupted run left some there.

        Which calls are stored does not change what they return: seeds decide that.
        """
        if self.slow_dir is None:
            return None
        path = self.slow_dir / f"{seed:016x}"
        slow = bool(self.pace) and self.pace[-1] * num_rows > _SLOW_SECONDS
        return path if slow or path.exists() else None


def made_before(simulations: Simulations, problem: Problem, seed: int) -> Sampled:
    """Pairs that were given, as those of the first round; ``seed`` is that of gaps put into x."""
    check_shapes(simulations, problem.theta_dim, problem.x_o)
    _check_rows(simulations, problem)
    check_varies(simulations.x)
    theta, failures = simulations.theta, simulations.failures
    x = problem.seen(simulations.x, seed)
    return Sampled(theta, x, simulations.num_submitted, len(failures), 0, failures)


def _check_rows(simulations: Simulations, problem: Problem) -> None:
    """Refuse pairs that the model cannot have made, and those of simulations that failed."""
    x, num_rows = simulations.x, len(simulations.x)
    if outside := int((~problem.support.contains(simulations.theta)).sum()):
        raise ValueError(
            f"`simulations` must be at theta drawn from the prior; {outside} of {num_rows} lie "
            "outside its support. Leave these out if the others are such draws, or simulate anew."
        )
    wrong = x.isinf() if declares_gaps(problem.simulator) else ~x.isfinite()
    if failed := int(wrong.any(dim=1).sum()):
        raise ValueError(
            f"`simulations` must hold finite x; {failed} of {num_rows} rows do not. Leave these "
            "out; where NaN is a value not measured, declare it: simulators.with_gaps(simulator)."
        )
