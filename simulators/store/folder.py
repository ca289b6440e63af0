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

import json
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..arguments import as_path
from ..base import Failure, Simulations
from ..files.disk import force_folder, hold_folder
from ..running.batches import BatchResult, FloatArray, join
from .identity import Identity, settled

_FORMAT, _VERSION = "simulators store", 1
_OWN = __name__.split(".")[0]


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
            simulator = settled(Identity(**{f.name: simulator[f.name] for f in fields(Identity)}))
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
