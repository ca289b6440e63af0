"""What ``abi fit --resume`` may be told: what the run began with, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators.given.observation import same_values

from ...config import ABIConfig
from ...files.run_folder import POSTERIOR
from ...plan import Plan, answers_elsewhere
from ...posterior import ABIPosterior
from ...rounds.record import RoundState
from ...saved import load


def check_origin(began: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse another simulator or prior than the run began with, as far as its folder tells.

    Raises:
        ValueError: naming both.
    """
    for what in ("simulator", "prior"):
        before, after = began[what], now[what]
        if before is None:  # an object without a path: the words that named it are left
            before, after = (origin.get("named", {}).get(what) for origin in (began, now))
        if before is not None and before != after:
            got = after or now.get("named", {}).get(what)
            raise ValueError(
                f"`--{what}`: the run began with {_words(before)}; got {_words(got)}. Go on with "
                "the same, or begin another run in another --out."
            )


def check_plan(plan: Plan, asked: Mapping[str, Any], paper: bool) -> None:
    """Refuse numbers that are not those of the run; None is what was not given.

    Args:
        plan: what the run began with.
        asked: option -> its value.
        paper: whether the algorithm as published was asked for.

    Raises:
        ValueError: naming the option and both values.
    """
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
                f"`{option}`: the run began with {began}; got {asked[option]}. Leave it out to go "
                "on, or begin another run in another --out."
            )
    # A run may go on on another device.
    if paper and plan.config.on("cpu") != ABIConfig.paper().on("cpu"):
        raise ValueError(
            "`--paper`: the run began with other constants. Leave it out to go on, or begin "
            "another run in another --out."
        )


def check_observation(x_o: Tensor, observed: Tensor | None) -> None:
    """Refuse another observation than that of the run; None where none was given.

    Raises:
        ValueError: if they differ.
    """
    if observed is not None and not same_values(observed, x_o):
        raise ValueError(
            "`--observed`: the run began with another x_o. Leave it out to go on, or begin another "
            "run in another --out."
        )


def checked_further(path: Path, state: RoundState | None, plan: Plan) -> ABIPosterior | None:
    """The answer in a finished run's folder, where ``abi check`` has added pairs to it.

    To make it again would lose them.
    """
    file = path / POSTERIOR
    if state is None or not state.final or not file.is_file():
        return None
    kept = load(file)
    return None if kept.pairs is None or kept.pairs.num_calls <= plan.num_check else kept


def _words(origin: Any) -> str:
    """An origin as a reader would name it."""
    if origin is None:
        return "an object without an import path"
    if origin == "task":
        return "the simulator's own"
    if isinstance(origin, str):
        return origin
    arguments = origin["arguments"] or {}
    words = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{origin['path']}({words})" if words else str(origin["path"])
