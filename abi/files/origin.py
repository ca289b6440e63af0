"""Where prior and simulator can be imported from again, so that a run can be resumed by its folder.

Functions are never stored. What is kept is an import path, ``module:object``, and for a task the
plain values it was made with; an object that has no such path is given again to ``abi.resume``.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from typing import Any

import torch

import simulators
from simulators import sample_prior
from simulators.given.raised import in_one_line

_PLAIN = (bool, int, float, str, type(None))
_TASK_PRIOR = "task"  # the prior is the simulator's own


def origin_of(prior: Any, simulator: Any) -> dict[str, Any]:
    """Import paths of prior and simulator, None where there is none."""
    return {"prior": _prior_origin(prior, simulator), "simulator": _origin(simulator)}


def from_origin(origin: dict[str, Any], prior: Any, simulator: Any) -> tuple[Any, Any]:
    """Prior and simulator: those given, or those that the origin leads to.

    Raises:
        ValueError: if one of them is neither given nor importable.
    """
    simulator = _restore(origin["simulator"], "simulator") if simulator is None else simulator
    if prior is None and origin["prior"] == _TASK_PRIOR:
        return simulator.prior, simulator
    return (_restore(origin["prior"], "prior") if prior is None else prior), simulator


def load_object(spec: str, option: str) -> Any:
    """Import ``module:object``; the current folder is searched first, as ``python -m`` does.

    Args:
        spec: for example ``simulators:MG1`` or ``mymodule:simulate``.
        option: what it was given to, for the error.

    Raises:
        ValueError: if the module or the object does not exist, with the names that do.
    """
    module_name, separator, path = spec.partition(":")
    if not separator or not module_name or not path:
        raise ValueError(
            f"`{option}` must be module:object, such as simulators:MG1; got {spec!r}."
            f"{_instead(spec)}"
        )
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and not f"{module_name}.".startswith(f"{error.name}."):
            raise ValueError(
                f"`{option}`: module {module_name!r} needs {error.name!r}, which is not installed."
            ) from error
        raise ValueError(
            f"`{option}`: no module named {module_name!r}; run from the folder that holds it, "
            f"or install it.{_instead(spec)}"
        ) from error
    except Exception as error:  # of the user's own code
        raise ValueError(
            f"`{option}`: module {module_name!r} cannot be imported: {in_one_line(error)}. "
            f"Correct it until python -c 'import {module_name}' works."
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            offered = sorted(n for n in dir(found) if not n.startswith("_"))
            near = get_close_matches(name, offered, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"`{option}`: {spec!r} has no {name!r}; it offers: {', '.join(offered)}.{meant}"
            )
        found = getattr(found, name)
    return found


def _instead(spec: str) -> str:
    """What to write for a file, or for a dot in place of the colon."""
    module, separator, path = spec.partition(":")
    if separator and module.endswith(".py"):
        return f" Write {module.removesuffix('.py').replace('/', '.')}:{path}."
    if not separator and not spec.endswith(".py") and "." in spec:
        module, _, path = spec.rpartition(".")
        return f" Write {module}:{path}."
    return ""


def _origin(thing: Any) -> dict[str, Any] | None:
    if inspect.isfunction(thing):
        path, arguments = _path_of(thing), None
    elif is_dataclass(thing) and not isinstance(thing, type):
        values = {field.name: getattr(thing, field.name) for field in fields(thing) if field.init}
        if not all(isinstance(value, _PLAIN) for value in values.values()):
            return None
        path, arguments = _path_of(type(thing)), values
    else:
        return None
    if path.startswith("__main__:") or "<" in path:
        return None
    return {"path": path, "arguments": arguments}


def _path_of(named: Any) -> str:
    """Where it can be imported from: a model of ours by the package's name, which does not move."""
    module, name = named.__module__, named.__qualname__
    offered = getattr(simulators, name, None) is named
    return f"{simulators.__name__ if offered else module}:{name}"


def _prior_origin(prior: Any, simulator: Any) -> Any:
    own = getattr(simulator, "prior", None)
    if own is not None and hasattr(prior, "sample"):
        # Priors are often made anew at each access: the same draws from the same seed are proof.
        draws = sample_prior(prior, 8, seed=0), sample_prior(own, 8, seed=0)
        if draws[0].shape == draws[1].shape and torch.equal(*draws):
            return _TASK_PRIOR
    return _origin(prior)


def _restore(origin: dict[str, Any] | None, argument: str) -> Any:
    if origin is None:
        raise ValueError(
            f"`{argument}` of this run was a Python object that cannot be imported; pass it again: "
            "abi.resume(run_dir, prior, simulator)."
        )
    module, _, name = origin["path"].partition(":")
    own = simulators.__name__
    # Runs of version 0.1 name the file of a model, which has moved since.
    known = module.startswith(f"{own}.") and hasattr(simulators, name)
    found = load_object(f"{own}:{name}" if known else origin["path"], argument)
    if origin["arguments"] is None:
        return found
    if not (is_dataclass(found) and isinstance(found, type)):  # a folder may be a stranger's
        raise ValueError(
            f"`{argument}` of this run names {origin['path']!r}, which is not a task that could be "
            "made again; pass it yourself."
        )
    return found(**origin["arguments"])
