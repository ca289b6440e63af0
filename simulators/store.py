"""A folder that keeps every finished simulation: append-only, whole after a kill at any moment.

    STORE/manifest.json         format and version, seed, number of rows, fingerprint of theta
    STORE/rows-00000042.npy     a structured array: row, theta (d,), x (p,)
    STORE/failed-00000043.npy   a structured array: row, theta (d,), reason

The files are numpy's own format, without pickles: ``np.load(path)["x"]`` reads one. Each is
written under another name, forced to the disk, renamed and the folder forced to the disk, so a
file is there whole or not at all. Nothing is ever written again or appended to. Rows appear in
order of completion; readers put them in order of submission.

Results go to the disk at once when the last write is a hundredth of the run's time ago or half a
second, whichever is less, and in runs of more than 500 s a thousandth of its time. What comes in
between is written together. So a night of simulations of any length gives a few thousand files,
not millions, and a kill costs at most that share of the time, beside what was being simulated.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray

from .base import Failure, Simulations
from .batches import BatchResult, FloatArray, join
from .random import fresh_seed

_FORMAT, _VERSION = "simulators store", 1
_EARLY_SHARE, _GAP_SECONDS, _LATE_SHARE = 1e-2, 0.5, 1e-3
_MAX_WAITING_BYTES = 64_000_000


@dataclass(frozen=True)
class Manifest:
    """What a store is of."""

    seed: int
    num_rows: int
    theta_dim: int
    theta_sha256: str
    format: str = _FORMAT
    version: int = _VERSION


def load_store(path: str | os.PathLike[str]) -> Simulations:
    """Read what a store holds, of a finished or an unfinished run.

    Args:
        path: the folder given to ``simulate(..., store=path)`` or ``abi simulate --out``.

    Returns:
        theta (m, d) and x (m, p) of the finished rows in order of submission, and the failures.

    Raises:
        ValueError: if there is no store, or one of its files is damaged.
    """
    folder = Path(path)
    manifest = _read_manifest(folder)
    parts = [_read_file(file) for file in _files(folder)]
    result = join([part for part, _ in parts])
    theta = np.zeros((manifest.num_rows, manifest.theta_dim), np.float32)
    for part, values in parts:
        theta[_rows_of(part)] = values
    return to_simulations(result, theta, manifest.seed)


def forget_failures(path: str | os.PathLike[str]) -> int:
    """Remove the failures of a store, so that the next run tries them again; returns how many.

    For failures that need not come again: the timeout was too short, memory too small.
    """
    folder = Path(path)
    _read_manifest(folder)
    files = sorted(folder.glob("failed-*.npy"))
    num_failures = sum(len(_load(file)) for file in files)
    for file in files:
        file.unlink()
    _force_folder(folder)
    return num_failures


def write_gap(run_seconds: float) -> float:
    """Seconds between two writes, that many seconds into a run."""
    return max(min(_EARLY_SHARE * run_seconds, _GAP_SECONDS), _LATE_SHARE * run_seconds)


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


class Store:
    """A store open for writing, by one run at a time; made by :func:`open_store`."""

    def __init__(self, folder: Path, seed: int, theta: FloatArray, lock: IO[str]) -> None:
        self.seed = seed
        self.kept = [_read_file(file)[0] for file in _files(folder)]
        self._folder, self._theta, self._lock = folder, theta, lock
        self._next_number = 1 + max((int(file.stem[-8:]) for file in _files(folder)), default=-1)
        self._waiting: list[BatchResult] = []
        self._waiting_bytes = 0
        self._trouble: BaseException | None = None
        self._closing = False
        self._change = threading.Condition()
        self._began, self._written = monotonic(), -math.inf
        self._writer = threading.Thread(target=self._write_on, daemon=True)
        self._writer.start()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def append(self, result: BatchResult) -> None:
        """Keep a result; it is on the disk soon, and certainly after ``close``.

        Raises:
            OSError: if an earlier one could not be written.
        """
        with self._change:
            self._raise_trouble()
            self._waiting.append(result)
            self._waiting_bytes += result.x.nbytes
            self._change.notify_all()
            while self._waiting_bytes > _MAX_WAITING_BYTES and self._trouble is None:
                self._change.wait()

    def close(self) -> None:
        """Write what is waiting and let go of the folder."""
        with self._change:
            self._closing = True
            self._change.notify_all()
        self._writer.join()
        self._lock.close()
        self._raise_trouble()

    def _write_on(self) -> None:
        """The writing thread: gather for a moment, write, until closed and done."""
        try:
            while batch := self._gather():
                self._write(batch)
                self._written = monotonic()
        except BaseException as error:
            with self._change:
                self._trouble = error
                self._change.notify_all()

    def _gather(self) -> list[BatchResult]:
        """Results to write, when it is time to; none when closed."""
        with self._change:
            while not self._closing:
                pause = self._written + write_gap(monotonic() - self._began) - monotonic()
                full = self._waiting_bytes > _MAX_WAITING_BYTES
                if self._waiting and (pause <= 0.0 or full):
                    break
                self._change.wait(pause if self._waiting else None)
            batch, self._waiting, self._waiting_bytes = self._waiting, [], 0
            self._change.notify_all()
            return batch

    def _write(self, results: list[BatchResult]) -> None:
        for width in sorted({r.x.shape[1] for r in results if len(r.index)}):
            same = [r for r in results if len(r.index) and r.x.shape[1] == width]
            index = np.concatenate([r.index for r in same])
            records = np.empty(len(index), self._dtype(("x", "<f4", (width,))))
            records["row"], records["theta"] = index, self._theta[index]
            np.concatenate([r.x for r in same], out=records["x"])
            self._save("rows", records)
        failures = [f for r in results for f in r.failures]
        if failures:
            reasons = [f.reason.encode() for f in failures]
            longest = max(1, *(len(reason) for reason in reasons))
            records = np.empty(len(failures), self._dtype(("reason", f"S{longest}")))
            records["row"] = [f.index for f in failures]
            records["theta"], records["reason"] = self._theta[records["row"]], reasons
            self._save("failed", records)

    def _dtype(self, last: Any) -> np.dtype[Any]:
        return np.dtype([("row", "<i8"), ("theta", "<f4", (self._theta.shape[1],)), last])

    def _save(self, kind: str, records: NDArray[Any]) -> None:
        name = f"{kind}-{self._next_number:08d}.npy"
        with _whole_file(self._folder / name) as file:
            np.save(file, records, allow_pickle=False)
        self._next_number += 1

    def _raise_trouble(self) -> None:
        if self._trouble is not None:
            raise OSError(
                f"`store`: writing to {self._folder} failed: {self._trouble}. What it holds is "
                "whole; mend the cause and run again to go on from there."
            ) from self._trouble


def open_store(path: str | os.PathLike[str], theta: FloatArray, seed: int | None) -> Store:
    """Open a store to write the simulations of ``theta`` (n, d), or to go on with them.

    Args:
        path: the folder; made when it does not exist.
        theta: the parameters, the same as before where the folder holds a store.
        seed: seed of the noise; that of the store, or a fresh one, when omitted.

    Raises:
        ValueError: if the folder holds something else, or simulations of another theta or seed,
            or if another run is writing to it.
    """
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`store` must be a folder; {folder} is a file.")
    folder.mkdir(parents=True, exist_ok=True)
    lock = _lock(folder)
    try:
        seed = _agree(folder, theta, seed)
        for remains in folder.glob("*.partial"):
            remains.unlink()
        return Store(folder, seed, theta, lock)
    except BaseException:
        lock.close()
        raise


def _agree(folder: Path, theta: FloatArray, seed: int | None) -> int:
    """The seed of the store, once it is certain that it is of ``theta`` and ``seed``."""
    fingerprint = hashlib.sha256(np.ascontiguousarray(theta, "<f4").tobytes()).hexdigest()
    if not (folder / "manifest.json").exists():
        others = {file.name for file in folder.iterdir() if file.suffix != ".partial"} - {"lock"}
        if others:
            raise ValueError(
                f"`store` must be a new folder or one that simulate wrote; {folder} holds "
                f"{sorted(others)[0]!r} and no manifest.json."
            )
        seed = fresh_seed() if seed is None else seed
        manifest = Manifest(seed, theta.shape[0], theta.shape[1], fingerprint)
        with _whole_file(folder / "manifest.json") as file:
            file.write(json.dumps(vars(manifest), indent=2).encode() + b"\n")
        return seed
    found = _read_manifest(folder)
    if (found.num_rows, found.theta_dim) != theta.shape or found.theta_sha256 != fingerprint:
        raise ValueError(
            f"`store`: {folder} holds simulations of another theta, {found.num_rows} x "
            f"{found.theta_dim}; got {theta.shape[0]} x {theta.shape[1]}"
            f"{' with other values' if theta.shape == (found.num_rows, found.theta_dim) else ''}. "
            "Give the theta it was begun with, or another folder."
        )
    if seed is not None and seed != found.seed:
        raise ValueError(
            f"`store`: {folder} was begun with seed {found.seed}; got seed {seed}. Give that seed "
            "or none to go on with it, or another folder."
        )
    return found.seed


def _read_manifest(folder: Path) -> Manifest:
    try:
        values = json.loads((folder / "manifest.json").read_text())
    except FileNotFoundError as error:
        raise ValueError(f"`store`: {folder} holds no store: it has no manifest.json.") from error
    except ValueError as error:
        raise ValueError(f"`store`: {folder / 'manifest.json'} is damaged: {error}") from error
    if values.get("format") != _FORMAT or values.get("version") != _VERSION:
        raise ValueError(
            f"`store`: {folder} has format {values.get('format')!r} version "
            f"{values.get('version')!r}; this version of the package reads {_FORMAT!r} {_VERSION}."
        )
    return Manifest(**{name: values[name] for name in Manifest.__dataclass_fields__})


def _files(folder: Path) -> list[Path]:
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


def _read_file(file: Path) -> tuple[BatchResult, FloatArray]:
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


@contextmanager
def _whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that is there whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    with partial.open("wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    partial.rename(path)
    _force_folder(path.parent)


def _force_folder(folder: Path) -> None:
    """Make new names in a folder last; a system that cannot open folders sees to it itself."""
    with suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _lock(folder: Path) -> IO[str]:
    """Hold a folder for one run; the system lets go of it however the process ends."""
    lock = (folder / "lock").open("w")
    try:
        import fcntl
    except ImportError:  # Windows keeps no such locks
        return lock
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise ValueError(f"`store`: another run is writing to {folder}; wait for it.") from error
    except OSError:  # a file system without locks
        return lock
    return lock
