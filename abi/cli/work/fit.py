"""What ``abi fit`` works on: a run that begins, one that goes on, or one that gets more calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators import Simulations, load_store
from simulators.given.observation import same_values

from ...config import ABIConfig
from ...files.arrays import load_array
from ...files.origin import origin_of_named, other_than
from ...files.run_folder import Given, RunFolder
from ...plan import CHECK_FRACTION, Plan, answers_elsewhere, plan_of_fit
from ...rounds.problem import observed_by, pose
from ...rounds.steps import Work
from ...sampler import go_on, placed
from .named import simulator_and_prior

NUM_SIMULATIONS = 20_000
"""Calls of a fit that is not told how many."""
_OR_ELSE = "Leave it out to go on, or begin another run in another --out."


def opened(
    out: Path | None,
    observed: Path | None,
    simulations: Path | None,
    named: dict[str, str | None],
    asked: Mapping[str, Any],
    paper: bool,
    device: str | None,
    timeout: float | None,
    resume: bool,
) -> tuple[Any, RunFolder, Work]:
    """The simulator, the folder of a run that begins or goes on, and what is to be done.

    Raises:
        ValueError: if words are missing, or do not fit the run.
    """
    if named["simulator"] is None:
        raise ValueError(
            "`--simulator` is needed, module:object, such as simulators:MG1; or name a run that "
            "has ended: --continue RUN_DIR."
        )
    if out is None:
        raise ValueError("`--out` is needed: a folder for the results.")
    model, prior = simulator_and_prior(named["simulator"], named["prior"])
    given = None if simulations is None else _stored(simulations)
    if resume:  # the budget, the seed and the constants are those the run began with
        folder = RunFolder.open(out)
        _, x_o, _, began = folder.request()
        _check_origin(began, origin_of_named(prior, model, named))
        _check_observation(x_o, None if observed is None else _observation(model, observed))
        return _going_on(folder, model, prior, asked, device, timeout, paper, given)
    plan = plan_of_fit(
        asked["--num-simulations"] or NUM_SIMULATIONS,
        *_settled(asked),
        placed(ABIConfig.paper() if paper else ABIConfig(), device),
    )
    problem = pose(prior, model, _observation(model, observed), timeout=timeout)
    origin = origin_of_named(prior, model, named)
    folder = RunFolder.create(out, problem, plan, origin, Given.of(None, None, given))
    return model, folder, Work(problem, plan, None, folder.simulations, given)


def continued(
    run_dir: Path,
    named: dict[str, str | None],
    asked: Mapping[str, Any],
    others: Mapping[str, Any],
    device: str | None,
    timeout: float | None,
) -> tuple[Any, RunFolder, Work]:
    """The simulator, the folder, and what is to be done; a run that has ended gets more rounds.

    Args:
        run_dir: its folder.
        named: prior and simulator, where the run does not name them.
        asked: option -> its value, for the further calls.
        others: option -> its value, of those that are of a new run: none may be given.
        device: where the networks train.
        timeout: seconds a simulation may take.

    Raises:
        ValueError: if the run cannot go on, or was asked for something else.
    """
    for option, value in others.items():
        if value:
            raise ValueError(
                f"`{option}` cannot be changed by --continue: the run in the folder has its own. "
                "Leave it out."
            )
    folder = RunFolder.open(run_dir)
    origin = folder.request()[3]
    model, prior = simulator_and_prior(named["simulator"], named["prior"], origin)
    if folder.holds_answer:
        if asked["--num-simulations"] is None:
            raise ValueError(
                f"`--num-simulations` is needed: the run in {run_dir} has ended; say how many "
                "calls more."
            )
        go_on(folder, (asked["--num-simulations"], *_settled(asked)))
    return _going_on(folder, model, prior, asked, device, timeout)


def _going_on(
    folder: RunFolder,
    model: Any,
    prior: Any,
    asked: Mapping[str, Any],
    device: str | None,
    timeout: float | None,
    paper: bool = False,
    given: Simulations | None = None,
) -> tuple[Any, RunFolder, Work]:
    """The same of a run that was begun, for which nothing else may be asked."""
    folder.check_given(Given.of(None, None, given))
    plan, x_o, names, _ = folder.request()
    _check_plan(plan, asked, paper)
    plan = replace(plan, config=placed(plan.config, device))
    problem = pose(prior, model, x_o, names, timeout=timeout)
    return model, folder, Work(problem, plan, None, folder.simulations, given)


def _settled(asked: Mapping[str, Any]) -> tuple[Any, int, float, Any]:
    """Rounds, seed, share of the check and when to stop, where some were not given."""
    share = asked["--check-fraction"]
    share = CHECK_FRACTION if share is None else share
    return asked["--rounds"], asked["--seed"] or 0, share, asked["--stop-when"]


def _stored(path: Path) -> Simulations:
    """Simulations made before."""
    if not path.is_dir():
        raise ValueError(
            f"`--simulations`: there is no folder {path}; name a store, the --out of abi simulate."
        )
    return load_store(path)


def _observation(model: Any, path: Path | None) -> Tensor:
    if path is not None:
        return observed_by(model, load_array(path, "--observed").reshape(-1)).values
    try:
        observation: Tensor = model.observation
    except (AttributeError, NotImplementedError):
        raise ValueError(
            "`--observed` is needed, for the simulator has no default: --observed x_o.csv."
        ) from None
    return observation


def _check_origin(began: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse another simulator or prior than the run began with, as far as its folder tells."""
    if (other := other_than(began, now)) is not None:
        what, before, got = other
        raise ValueError(
            f"`--{what}`: the run began with {before}; got {got}. Go on with the same, or begin "
            "another run in another --out."
        )


def _check_plan(plan: Plan, asked: Mapping[str, Any], paper: bool) -> None:
    """Refuse numbers, or the algorithm as published, that the run did not begin with."""
    stored: dict[str, Any] = {
        "--num-simulations": plan.num_simulations,
        "--rounds": plan.num_rounds,
        "--stop-when": plan.stop_when or "none",
    }
    if not plan.rounds_before:  # else it is a child of the one that was given
        stored["--seed"] = plan.seed
    if answers_elsewhere(plan.config, plan.num_rounds):  # else no share was kept, whatever it was
        stored["--check-fraction"] = plan.check_fraction
    for option, began in stored.items():
        if asked[option] not in (None, began):
            raise ValueError(
                f"`{option}`: the run began with {began}; got {asked[option]}. {_OR_ELSE}"
            )
    # A run may go on on another device.
    if paper and plan.config.on("cpu") != ABIConfig.paper().on("cpu"):
        raise ValueError(f"`--paper`: the run began with other constants. {_OR_ELSE}")


def _check_observation(x_o: Tensor, observed: Tensor | None) -> None:
    """Refuse another observation than that of the run; None where none was given."""
    if observed is not None and not same_values(observed, x_o):
        raise ValueError(f"`--observed`: the run began with another x_o. {_OR_ELSE}")
