"""Which simulator a store is of: its name, its settings, and a digest of its code."""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import math
import sys
from dataclasses import dataclass, fields, is_dataclass, replace
from types import CellType, CodeType
from typing import Any

import numpy as np

from ..gaps.mechanism import WithGaps
from ..given.command import Command
from ..given.function import FunctionSimulator
from ..given.task import CustomTask

_OWN = __name__.split(".")[0]


@dataclass(frozen=True)
class Identity:
    """Which simulator a store is of."""

    name: str
    module: str
    settings: dict[str, Any]
    """Plain values by name: fields of a dataclass, arguments of a partial."""
    code: str
    """Python's version, which the code of a function depends on, and a digest; or nothing."""


def identify(simulator: Any) -> Identity:
    """What a store remembers of a simulator; a task of a user's function is that function."""
    if isinstance(simulator, CustomTask):
        return identify(simulator.simulator)
    if isinstance(simulator, FunctionSimulator):
        inner = identify(simulator.function)
        return replace(inner, settings={"batched": simulator.batched} | inner.settings)
    if isinstance(simulator, WithGaps):
        inner, missing = identify(simulator.simulator), simulator.missing
        gaps = identify(missing).code if callable(missing) else _plain(missing) or True
        return replace(inner, settings={"missing": gaps} | inner.settings)
    if isinstance(simulator, functools.partial):
        inner = identify(simulator.func)
        given = _plain_values(dict(enumerate(simulator.args)) | simulator.keywords)
        return replace(inner, settings=inner.settings | given)
    named = simulator if hasattr(simulator, "__qualname__") else type(simulator)
    owner = getattr(simulator, "__self__", simulator)  # of a bound method
    package = named.__module__.split(".")[0]
    home = package if package == _OWN else named.__module__  # ours may move inside the package
    if isinstance(simulator, Command):  # what is code of it is what reads its output
        code = "" if simulator.reader is None else _code(simulator.reader)
    else:
        code = _code(simulator)
    return Identity(named.__qualname__, home, _settings(owner), code)


def settled(kept: Identity) -> Identity:
    """A model of ours by its package alone: its file, and what it imports, may have moved."""
    if not kept.module.startswith(f"{_OWN}."):
        return kept
    return replace(kept, module=_OWN, code="")


def _settings(owner: Any) -> dict[str, Any]:
    if not is_dataclass(owner) or isinstance(owner, type):
        return {}
    return _plain_values({f.name: getattr(owner, f.name) for f in fields(owner) if f.compare})


def _plain_values(values: dict[Any, Any]) -> dict[str, Any]:
    plain = {str(name): _plain(value) for name, value in values.items()}
    return {name: value for name, value in plain.items() if value is not None}


def _plain(value: Any) -> Any:
    """A value as JSON gives it back; None where it is not one of the plain ones."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if is_dataclass(value) and not isinstance(value, type):
        return _settings(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(value)
    return value if isinstance(value, bool | int | str) else None


def _code(simulator: Any) -> str:
    """A digest of a function's instructions and of the plain values it carries with it.

    Comments, docstrings, line numbers and the code of the functions it calls do not count.
    """
    carried: list[Any] = []
    function = inspect.unwrap(simulator)
    if not hasattr(function, "__qualname__"):  # an object that can be called
        if not is_dataclass(function):
            values = getattr(function, "__dict__", {})
            public = {name: _steady(value) for name, value in values.items() if name[0] != "_"}
            carried.append(_plain_values(public))
        function = inspect.unwrap(type(function).__call__)
    function = getattr(function, "py_func", function)  # behind numba's compiler
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    carried.append(_plain(function.__defaults__ or ()))
    carried.append(_plain_values(function.__kwdefaults__ or {}))
    carried.append(_plain([_steady(_content(cell)) for cell in function.__closure__ or ()]))
    digest = hashlib.sha256(f"{_instructions(code)} {carried}".encode()).hexdigest()
    return f"{sys.version_info.major}.{sys.version_info.minor} {digest}"


def _steady(value: Any) -> Any:
    """A value, or None for whole numbers and lists: they may count or note down the calls."""
    counts = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return None if counts or isinstance(value, list) else value


def _content(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None


def _instructions(code: CodeType) -> str:
    steps = dis.get_instructions(code)  # a docstring is no operand of any
    return " ".join(f"{step.opname} {_operand(step.argval)}" for step in steps)


def _operand(value: Any) -> str:
    if isinstance(value, CodeType):
        return f"({_instructions(value)})"
    # A set has no order of its own.
    return str(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
