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
    words: Mapping[str, Any], device: str | None, timeout: float | None
) -> tuple[Any, RunFolder, Work]:
    """The simulator, the folder of a run that begins, goes on or goes further, and what to do.

    Args:
        words: option -> its value, None or False where it was not given.
        device: where the networks train.
        timeout: seconds a simulation may take.

    Raises:
        ValueError: if words are missing, or do not fit the run.
    """
    if words["--continue"] is not None:
        return _continued(words, device, timeout)
    if words["--simulator"] is None:
        raise ValueError(
            "`--simulator` is needed, module:object, such as simulators:MG1; or name a run that "
            "has ended: --continue RUN_DIR."
        )
    if (out := words["--out"]) is None:
        raise ValueError("`--out` is needed: a folder for the results.")
    named = {"prior": words["--prior"], "simulator": words["--simulator"]}
    model, prior = simulator_and_prior(words["--simulator"], words["--prior"])
    given = None if words["--simulations"] is None else _stored(words["--simulations"])
    if words["--resume"]:  # the budget, the seed and the constants are those the run began with
        folder = RunFolder.open(out)
        _, x_o, _, began = folder.request()
        _check_origin(began, origin_of_named(prior, model, named))
        if words["--observed"] is not None:
            _check_observation(x_o, _observation(model, words["--observed"]))
        return _going_on(folder, model, prior, given, words, device, timeout)
    config = placed(ABIConfig.paper() if words["--paper"] else ABIConfig(), device)
    budget = words["--num-simulations"] or NUM_SIMULATIONS
    plan = plan_of_fit(budget, *_settled(words), config)
    problem = pose(prior, model, _observation(model, words["--observed"]), timeout=timeout)
    origin = origin_of_named(prior, model, named)
    folder = RunFolder.create(out, problem, plan, origin, Given.of(None, None, given))
    return model, folder, Work(problem, plan, None, folder.simulations, given)


def _continued(
    words: Mapping[str, Any], device: str | None, timeout: float | None
) -> tuple[Any, RunFolder, Work]:
    """The same of a run that gets more rounds if it has ended."""
    for option in ("--out", "--observed", "--simulations", "--paper", "--resume"):
        if words[option]:
            raise ValueError(
                f"`{option}` cannot be changed by --continue: the run in the folder has its own. "
                "Leave it out."
            )
    folder = RunFolder.open(words["--continue"])
    origin = folder.request()[3]
    model, prior = simulator_and_prior(words["--simulator"], words["--prior"], origin)
    if folder.holds_answer:
        if words["--num-simulations"] is None:
            raise ValueError(
                f"`--num-simulations` is needed: the run in {folder.path} has ended; say how many "
                "calls more."
            )
        go_on(folder, (words["--num-simulations"], *_settled(words)))
    return _going_on(folder, model, prior, None, words, device, timeout)


def _going_on(
    folder: RunFolder,
    model: Any,
    prior: Any,
    given: Simulations | None,
    words: Mapping[str, Any],
    device: str | None,
    timeout: float | None,
) -> tuple[Any, RunFolder, Work]:
    """The same of a run that was begun, for which nothing else may be asked."""
    folder.check_given(Given.of(None, None, given))
    plan, x_o, names, _ = folder.request()
    _check_plan(plan, words)
    plan = replace(plan, config=placed(plan.config, device))
    problem = pose(prior, model, x_o, names, timeout=timeout)
    return model, folder, Work(problem, plan, None, folder.simulations, given)


def _settled(words: Mapping[str, Any]) -> tuple[Any, int, float, Any]:
    """Rounds, seed, share of the check and when to stop, where some were not given."""
    share = words["--check-fraction"]
    share = CHECK_FRACTION if share is None else share
    return words["--rounds"], words["--seed"] or 0, share, words["--stop-when"]


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


def _check_plan(plan: Plan, words: Mapping[str, Any]) -> None:
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
        if (asked := words[option]) not in (None, began):
            raise ValueError(f"`{option}`: the run began with {began}; got {asked}. {_OR_ELSE}")
    # A run may go on on another device.
    if words["--paper"] and plan.config.on("cpu") != ABIConfig.paper().on("cpu"):
        raise ValueError(f"`--paper`: the run began with other constants. {_OR_ELSE}")


def _check_observation(x_o: Tensor, observed: Tensor) -> None:
    """Refuse another observation than that of the run."""
    if not same_values(observed, x_o):
        raise ValueError(f"`--observed`: the run began with another x_o. {_OR_ELSE}")
