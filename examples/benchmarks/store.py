"""How fast the store takes and gives back 100,000 simulations of 202 values, and its size.

    python examples/benchmarks/store.py           # half a minute; writes store.json

Compared, in the same run, with one ``np.save`` of the same numbers forced to the disk, and one
``np.load``: what the file system allows. Reading is from the page cache in both cases.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import save, versions

import simulators
from simulators.running.batches import BatchResult
from simulators.store.writer import open_store

SEED = 20261
NUM_ROWS, THETA_DIM, X_DIM = 100_000, 4, 202
REPEATS = 5


def seconds(function: Callable[[], Any]) -> float:
    began = time.perf_counter()
    function()
    return time.perf_counter() - began


def plain_write(path: Path, x: np.ndarray) -> None:
    with path.open("wb") as file:
        np.save(file, x)
        file.flush()
        os.fsync(file.fileno())


def store_write(folder: Path, theta: np.ndarray, x: np.ndarray, rows: int) -> None:
    with open_store(folder, theta, SEED) as store:
        for first in range(0, NUM_ROWS, rows):
            index = np.arange(first, min(first + rows, NUM_ROWS))
            store.append(BatchResult(index, x[index[0] : index[-1] + 1]))


def measure(theta: np.ndarray, x: np.ndarray, rows: int) -> dict[str, Any]:
    """Batches of ``rows`` rows, as they would come from a simulator that takes no time."""
    writes, reads, plain_writes, plain_reads = [], [], [], []
    for _ in range(REPEATS):
        with tempfile.TemporaryDirectory() as name:
            folder, file = Path(name, "store"), Path(name, "plain.npy")
            plain_writes.append(seconds(lambda file=file: plain_write(file, x)))
            writes.append(seconds(lambda folder=folder: store_write(folder, theta, x, rows)))
            plain_reads.append(seconds(lambda file=file: np.load(file)))
            reads.append(seconds(lambda folder=folder: simulators.load_store(folder)))
            back = simulators.load_store(folder)
            assert np.array_equal(back.x.numpy(), x)
            files = [entry.stat().st_size for entry in folder.iterdir()]
    write, read = statistics.median(writes), statistics.median(reads)
    raw = x.nbytes + theta.nbytes
    return {
        "rows_a_batch": rows,
        "write_seconds": round(write, 3),
        "write_MB_per_second": round(raw / write / 1e6),
        "write_ratio_to_one_np_save": round(write / statistics.median(plain_writes), 2),
        "read_seconds": round(read, 3),
        "read_MB_per_second": round(raw / read / 1e6),
        "read_ratio_to_one_np_load": round(read / statistics.median(plain_reads), 2),
        "files": len(files),
        "bytes": sum(files),
        "bytes_ratio_to_the_numbers": round(sum(files) / raw, 4),
    }


def main() -> None:
    rng = np.random.default_rng(SEED)
    theta = rng.standard_normal((NUM_ROWS, THETA_DIM), dtype=np.float32)
    x = rng.standard_normal((NUM_ROWS, X_DIM), dtype=np.float32)
    report = {
        "question": f"Throughput and size of a store of {NUM_ROWS:,} simulations of {X_DIM} values",
        "seed": SEED,
        "repeats": REPEATS,
        "versions": versions("numpy", "torch"),
        "batches": [measure(theta, x, rows) for rows in (1_000, 10)],
    }
    save(__file__, report)


if __name__ == "__main__":
    main()
