"""Simulator and prior: as a command names them, or as the run does that it goes on with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...files.origin import load_instance, restored

_OWN_PRIOR = {"prior": "task"}


def simulator_and_prior(
    simulator: str | None,
    prior: str | None,
    origin: Mapping[str, Any] = _OWN_PRIOR,
    option: str = "--simulator",
) -> tuple[Any, Any]:
    """Both as named here, or else as ``origin``, that of a run, names them.

    Raises:
        ValueError: if one of them is named nowhere, or cannot be imported.
    """
    model = load_instance(simulator, option) if simulator else _restored(origin, "simulator")
    if prior is not None:
        return model, load_instance(prior, "--prior")
    if origin["prior"] != "task":
        return model, _restored(origin, "prior")
    if not hasattr(model, "prior"):
        raise ValueError(
            "`--prior` is needed, for the simulator brings none of its own: --prior mymodule:prior."
        )
    return model, model.prior


def _restored(origin: Mapping[str, Any], what: str) -> Any:
    """What a run names, or what to type where it names none."""
    if origin.get(what) is None:
        spec = origin.get("named", {}).get(what) or "module:object"
        raise ValueError(
            f"`--{what}` must name the {what}, which the fit does not: --{what} {spec}."
        )
    return restored(origin[what], what)
