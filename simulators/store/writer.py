"""Writing a store: results go to the disk as they come, in files that are few enough.

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
import warnings
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import as_folder
from ..files.disk import hold_folder, whole_file
from ..random import fresh_seed
from ..running.batches import BatchResult, FloatArray
from .folder import Manifest, files_of, read_file, read_manifest
from .identity import Identity

_EARLY_SHARE, _GAP_SECONDS, _LATE_SHARE = 1e-2, 0.5, 1e-3
_MAX_WAITING_BYTES = 64_000_000


def open_store(
    path: str | os.PathLike[str],
    theta: FloatArray,
    seed: int | None,
    simulator: Identity | None = None,
) -> Store:
    """Open a store to write the simulations of ``theta`` (n, d), or to go on with them.

    Args:
        path: the folder; made when it does not exist.
        theta: the parameters, the same as before where the folder holds a store.
        seed: seed of the noise; that of the store, or a fresh one, when omitted.
        simulator: what is simulated, by :func:`simulators.store.folder.identify`; not compared when
            omitted, nor in a store that was begun without.

    Raises:
        ValueError: if the folder holds something else, or simulations of another theta, seed or
            simulator, or if another run is writing to it.

    Warns:
        UserWarning: if it holds simulations of other code of the same simulator.
    """
    folder = as_folder(path, "store")
    folder.mkdir(parents=True, exist_ok=True)
    _refuse_foreign(folder)
    lock = hold_folder(folder)
    try:
        seed = _agree(folder, theta, seed, simulator)
        for remains in folder.glob("*.partial"):
            remains.unlink()
        return Store(folder, seed, theta, lock)
    except BaseException:
        lock.close()
        raise


def write_gap(run_seconds: float) -> float:
    """Seconds between two writes, that many seconds into a run."""
    return max(min(_EARLY_SHARE * run_seconds, _GAP_SECONDS), _LATE_SHARE * run_seconds)


class Store:
    """A store open for writing, by one run at a time; made by :func:`open_store`."""

    def __init__(self, folder: Path, seed: int, theta: FloatArray, lock: IO[str]) -> None:
        self.seed = seed
        self.kept = [read_file(file)[0] for file in files_of(folder)]
        self._folder, self._theta, self._lock = folder, theta, lock
        self._next_number = 1 + max((int(file.stem[-8:]) for file in files_of(folder)), default=-1)
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

    def __exit__(self, *raised: object) -> None:
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
        with whole_file(self._folder / name) as file:
            np.save(file, records, allow_pickle=False)
        self._next_number += 1

    def _raise_trouble(self) -> None:
        if self._trouble is not None:
            raise OSError(
                f"`store`: writing to {self._folder} failed: {self._trouble}. What it holds is "
                "whole; remove the cause and run again to go on from there."
            ) from self._trouble


def _refuse_foreign(folder: Path) -> None:
    """Write nothing to a folder that holds something else."""
    names = {file.name for file in folder.iterdir() if file.suffix != ".partial"} - {"lock"}
    if names and "manifest.json" not in names:
        raise ValueError(
            f"`store` must be a new folder or one that simulate wrote; {folder} holds "
            f"{sorted(names)[0]!r} and no manifest.json."
        )


def _agree(folder: Path, theta: FloatArray, seed: int | None, simulator: Identity | None) -> int:
    """The seed of the store, once it is certain that it is of what is to be simulated."""
    fingerprint = hashlib.sha256(np.ascontiguousarray(theta, "<f4").tobytes()).hexdigest()
    if not (folder / "manifest.json").exists():
        seed = fresh_seed() if seed is None else seed
        manifest = Manifest(seed, theta.shape[0], theta.shape[1], fingerprint, simulator)
        with whole_file(folder / "manifest.json") as file:
            file.write(json.dumps(asdict(manifest), indent=2).encode() + b"\n")
        return seed
    found = read_manifest(folder)
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
    if found.simulator is not None and simulator is not None:
        _compare(folder, found.simulator, simulator)
    return found.seed


def _compare(folder: Path, found: Identity, given: Identity) -> None:
    """Refuse another simulator, and warn of another state of the same one."""
    then, now = found.code.split(" ")[0], given.code.split(" ")[0]  # the versions of Python
    changed = then == now and found.code != given.code
    elsewhere = found.module != given.module and "__main__" not in (found.module, given.module)
    nameless = given.name.endswith("<lambda>")
    same = (found.name, found.settings) == (given.name, given.settings)
    if not same or (changed and (elsewhere or nameless)):
        raise ValueError(
            f"`store`: {folder} holds simulations of another `simulator`, {_named(found)}; got "
            f"{_named(given)}{' with other code' if same else ''}. Give that one, or another "
            "folder; if its rows are the same, delete `simulator` from the folder's manifest.json."
        )
    if changed:
        warnings.warn(
            f"`store`: {folder} was begun with other code of {_named(given)}. The rows that it "
            "holds are kept; if the change alters them, use another folder.",
            stacklevel=5,
        )


def _named(simulator: Identity) -> str:
    settings = ", ".join(f"{name}={value!r}" for name, value in simulator.settings.items())
    return f"{simulator.module}.{simulator.name}({settings})"
