"""What injected faults cost, engine by engine, and what a run killed ten times loses.

    python examples/benchmarks/faults.py          # about five minutes; writes faults.json

Every fault strikes 5 of 200 rows, at random places. "lost" counts the rows that came back as
failures, "wrongly_lost" those among them that were healthy; "recovered" is the number of healthy
rows that came back, and "identical" says whether they equal, bit for bit, the rows of a run
without any fault.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import save, versions
from torch import Tensor

import simulators

SEED = 20260
NUM_ROWS, NUM_FAULTS = 200, 5
TIMEOUT = 1.0
FAULTS = ("none", "raise", "NaN", "Inf", "wrong shape", "hang", "os._exit", "SIGKILL of its worker")
DEADLY = FAULTS[6:]
ENGINES = ("in-process", "processes", "distributed")
PRIOR = torch.distributions.Independent(
    torch.distributions.Uniform(torch.zeros(2), torch.ones(2)), 1
)


def one_row(theta: Tensor) -> Tensor:
    """Two milliseconds of work; the first parameter is the number of the fault."""
    fault = FAULTS[int(theta[0])]
    time.sleep(0.002)
    if fault == "raise":
        raise ArithmeticError("no convergence")
    if fault == "hang":
        time.sleep(3600.0)
    if fault == "os._exit":
        os._exit(1)
    if fault == "SIGKILL of its worker":
        os.kill(os.getpid(), signal.SIGKILL)
    x = theta[1] + torch.randn(5)
    if fault in ("NaN", "Inf"):
        x[2] = torch.nan if fault == "NaN" else torch.inf
    return x[:4] if fault == "wrong shape" else x


class Logged:
    """The same, with a line in a file for every call: the row's number and the process."""

    def __init__(self, log: str) -> None:
        self.log = log

    def __call__(self, theta: Tensor) -> Tensor:
        with Path(self.log).open("a") as file:
            file.write(f"{int(theta[1])} {os.getpid()}\n")
        return one_row(theta)


def submission(fault: str, num_rows: int = NUM_ROWS) -> tuple[Tensor, set[int]]:
    """Rows (fault, row number), and which of them are struck."""
    theta = torch.stack([torch.zeros(num_rows), torch.arange(num_rows).float()], dim=1)
    rng = np.random.default_rng(SEED)
    struck = rng.choice(num_rows, NUM_FAULTS, replace=False) if fault != "none" else []
    theta[torch.as_tensor(np.array(struck, dtype=int)), 0] = float(FAULTS.index(fault))
    return theta, set(map(int, struck))


TASK = simulators.from_function(one_row, PRIOR)


def assess(run: simulators.Simulations, struck: set[int], began: float) -> dict[str, Any]:
    seconds = round(time.monotonic() - began, 2)
    lost = {failure.index for failure in run.failures}
    faultless = simulators.simulate(TASK, submission("none", run.num_submitted)[0], seed=SEED)
    return {
        "expected_lost": len(struck),
        "lost": len(lost),
        "wrongly_lost": len(lost - struck),
        "recovered": len(run.x),
        "identical": torch.equal(run.x, faultless.x[run.index]),
        "reason": run.failures[0].reason if run.failures else "",
        "seconds": seconds,
    }


def injected(engine: str, fault: str) -> dict[str, Any]:
    """One cell of the table: a fresh engine, so that its start is in the time."""
    theta, struck = submission(fault)
    began = time.monotonic()
    timeout = TIMEOUT if fault == "hang" else None
    run = simulators.simulate(TASK, theta, workers=2, engine=engine, timeout=timeout, seed=SEED)
    return assess(run, struck, began)


def deadly_in_process(fault: str) -> dict[str, Any]:
    """In process the run dies with the row; its store is taken up by two workers."""
    theta, struck = submission(fault)
    with tempfile.TemporaryDirectory() as folder:
        store, log = Path(folder, "store"), Path(folder, "log")
        code = subprocess.run(own_run("in-process", store, log, fault), check=False).returncode
        kept = len(simulators.load_store(store).x)
        began = time.monotonic()
        run = simulators.simulate(TASK, theta, workers=2, seed=SEED, store=store)
        calls = len(log.read_text().splitlines())
        note = {"run_ended_with": code, "calls_before": calls, "rows_kept_by_the_store": kept}
        return assess(run, struck, began) | note


