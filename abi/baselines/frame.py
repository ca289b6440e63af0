"""What every baseline begins and ends with: the problem posed, calls counted, time kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from simulators import Prior, sample_prior
from simulators.random import as_count, child_seed

from ..rounds.problem import Problem, pose
from .calls import CountedSimulator
from .result import BaselinePosterior, Draw


@dataclass(frozen=True, eq=False)
class Run:
    """One baseline at work on one problem; it draws from child seeds 0 and 1 of ``seed``.

    Attributes:
        method: name of the baseline.
        problem: prior, simulator and observation in one form.
        calls: the simulator within its budget.
        seed: the seed of the fit.
        started: CPU seconds of the process when the work began.
    """

    method: str
    problem: Problem
    calls: CountedSimulator
    seed: int
    started: float

    def drawn(self, num_samples: int) -> Tensor:
        """Draw theta (n, d) from the prior, the same at each call."""
        return sample_prior(self.problem.prior, num_samples, child_seed(self.seed, 1))

    def posterior(self, draw: Draw, *, amortised: bool, **details: Any) -> BaselinePosterior:
        """The end: what draws, whether for any observation, and what the method has to tell."""
        return BaselinePosterior(
            method=self.method,
            x_o=self.problem.x_o,
            parameter_names=self.problem.parameter_names,
            draw=draw,
            amortised=amortised,
            num_simulations=self.calls.made,
            cpu_seconds=time.process_time() - self.started,
            seed=self.seed,
            details=details,
        )


def begin(
    method: str,
    asked: tuple[Prior | Callable[[int], Any], Callable[..., Any], Tensor, Sequence[str] | None],
    num_simulations: int,
    seed: int,
) -> Run:
    """Pose what is asked: prior, simulator, x_o and the names, or None, of the parameters.

    Raises:
        ValueError: if one of them, or the number of simulations, is out of range.
        TypeError: if the prior cannot be sampled, or the simulator cannot be called.
    """
    started = time.process_time()
    budget = as_count(num_simulations, "num_simulations", 2)
    problem = pose(*asked)
    if problem.x_o.isnan().any() or problem.layout.missing != "nothing":
        raise ValueError(
            "`x_o` has gaps, or `simulator` declares some, which the baselines do not know; leave "
            "the values that are missing out of both."
        )
    calls = CountedSimulator(problem, budget, child_seed(seed, 0))
    return Run(method, problem, calls, seed, started)
