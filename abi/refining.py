"""More simulator calls for a finished fit: rounds follow its last, and none of its pairs is lost.

Pairs whose theta come from the prior cut to a region have the same theta given x as any others:
those of the rounds before that lie in the region of the answer join the new ones, which are drawn
from it. The verdict is a new one: its pairs are drawn for the new answer, and no training sees
them. Those of the verdict before are not trained on: they come from the middle of the answer alone,
and would tilt the prior towards it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor

from simulators import Simulations
from simulators.given.observation import same_values
from simulators.random import as_count, child_seed
from simulators.running.engines import Workers, check_workers

from .course import Answer, Pace, run
from .encoders.choice import OWN_ENCODER
from .files.origin import origin_of
from .files.run_folder import Given, RunFolder
from .plan import CHECK_FRACTION, Plan, StopWhen, default_rounds
from .quantiles.kernel import Kernel, LearnedKernel
from .rounds.judging import Fit, why_at_x_o_alone
from .rounds.problem import Problem, check_shapes, check_simulations, posed_again
from .rounds.reach import Reach
from .rounds.record import RoundState
from .rounds.regions.region import inside_all
from .rounds.steps import Work

REFINE_KEY = 3
"""Of the fit's seed, for rounds that follow its last."""


class Finished(Answer, Fit, Protocol):
    """As much of a posterior as rounds can follow."""

    @property
    def x_o(self) -> Tensor | None:
        """Its observation; None where it is amortised."""
        ...

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Those of theta."""
        ...

    @property
    def accepted(self) -> Tensor:
        """The draws the model was fitted to."""
        ...

    @property
    def seed(self) -> int:
        """That of the fit."""
        ...

    @property
    def kernel(self) -> Kernel | None:
        """The MSW distance to its observation."""
        ...

    @property
    def reach(self) -> Reach | None:
        """Where it was trained."""
        ...

    @property
    def problem(self) -> Problem | None:
        """Prior and simulator, where known."""
        ...

    @property
    def state(self) -> RoundState | None:
        """Where its rounds left off, where known."""
        ...

    @property
    def num_simulations(self) -> int:
        """Calls made so far."""
        ...

    @classmethod
    def after(cls, state: RoundState, plan: Plan, problem: Problem) -> Self:
        """The answer that rounds leave."""
        ...


F = TypeVar("F", bound=Finished)


def refine(  # noqa: D417 - a method of every posterior
    self: F,
    x_o: Any = None,
    *,
    num_simulations: int = 5_000,
    num_rounds: int | None = None,
    seed: int = 0,
    check_fraction: float = CHECK_FRACTION,
    stop_when: StopWhen = None,
    simulations: Simulations | None = None,
    simulator: Callable[..., Any] | None = None,
    prior: Any = None,
    workers: Workers = 1,
    timeout: float | None = None,
    run_dir: str | Path | None = None,
    progress: bool = True,
) -> F:
    """A new posterior after more simulator calls; this one stays as it is.

    Rounds follow the last: they draw theta from the prior cut to the region of this answer. All
    earlier pairs inside it are trained on again, and new pairs give a new verdict.

    A fit of every x becomes one at ``x_o``: its own pairs inside the region there are used again.

    Args:
        x_o: the observation, where the fit is of every x, or its rounds have not cut the prior yet;
            its own when omitted.
        num_simulations: the most further calls that may be made, failed ones included;
            ``num_simulations`` of the result counts all that were ever made.
        num_rounds: further rounds. When omitted: as many more as a fit of all the calls would have
            had, or one.
        seed: whole number of at least 0. The same posterior, arguments and seed give the same
            result.
        check_fraction: share of all calls that is kept for testing the new answer, a quarter of
            the further calls at most.
        stop_when: end early, as for :func:`abi.fit`; this answer is judged first.
        simulations: pairs made before, with theta drawn from the whole prior, to train on too.
            Needed if the posterior was loaded from a file, which holds no pairs; its run folder
            does (:func:`abi.resume`).
        simulator: the simulator of the fit; needed if the posterior was loaded from a file.
        prior: the prior of the fit; the simulator's own when omitted.
        workers: processes that simulate at the same time, or a cluster, as for :func:`abi.fit`.
        timeout: seconds after which a simulation counts as failed.
        run_dir: a new folder in which to keep the further rounds, for :func:`abi.resume`.
        progress: show a progress bar.

    Returns:
        The new posterior.

    Raises:
        ValueError: if the fit cannot go on, or an argument is not as described. The message names
            it and what to do.
        FileExistsError: if ``run_dir`` already holds a run.
    """
    check_workers(workers, timeout)
    check_simulations(simulations)
    kernel, reach = check_can_go_on(self)
    state = _state(self, kernel, reach, simulations)
    names = self.parameter_names
    known = self.problem, simulator, prior, self.x_o, names, timeout
    problem = posed_again(*known, layout=kernel.layout)
    problem = _at(self, reach, problem, x_o)
    if problem.encoder is None and kernel.encoder == OWN_ENCODER:
        problem = replace(problem, encoder=kernel.network.encoder)
    plan = further_plan(self, num_simulations, num_rounds, seed, check_fraction, stop_when)
    folder = None
    if run_dir is not None:
        origin = origin_of(problem.prior, problem.whole)
        given = Given.of(None, problem.encoder, None)
        folder = RunFolder.create(run_dir, problem, plan, origin, given)
        folder.save(state)
    work = Work(problem, plan, None, None if folder is None else folder.simulations, None)
    return run(work, folder, state, Pace(workers, timeout, progress), type(self).after)


def further_plan(
    fit: Finished,
    num_simulations: int,
    num_rounds: int | None = None,
    seed: int = 0,
    check_fraction: float = CHECK_FRACTION,
    stop_when: StopWhen = None,
) -> Plan:
    """The plan of rounds that follow a fit."""
    calls = as_count(num_simulations, "num_simulations", 1)
    done, spent = len(fit.rounds), fit.num_simulations
    if num_rounds is None:
        num_rounds = max(1, default_rounds(spent + calls) - done)
    return Plan(
        calls,
        num_rounds,
        child_seed(fit.seed, REFINE_KEY, done, as_count(seed, "seed")),
        replace(fit.config, tolerances=None),
        check_fraction,
        stop_when,
        rounds_before=done,
        calls_before=spent,
    )


def check_can_go_on(fit: Finished) -> tuple[LearnedKernel, Reach]:
    """What rounds that follow begin from, of a fit that cuts the prior: else no pair serves again.

    Raises:
        ValueError: saying why.
    """
    kernel, reach = fit.kernel, fit.reach
    if not isinstance(kernel, LearnedKernel) or reach is None:
        raise ValueError(f"`refine`: no rounds can follow: {why_at_x_o_alone(fit)}.")
    if fit.config.proposal != "truncated":
        raise ValueError(
            "`refine`: rounds follow only where proposals are the prior cut to a region; the fit "
            f"has proposal={fit.config.proposal!r}. Fit again with proposal='truncated'."
        )
    return kernel, reach


def _at(fit: Finished, reach: Reach, problem: Problem, x_o: Any) -> Problem:
    """The problem at an observation, where the fit's rounds leave it open.

    Raises:
        ValueError: if there is none, or pairs are left around another one alone.
    """
    if x_o is None:
        if fit.x_o is None:
            raise ValueError(
                "`x_o` must be given: the fit is amortised, a posterior for every x; name the one "
                "to refine it at."
            )
        return problem
    there = problem.at(x_o)
    if reach.regions and not same_values(there.x_o, problem.x_o):
        raise ValueError(
            "`x_o`: the fit's rounds have cut the prior to a region around another observation. "
            "Refine the amortised fit that abi.fit(prior, simulator, None) gives, or fit again."
        )
    return there


def _state(
    fit: Finished, kernel: LearnedKernel, reach: Reach, simulations: Simulations | None
) -> RoundState:
    """Where the rounds left off, and the pairs that join.

    Raises:
        ValueError: if there are no pairs at all.
    """
    state = fit.state
    if state is None:
        if simulations is None:
            raise ValueError(
                "`refine`: a posterior read from a file holds no simulations to go on with; go on "
                "from its run folder (abi.resume(run_dir, num_simulations=...), or abi fit "
                "--continue), or pass simulations=."
            )
        none = torch.empty(0, len(fit.parameter_names)), torch.empty(0, len(kernel.x_o))
        state = RoundState(
            kernel, torch.inf, fit.model, *none, fit.accepted, fit.rounds,
            reach.regions, final=True,
        )  # fmt: skip
    if simulations is None:
        return state
    check_shapes(simulations, state.theta.shape[1], kernel.x_o)
    inside = inside_all(state.regions, simulations.theta)
    return replace(
        state,
        theta=torch.cat([state.theta, simulations.theta[inside]]),
        x=torch.cat([state.x, kernel.layout.hidden(simulations.x[inside])]),
    )
