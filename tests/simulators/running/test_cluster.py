"""A dask cluster as workers: the same results, and nothing finished is lost with its scheduler."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import faulty_simulators as faulty
import pytest
import torch

import simulators
from simulators import simulate
from simulators.random import isolated_rng
from simulators.running.cluster import Distributed

distributed = pytest.importorskip("distributed")
CLUSTER = """
import time
from distributed import LocalCluster

cluster = LocalCluster(
    n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=":0"
)
print(cluster.scheduler_address, flush=True)
time.sleep(300)
"""


@pytest.fixture
def clusters() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for cluster in started:
        cluster.kill()
        cluster.communicate()


def start(clusters: list[subprocess.Popen[str]]) -> str:
    """The address of a scheduler with its worker, in a process of their own."""
    code = f"import sys; sys.path[:0] = {sys.path!r}\n{CLUSTER}"  # where its workers look, too
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    clusters.append(run)
    assert run.stdout is not None
    return run.stdout.readline().strip()


def test_a_killed_scheduler_costs_what_was_under_way_and_no_more(
    clusters: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    theta, log, store = torch.full((60, 2), 0.1), tmp_path / "log", tmp_path / "store"
    simulator = faulty.Logged(str(log), 0.1)
    address = start(clusters)

    def kill_halfway() -> None:
        while not log.exists() or len(log.read_text().splitlines()) < 30:
            time.sleep(0.02)
        clusters[0].kill()

    threading.Thread(target=kill_halfway, daemon=True).start()
    with pytest.raises(ConnectionError, match="`workers`: the dask scheduler is gone"):
        simulate(simulator, theta, workers=address, seed=0, store=store)
    kept = simulators.load_store(store)
    assert 0 < len(kept.x) < 60
    simulated = len(log.read_text().splitlines())
    again = simulate(simulator, theta, workers=start(clusters), seed=0, store=store)
    assert len(log.read_text().splitlines()) - simulated == 60 - len(kept.x)
    assert torch.equal(again.x, simulate(simulator, theta, seed=0).x)


def test_whatever_is_raised_once_the_scheduler_is_gone_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection refused as its time ends is a RuntimeError of asyncio's, in the clean-up too."""

    def expiring(*_asked: object, **_options: object) -> None:
        raise RuntimeError("Cannot change state of expiring Timeout")

    monkeypatch.setattr(Distributed, "_results", expiring)
    client = SimpleNamespace(status="running", cancel=expiring, run=expiring)
    engine = Distributed(client)
    engine.close()
    with pytest.raises(RuntimeError, match="expiring"):  # a running cluster's own error
        list(engine.run(faulty.Seeded(), iter(())))
    client.status = "connecting"
    with pytest.raises(ConnectionError, match="`workers`: the dask scheduler is gone"):
        list(engine.run(faulty.Seeded(), iter(())))


def test_workers_may_be_a_client_or_a_cluster() -> None:
    theta = torch.linspace(0.0, 1.0, 100).reshape(50, 2)
    here = simulate(faulty.Seeded(), theta, seed=2)
    with isolated_rng(0):
        cluster = distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        )
        client = distributed.Client(cluster)
    for workers in (client, cluster):
        assert torch.equal(simulate(faulty.Seeded(), theta, workers=workers, seed=2).x, here.x)
    assert client.status == "running"  # what was given stays open
    with isolated_rng(0):
        client.close()
        cluster.close()


def test_words_that_are_no_address_are_refused() -> None:
    with pytest.raises(ValueError, match="`workers` must be a whole number of at least 1"):
        simulate(faulty.Seeded(), torch.zeros(3, 2), workers="many")
