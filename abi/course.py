"""The course of a fit: the rounds that are left are run, and a finished fit goes on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, Self, TypeVar

from simulators.given.observation import same_values
from simulators.random import child_seed
from simulators.running.engines import Engine, Workers, open_engine
from validation.threads import one_thread

from .files.run_folder import RunFolder
from .generators.conditional import ConditionalFlows
from .generators.flow import FlowModel
from .plan import Plan
from .quantiles.kernel import LearnedKernel
from .rounds.judging import moments
from .rounds.plausibility import implausible, plausibility
from .rounds.problem import Problem
from .rounds.progress import FitProgress
from .rounds.record import RoundState
from .rounds.regions.finding import bounds
from .rounds.steps import Round, Work
from .training.torch_settings import usual_torch


@dataclass(frozen=True)
class Pace:
    """How a fit runs, whatever it says: processes that simulate, seconds a simulation, a bar."""

    workers: Workers = 1
    timeout: float | None = None
    progress: bool = True


class Answer(Protocol):
    """As much of a posterior as a course needs."""

    def checked(
        self, num_calls: int, problem: Problem, engine: Engine, slow_dir: Path | None = None
    ) -> Self:
        """The same, judged by so many fresh pairs."""
        ...

    def save(self, path: str | Path) -> None:
        """Write it to one file."""
        ...


A = TypeVar("A", bound=Answer)


def run(
    work: Work,
    folder: RunFolder | None,
    state: RoundState | None,
    pace: Pace,
    answer: Callable[[RoundState, Plan, Problem], A],
) -> A:
    """Run the rounds that are left, from ``state`` on, and check the answer they leave."""
    problem, plan = work.problem, work.plan
    budget = plan.calls_before + plan.num_simulations
    with (
        closing(open_engine(pace.workers, pace.timeout)) as engine,
        one_thread(),
        usual_torch(),
        FitProgress(plan.last_round, budget, pace.progress, not plan.adaptive) as shown,
    ):
        further = state is not None and state.final and len(state.records) == plan.rounds_before
        if folder is not None:
            folder.check_model(problem, engine, begins=state is None or further)
        if state is not None:
            shown.resume(state.records)
            if further:
                shown.phase("finding the region")
                state = reopened(state, plan, problem)
                if folder is not None:
                    folder.save(state)
        ended = state is not None and state.final  # pairs may have joined its answer since
        while state is None or not state.final:
            state = Round(work, engine, shown).run(state)
            if folder is not None:
                folder.save(state)
        posterior = answer(state, plan, problem)
        if plan.num_check:
            shown.phase("checking the answer")
            posterior = posterior.checked(plan.num_check, problem, engine, work.slow_dir)
        if folder is not None and not (ended and folder.holds_answer):
            folder.finish(posterior)
    doubt = implausible(state.records[-1].x_o_p_value)
    if doubt is not None:
        warnings.warn(doubt, stacklevel=4)
    return posterior


REGION, PLAUSIBLE = 0, 1
"""Keys of the plan's seed, which its rounds do not use: their numbers are larger."""


def reopened(state: RoundState, plan: Plan, problem: Problem) -> RoundState:
    """A finished state as one that rounds may follow, at the observation of the problem.

    Its answer becomes what the next round proposes by: the prior is cut to its region, where that
    leaves out enough. The pairs of its rounds stay, and those inside the region serve on.

    Args:
        state: after the last round of a fit that cuts the prior.
        plan: of the rounds that follow.
        problem: whose x_o may be another one where the prior was not cut so far.
    """
    record, model, kernel = state.records[-1], state.model, state.kernel
    if isinstance(kernel, LearnedKernel) and not same_values(kernel.x_o, problem.x_o):
        q = ConditionalFlows.of(model)
        model = model if q is None else q.at(problem.x_o)
        kernel = replace(kernel, x_o=problem.x_o)
        seed = child_seed(plan.seed, 0, PLAUSIBLE)
        p_value = plausibility(state.x, problem.x_o, seed, kernel.encoder, problem.layout)
        answer = moments(model)
        record = replace(record, x_o_p_value=p_value, answer=answer)
    counted = sum(part.simulator_calls + part.check_calls for part in state.records)
    record = replace(record, check_calls=record.check_calls + plan.calls_before - counted)
    seed = child_seed(plan.seed, 0, REGION)
    calls = plan.calls(plan.rounds_before + 1)
    flows = model.alone if isinstance(model, FlowModel) else model
    found = bounds(flows, problem, state.regions, state.theta, calls, seed)
    records = (*state.records[:-1], record)
    return replace(
        state,
        model=model,
        kernel=kernel,
        regions=found.regions,
        records=records,
        final=False,
        reopened=True,
        left=found.left,
    )
