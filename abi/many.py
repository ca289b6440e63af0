"""One fit for several observations: they share its simulations, its rounds and its networks.

The first round simulates from the prior. Each later one draws from the prior cut to the union of
the regions where the posteriors at the observations lie, so that one set of pairs, and one
training, serves them all. Inside the union theta given x has the law it has under the prior, and
each posterior lies inside: read at its own x_o, the last flows answer as those of a fit of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from simulators import Simulations
from simulators.gaps.mechanism import declares_gaps, with_gaps_of
from simulators.running.engines import Workers, check_workers

from .config import ABIConfig
from .course import Pace, run
from .files.origin import from_origin, origin_of
from .files.run_folder import Given, RunFolder
from .plan import Plan, check_all_kept, check_generator, default_rounds
from .posteriors import Posteriors
from .rounds.problem import Problem, check_measured, check_simulations, pose
from .rounds.steps import Work
from .sampler import placed

_ROUNDS = 3
CHECKED = 0.2
"""Of the calls, those that check the answers: each observation has pairs of its own."""


def fit_many(
    prior: Any,
    simulator: Callable[..., Any],
    observations: Any,
    *,
    num_simulations: int = 20_000,
    num_rounds: int | None = None,
    seed: int = 0,
    check_fraction: float = CHECKED,
    config: ABIConfig | None = None,
    encoder: nn.Module | None = None,
    simulations: Simulations | None = None,
    parameter_names: Sequence[str] | None = None,
    workers: Workers = 1,
    timeout: float | None = None,
    run_dir: str | Path | None = None,
    device: str | None = None,
    progress: bool = True,
) -> Posteriors:
    """Infer the parameters of a simulator from each of several observations, by one fit.

    All observations share the simulator calls of its rounds and the training of its networks;
    each has a posterior and a verdict of its own. It pays where they are of one kind, and their
    posteriors together narrower than the prior; where they are not, the fit is in effect an
    amortised one (``abi.fit(prior, simulator, None)``) of all the calls.

    Args:
        prior: as for :func:`abi.fit`.
        simulator: as for :func:`abi.fit`.
        observations: a list of K observations, each in a form that :func:`abi.fit` takes; an array
            (K, p); or a data frame, a row each. NaN is a value that was not measured, in each
            observation another one where that is so.
        num_simulations: the most simulator calls for all of them together, checks included.
        num_rounds: the most rounds that share these calls; 3 when omitted, 2 below 750 simulations.
            Where the posteriors turn out as wide as what they were drawn from, all calls that are
            left make one last round.
        seed: whole number of at least 0. The same arguments and seed give the same posteriors.
        check_fraction: share of the calls, in [0, 1/2], that is kept for the verdicts: each of the
            K has an equal part of them.
        config: settings of the method; those that keep pairs near one x_o do not go with it.
        encoder: your own torch module, as for :func:`abi.fit`.
        simulations: pairs made before, with theta drawn from the prior, for the first round.
        parameter_names: d names.
        workers: processes that simulate at the same time, or a cluster, as for :func:`abi.fit`.
        timeout: seconds after which a simulation counts as failed.
        run_dir: folder in which the fit keeps its rounds, and the posteriors as files of their own
            in ``run_dir/posteriors``. :func:`abi.resume_many` goes on from there.
        device: where the networks train.
        progress: show a progress bar.

    Returns:
        A sequence of K posteriors. ``print(posteriors)`` shows their verdicts;
        ``posteriors[3].refine(num_simulations=2_000)`` spends more on one of them.

    Raises:
        TypeError, ValueError: if an argument is not as described. The message names it.
        FileExistsError: if ``run_dir`` already holds a run.

    Warns:
        UserWarning: if some observations are unlike the data that the model simulates.

    Source: the rounds are those of Lu & Wong (2025), Algorithm 2; regions that several observations
    share are ours.
    """
    check_workers(workers, timeout)
    each = _each(observations)
    config = placed(ABIConfig() if config is None else config, device, each[0])
    check_all_kept(config, "there are several observations")
    if num_rounds is None:
        num_rounds = min(_ROUNDS, default_rounds(num_simulations))
    plan = Plan(
        num_simulations, num_rounds, seed, config, check_fraction, num_observations=len(each)
    )
    check_generator(plan)
    check_simulations(simulations)
    problem = pose(prior, simulator, each[0], parameter_names, encoder, timeout)
    problem = _of_several(problem, each)
    folder = None
    if run_dir is not None:
        origin, given = origin_of(prior, simulator), Given.of(None, encoder, simulations)
        folder = RunFolder.create(run_dir, problem, plan, origin, given)
    work = Work(problem, plan, None, None if folder is None else folder.simulations, simulations)
    return run(work, folder, None, Pace(workers, timeout, progress), Posteriors.after)


def resume_many(
    run_dir: str | Path,
    prior: Any = None,
    simulator: Callable[..., Any] | None = None,
    *,
    encoder: nn.Module | None = None,
    simulations: Simulations | None = None,
    workers: Workers = 1,
    timeout: float | None = None,
    device: str | None = None,
    progress: bool = True,
) -> Posteriors:
    """Go on with an interrupted :func:`abi.fit_many`; the result is that of the uninterrupted one.

    Args:
        run_dir: the folder that was given to it.
        prior: the prior of the fit. Needed only if it cannot be imported.
        simulator: the simulator of the fit; needed in the same cases.
        encoder: the ``encoder`` module that the fit was given, if any.
        simulations: the ``simulations`` that the fit was given, if any.
        workers: processes that simulate at the same time, or a cluster, as for :func:`abi.fit`.
        timeout: seconds after which a simulation counts as failed.
        device: where the networks train; where they did before when omitted.
        progress: show a progress bar.

    Raises:
        ValueError: if the folder holds no such run, or an argument is missing or not that of the
            run.
    """
    check_simulations(simulations)
    folder = RunFolder.open(run_dir)
    if (several := folder.several) is None:
        raise ValueError(
            f"`run_dir` {folder.path} holds a fit of one x_o; go on with it by "
            f"abi.resume({str(folder.path)!r})."
        )
    folder.check_given(Given.of(None, encoder, simulations))
    plan, x_o, names, origin = folder.request()
    plan = replace(plan, config=placed(plan.config, device, x_o))
    prior, simulator = from_origin(origin, prior, simulator)
    state = folder.last_state(plan, x_o, None, encoder)
    problem = pose(prior, simulator, x_o, names, encoder, timeout)
    problem = _of_several(problem, list(several))
    work = Work(problem, plan, None, folder.simulations, simulations)
    return run(work, folder, state, Pace(workers, timeout, progress), Posteriors.after)


def _each(observations: Any) -> list[Any]:
    """Observations one by one: rows of an array or of a data frame, or what a list holds.

    Raises:
        TypeError: if they are none of these.
        ValueError: if there are none.
    """
    if hasattr(observations, "iterrows"):
        each = [row for _, row in observations.iterrows()]
    elif isinstance(observations, str | bytes | dict) or not hasattr(observations, "__iter__"):
        raise TypeError(
            "`observations` must be a list of observations, an array (K, p) or a data frame; got "
            f"{type(observations).__name__}. For one use abi.fit(prior, simulator, x_o)."
        )
    else:
        each = list(observations)
    if not each:
        raise ValueError("`observations` holds none; pass one x_o at least.")
    return each


def _of_several(problem: Problem, each: Sequence[Any]) -> Problem:
    """The problem of all observations together; the first stands in for x_o.

    Where their gaps differ, and the simulator says nothing of gaps, each simulation gets those of
    one of them.

    Raises:
        TypeError, ValueError: naming the observation that is not one of the simulator's.
    """
    rows = []
    for number, x_o in enumerate(each, 1):
        try:
            rows.append(problem.row(x_o))
            check_measured(rows[-1], problem.simulator)
        except (TypeError, ValueError) as error:
            raise type(error)(f"`observations`, number {number}: {error}") from error
    several = torch.stack(rows)
    absent = several.isnan()
    if not declares_gaps(problem.simulator) and bool((absent != absent[0]).any()):
        layout = replace(problem.layout.measured, missing="values")
        simulator = with_gaps_of(problem.whole, several)
        problem = replace(problem, simulator=simulator, layout=layout)
    return replace(problem, amortised=True, several=several)