def worker_killed_from_outside(engine: str) -> dict[str, Any]:
    """Three times, a worker is killed that did nothing wrong."""
    theta, struck = submission("none", 1_000)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        over = threading.Event()

        def kill() -> None:
            for _ in range(3):
                while not over.is_set() and not (log.exists() and log.stat().st_size):
                    over.wait(0.02)
                over.wait(0.3)
                if not over.is_set():
                    with suppress(ProcessLookupError):
                        os.kill(int(log.read_text().split("\n")[-2].split()[1]), signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        task = simulators.from_function(Logged(str(log)), PRIOR)
        run = simulators.simulate(task, theta, workers=2, engine=engine, seed=SEED)
        over.set()
        killer.join()
        return assess(run, struck, began) | {"num_rows": 1_000, "kills": 3}


@contextmanager
def dask_cluster() -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def machine_lost() -> dict[str, Any]:
    """A dask worker process, which stands for a machine, is killed amid a run."""
    theta, struck = submission("none", 1_000)
    with dask_cluster() as client:
        victims = list(client.run(os.getpid).values())
        began = time.monotonic()
        timer = threading.Timer(1.5, os.kill, (victims[0], signal.SIGKILL))
        timer.start()
        run = simulators.simulate(TASK, theta, engine=client, seed=SEED)
        timer.join()
        return assess(run, struck, began) | {"num_rows": 1_000, "kills": 1}


def own_run(engine: str, store: Path, log: Path, fault: str = "none") -> list[str]:
    return [sys.executable, __file__, engine, str(store), str(log), fault]


def run_killed_ten_times(engine: str) -> dict[str, Any]:
    """SIGKILL of the whole run at ten random moments after its first simulation."""
    num_rows = 3_000
    rng = np.random.default_rng(SEED)
    on_disk: set[int] = set()
    num_lost = num_repeated = num_calls = 0
    with tempfile.TemporaryDirectory() as folder:
        store, log = Path(folder, "store"), Path(folder, "log")
        for _ in range(10):
            log.unlink(missing_ok=True)
            run = subprocess.Popen(own_run(engine, store, log))
            while not log.exists() and run.poll() is None:
                time.sleep(0.01)
            time.sleep(rng.uniform(0.0, 0.6))
            run.kill()
            run.wait()
            lines = log.read_text().split("\n")[:-1] if log.exists() else []
            called = [int(line.split()[0]) for line in lines]
            found = set(simulators.load_store(store).index.tolist())
            num_lost += len(on_disk - found)
            num_repeated += len(on_disk & set(called))
            num_calls += len(called)
            on_disk = found
        began = time.monotonic()
        theta, struck = submission("none", num_rows)
        task = simulators.from_function(Logged(str(log)), PRIOR)  # a store knows its simulator
        final = simulators.simulate(task, theta, engine="in-process", seed=SEED, store=store)
    return assess(final, struck, began) | {
        "num_rows": num_rows,
        "kills": 10,
        "kept_rows_lost": num_lost,
        "kept_rows_simulated_again": num_repeated,
        "calls_before_the_last_kill": num_calls,
        "rows_kept_by_then": len(on_disk),
        "calls_to_be_repeated_a_kill": (num_calls - len(on_disk)) / 10,
    }


def main() -> None:
    if len(sys.argv) > 1:  # a run to be killed
        engine, store, log, fault = sys.argv[1:]
        theta, _ = submission(fault, NUM_ROWS if fault != "none" else 3_000)
        task = simulators.from_function(Logged(log), PRIOR)
        simulators.simulate(task, theta, workers=2, engine=engine, seed=SEED, store=store)
        return
    table: dict[str, dict[str, Any]] = {}
    for engine in ENGINES:
        cells = table[engine] = {}
        for fault in FAULTS:
            alone = engine == "in-process" and fault in DEADLY
            cells[fault] = deadly_in_process(fault) if alone else injected(engine, fault)
            print(engine, "|", fault, "|", cells[fault], flush=True)
        if engine != "in-process":
            cells["worker killed from outside"] = worker_killed_from_outside(engine)
        if engine == "distributed":
            cells["machine lost"] = machine_lost()
        cells["SIGKILL of the run, ten times"] = run_killed_ten_times(engine)
        print(engine, "|", json.dumps(list(cells.items())[-2:]), flush=True)
    report = {
        "question": "What do injected faults cost, and what does a run killed ten times lose?",
        "seed": SEED,
        "num_rows": NUM_ROWS,
        "timeout_seconds": TIMEOUT,
        "workers": 2,
        "versions": versions("torch"),
        "table": table,
    }
    save(__file__, report)


if __name__ == "__main__":
    main()
