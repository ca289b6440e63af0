"""What a dask cluster costs and gives, on one machine: overhead a call, two workers, a lost one.

    python examples/benchmarks/cluster.py    two minutes; writes cluster.json beside itself

Each simulation sleeps, so that two of them do not share a core; the cluster's scheduler and workers
are processes of this machine, as ``dask scheduler`` and ``dask worker`` start them.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from distributed import Client, LocalCluster
from measure import save, versions
from torch import Tensor

from simulators import simulate

ROWS, SECONDS = 200, 0.05


@dataclass(frozen=True)
class Sleeping:
    """Sleeps a while for each row, and writes a line of it."""

    seconds: float
    log: str

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        with Path(self.log).open("a") as file:
            file.writelines(f"{first_row + i}\n" for i in range(len(theta)))
        time.sleep(self.seconds * len(theta))
        return theta.clone()


def timed(seconds: float, rows: int, workers: object, log: str) -> float:
    """Wall-clock seconds of a run."""
    started = time.perf_counter()
    simulate(
        Sleeping(seconds, log), torch.zeros(rows, 2), workers=workers, seed=0, progress=False  # type: ignore[arg-type]
    )  # fmt: skip
    return time.perf_counter() - started


def lost_worker(client: Client, log: Path) -> dict[str, float]:
    """One of two workers is killed halfway."""
    log.write_text("")

    def kill() -> None:
        while len(log.read_text().splitlines()) < ROWS // 2:
            time.sleep(0.02)
        os.kill(next(iter(pids.values())), signal.SIGKILL)

    pids = client.run(os.getpid)
    threading.Thread(target=kill, daemon=True).start()
    seconds = timed(SECONDS, ROWS, client, str(log))
    lines = log.read_text().splitlines()
    return {
        "seconds": round(seconds, 2),
        "rows_simulated_twice": len(lines) - len(set(lines)),
        "rows_lost": ROWS - len(set(lines)),
    }


def main() -> None:
    found: dict[str, object] = {"rows": ROWS, "seconds_a_row": SECONDS, "cores": os.cpu_count()}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        found["in_process_seconds"] = round(timed(SECONDS, ROWS, 1, str(log)), 2)
        for count in (1, 2):
            with (
                LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=":0") as own,
                Client(own) as client,
            ):
                timed(0.0, 20, client, str(log))  # worker processes start
                found[f"{count}_workers_seconds"] = round(timed(SECONDS, ROWS, client, str(log)), 2)
                if count == 1:
                    cheap = [timed(0.0, 2_000, workers, str(log)) for workers in (client, 1)]
                    found["overhead_ms_a_call"] = round((cheap[0] - cheap[1]) / 2.0, 3)
                else:
                    found["a_worker_killed"] = lost_worker(client, log)
    save(__file__, found | {"versions": versions("distributed")})


if __name__ == "__main__":
    main()
