"""Where prior and simulator can be imported from again, so that a run can be resumed by its folder.

Functions are never stored. What is kept is an import path, ``module:object``, and for a task the
plain values it was made with; an object that has no such path is given again to ``abi.resume``.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping
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


def origin_of_named(prior: Any, simulator: Any, named: Mapping[str, str | None]) -> dict[str, Any]:
    """The same of objects that were named; one without a path has the one it was named by.

    The instance of a class that was named has none: what names it is kept all the same.

    Args:
        prior: that of the fit.
        simulator: that of the fit.
        named: "prior" and "simulator" -> ``module:object``, None where none was named.
    """
    origin = origin_of(prior, simulator)
    for what, spec in named.items():
        if origin[what] is None and spec and not inspect.isclass(load_object(spec, what)):
            origin[what] = {"path": spec, "arguments": None}
    return origin | {"named": named}


def other_than(began: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Which of prior and simulator is another one, as far as origins tell, and both in words."""
    for what in ("simulator", "prior"):
        before, after = began[what], now[what]
        if before is None:  # an object without a path: the words that named it are left
            before, after = (origin.get("named", {}).get(what) for origin in (began, now))
        if before is not None and before != after:
            return what, _words(before), _words(after or now.get("named", {}).get(what))
    return None


def from_origin(origin: dict[str, Any], prior: Any, simulator: Any) -> tuple[Any, Any]:
    """Prior and simulator: those given, or those that the origin leads to.

    Raises:
        ValueError: if one of them is neither given nor importable.
    """
    simulator = restored(origin["simulator"], "simulator") if simulator is None else simulator
    if prior is None and origin["prior"] == _TASK_PRIOR:
        return simulator.prior, simulator
    return (restored(origin["prior"], "prior") if prior is None else prior), simulator


def restored(origin: dict[str, Any] | None, argument: str) -> Any:
    """The object that one entry of an origin leads to.

    Raises:
        ValueError: if it has no path, or none that leads to it.
    """
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


def load_instance(spec: str, option: str) -> Any:
    """Import ``module:object``, as :func:`load_object`; a class is called without arguments."""
    found = load_object(spec, option)
    return found() if inspect.isclass(found) else found


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
