"""A folder that keeps every finished simulation: append-only, whole after a kill at any moment.

    STORE/manifest.json         format, version, seed, number of rows, sha256 of theta, simulator
    STORE/rows-00000042.npy     a structured array: row, theta (d,), x (p,)
    STORE/failed-00000043.npy   a structured array: row, theta (d,), reason

The files are numpy's own format, without pickles: ``np.load(path)["x"]`` reads one. Each is
written under another name, forced to the disk, renamed and the folder forced to the disk, so a
file is there whole or not at all. Nothing is ever written again or appended to. Rows appear in
order of completion; readers put them in order of submission.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import json
import math
import os
import sys
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import CellType, CodeType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..arguments import as_path
from ..base import Failure, Simulations
from ..files.disk import force_folder, hold_folder
from ..gaps.mechanism import WithGaps
from ..given.command import Command
from ..given.function import FunctionSimulator
from ..given.task import CustomTask
from ..running.batches import BatchResult, FloatArray, join

_FORMAT, _VERSION = "simulators store", 1
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


@dataclass(frozen=True)
class Manifest:
    """What a store is of."""

    seed: int
    num_rows: int
    theta_dim: int
    theta_sha256: str
    simulator: Identity | None = None
    """None in a store of before simulators were remembered."""
    format: str = _FORMAT
    version: int = _VERSION


def load_store(path: str | os.PathLike[str]) -> Simulations:
    """Read the simulations in a store, whether the run has finished or not.

    Args:
        path: the folder given to ``simulate(..., store=path)`` or ``abi simulate --out``.

    Returns:
        The simulations that did not fail, in the order of the theta that were given, and the
        failures.

    Raises:
        ValueError: if there is no store, or one of its files is damaged.
    """
    folder = as_path(path, "store")
    manifest = read_manifest(folder)
    parts = [read_file(file) for file in files_of(folder)]
    result = join([part for part, _ in parts])
    theta = np.zeros((manifest.num_rows, manifest.theta_dim), np.float32)
    for part, values in parts:
        theta[_rows_of(part)] = values
    return to_simulations(result, theta, manifest.seed)


def forget_failures(path: str | os.PathLike[str]) -> int:
    """Forget the failures in a store, so that the next run tries them again.

    Use it where they need not fail again: the timeout was too short, or memory too small.

    Args:
        path: the folder that was given to :func:`simulate` as ``store``.

    Returns:
        How many were forgotten, rows with another number of values than most included.

    Raises:
        ValueError: if it holds no store, or one that is damaged or being written to.
    """
    folder = as_path(path, "store")
    read_manifest(folder)
    with hold_folder(folder):
        parts = {file: read_file(file)[0] for file in files_of(folder)}
        result = join(list(parts.values()))
        for file, part in parts.items():
            if not len(part.index) or part.x.shape[1] != result.x.shape[1]:
                file.unlink()
        force_folder(folder)
    return len(result.failures)


def to_simulations(result: BatchResult, theta: FloatArray, seed: int) -> Simulations:
    """A result in order of submission, with the parameters (n, d) of its rows."""
    failures = tuple(
        Failure(f.index, f.reason, tuple(theta[f.index].tolist())) for f in result.failures
    )
    return Simulations(
        torch.from_numpy(theta[result.index]),
        torch.from_numpy(result.x),
        torch.from_numpy(result.index),
        failures,
        seed,
    )


def read_manifest(folder: Path) -> Manifest:
    """What the store in a folder is of, or what is wrong with it."""
    try:
        values = json.loads((folder / "manifest.json").read_text())
        if not isinstance(values, dict):
            raise ValueError("it is not a JSON object")
    except FileNotFoundError as error:
        raise ValueError(
            f"`store`: {folder} holds no store: it has no manifest.json. Name the store= of "
            "simulators.simulate or the --out of abi simulate."
        ) from error
    except ValueError as error:
        raise ValueError(f"`store`: {folder / 'manifest.json'} is damaged: {error}") from error
    if values.get("format") != _FORMAT or values.get("version") != _VERSION:
        raise ValueError(
            f"`store`: {folder} has format {values.get('format')!r} version "
            f"{values.get('version')!r}; this version of the package reads {_FORMAT!r} {_VERSION}."
        )
    try:
        known = {f.name: values[f.name] for f in fields(Manifest) if f.name != "simulator"}
        simulator = values.get("simulator")
        if simulator is not None:
            simulator = _settled(Identity(**{f.name: simulator[f.name] for f in fields(Identity)}))
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"`store`: {folder / 'manifest.json'} is damaged: it lacks {error}."
        ) from error
    return Manifest(**known, simulator=simulator)


def files_of(folder: Path) -> list[Path]:
    """The files with rows and failures."""
    return sorted([*folder.glob("rows-*.npy"), *folder.glob("failed-*.npy")])


def _load(file: Path) -> NDArray[Any]:
    try:
        with file.open("rb") as source:
            records: NDArray[Any] = np.lib.format.read_array(source, allow_pickle=False)
        if not {"row", "theta"} < set(records.dtype.names or ()):
            raise ValueError("it does not have the fields of a store")
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(
            f"`store`: {file} is damaged: {error}. Delete it and run again: its rows will be "
            "simulated anew."
        ) from error
    return records


def read_file(file: Path) -> tuple[BatchResult, FloatArray]:
    """The rows or failures of a file, and their theta."""
    records = _load(file)
    index = np.ascontiguousarray(records["row"])
    if "x" in (records.dtype.names or ()):
        return BatchResult(index, records["x"]), records["theta"]
    failures = tuple(
        Failure(int(row), reason.decode(errors="replace"))
        for row, reason in zip(index, records["reason"], strict=True)
    )
    empty = BatchResult(np.empty(0, np.int64), np.empty((0, 0), np.float32), failures)
    return empty, records["theta"]


def _rows_of(part: BatchResult) -> NDArray[np.int64]:
    """The submitted rows of a file, in its order."""
    return part.index if len(part.index) else np.array([f.index for f in part.failures], np.int64)


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


def _settled(kept: Identity) -> Identity:
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
