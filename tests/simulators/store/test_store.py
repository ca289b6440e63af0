"""The store: whole after a kill at any moment, resumed without repeating, and never mixed up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import faulty_simulators as faulty
import numpy as np
import pytest
import torch
from faulty_simulators import HARMLESS
from submissions import KINDS, start_script, submission, wait_until

import simulators
from simulators import forget_failures, load_store, simulate
from simulators.given.function import Form, FunctionSimulator
from simulators.running.batches import BatchResult, lost
from simulators.store.writer import open_store, write_gap


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_back_is_what_was_simulated(tmp_path: Path, kind: str) -> None:
    theta = submission(90, {7 * i: code for i, code in enumerate(HARMLESS)})
    run = simulate(KINDS[kind], theta, seed=6, store=tmp_path / "store")
    back = load_store(tmp_path / "store")
    assert torch.equal(run.theta, back.theta)
    assert torch.equal(run.x, back.x)
    assert torch.equal(run.index, back.index)
    assert (run.failures, run.seed) == (back.failures, back.seed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_does_not_change_the_result(tmp_path: Path, kind: str) -> None:
    theta = submission(90, {5: faulty.NAN, 60: faulty.RAISE})
    without = simulate(KINDS[kind], theta, seed=6)
    run = simulate(KINDS[kind], theta, seed=6, store=tmp_path)
    again = simulate(KINDS[kind], theta, seed=6, store=tmp_path)
    for other in (run, again):
        assert torch.equal(without.x, other.x)
        assert without.failures == other.failures


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_killed_at_random_moments_goes_on_without_loss_or_repetition(
    tmp_path: Path, workers: int
) -> None:
    log, store = tmp_path / "log", tmp_path / "store"
    statement = (
        f"theta = torch.stack([torch.zeros(600), torch.arange(600).float()], dim=1)\n"
        f"simulate(faulty.Logged({str(log)!r}, 0.005), theta, seed=8, workers={workers}, "
        f"store={str(store)!r})"
    )
    rng = np.random.default_rng(workers)
    on_disk: set[int] = set()
    for _ in range(3):
        log.unlink(missing_ok=True)
        run = start_script(statement)
        wait_until(lambda run=run: log.exists() or run.poll() is not None)
        time.sleep(rng.uniform(0.0, 0.7))  # of at least 1.5 s that all rows take
        run.kill()
        run.wait()
        lines = log.read_text().split("\n")[:-1] if log.exists() else []
        called = {int(line.split()[0]) for line in lines}
        assert not called & on_disk  # nothing that was kept is simulated again
        found = set(load_store(store).index.tolist())
        assert on_disk <= found  # nothing that was kept is lost
        on_disk = found
    final = simulate(faulty.Logged(str(log)), submission(600), store=store)
    assert torch.equal(final.x, faulty.Seeded()(submission(600), 8))


def test_a_plain_batched_function_gives_the_same_rows_when_resumed(tmp_path: Path) -> None:
    theta = submission(200, {44: faulty.RAISE})
    whole = simulate(faulty.many_rows, theta, seed=9, store=tmp_path / "whole")
    simulate(faulty.many_rows, theta, seed=9, store=tmp_path / "part")
    for file in sorted((tmp_path / "part").glob("*.npy")):
        records = np.load(file)
        np.save(file, records[: len(records) // 2])  # as if only these had been finished
    part = load_store(tmp_path / "part")
    assert 0 < len(part.x) < len(whole.x)
    resumed = simulate(faulty.many_rows, theta, seed=9, store=tmp_path / "part")
    assert torch.equal(whole.x, resumed.x)
    assert whole.failures == resumed.failures


def test_the_store_remembers_the_seed(tmp_path: Path) -> None:
    first = simulate(faulty.many_rows, submission(9), store=tmp_path)
    again = simulate(faulty.many_rows, submission(9), store=tmp_path)
    assert first.seed == again.seed == load_store(tmp_path).seed
    assert torch.equal(first.x, again.x)


def test_failures_are_not_tried_again_until_they_are_forgotten(tmp_path: Path) -> None:
    log, store = tmp_path / "log", tmp_path / "store"
    simulator = FunctionSimulator(faulty.LoggedOneByOne(str(log)), Form())
    theta = submission(30, {4: faulty.RAISE, 20: faulty.NAN})
    first = simulate(simulator, theta, seed=1, store=store)
    assert len(log.read_text().splitlines()) == 30
    again = simulate(simulator, theta, seed=1, store=store)
    assert len(log.read_text().splitlines()) == 30
    assert again.failures == first.failures
    assert forget_failures(store) == 2
    third = simulate(simulator, theta, seed=1, store=store)
    assert len(log.read_text().splitlines()) == 32
    assert third.failures == first.failures


def test_another_theta_or_seed_is_refused(tmp_path: Path) -> None:
    simulate(faulty.many_rows, submission(9), seed=1, store=tmp_path)
    with pytest.raises(ValueError, match=r"begun with seed 1; got seed 2\."):
        simulate(faulty.many_rows, submission(9), seed=2, store=tmp_path)
    with pytest.raises(ValueError, match=r"another theta, 9 x 2; got 10 x 2\."):
        simulate(faulty.many_rows, submission(10), seed=1, store=tmp_path)
    with pytest.raises(ValueError, match=r"got 9 x 2 with other values"):
        simulate(faulty.many_rows, submission(9) + 1.0, seed=1, store=tmp_path)


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(ValueError, match=r"holds 'thesis\.tex' and no manifest"):
        simulate(faulty.many_rows, submission(9), store=tmp_path)
    with pytest.raises(ValueError, match="is a file"):
        simulate(faulty.many_rows, submission(9), store=tmp_path / "thesis.tex")
    with pytest.raises(ValueError, match="holds no store"):
        load_store(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_runs_cannot_write_to_one_store(tmp_path: Path) -> None:
    theta = submission(4).numpy()
    with (
        open_store(tmp_path, theta, 0),
        pytest.raises(ValueError, match="another run is writing"),
    ):
        open_store(tmp_path, theta, 0)
    open_store(tmp_path, theta, 0).close()


def test_damaged_and_future_files_are_named(tmp_path: Path) -> None:
    simulate(faulty.many_rows, submission(9), store=tmp_path)
    file = next(tmp_path.glob("rows-*.npy"))
    whole = file.read_bytes()
    for damaged in (whole[:-7], b"", b"PK\x03\x04nonsense", np.lib.format.magic(1, 0)):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"{file.name} is damaged"):
            load_store(tmp_path)
    file.write_bytes(whole)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"version": 99}))
    with pytest.raises(ValueError, match="version 99"):
        load_store(tmp_path)


def test_pickles_are_never_read(tmp_path: Path) -> None:
    simulate(faulty.many_rows, submission(9), store=tmp_path)
    np.save(tmp_path / "rows-00000099.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match=r"rows-00000099\.npy is damaged: Object arrays"):
        load_store(tmp_path)


def test_the_remains_of_a_kill_during_a_write_are_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "manifest.json.partial").write_text("{")
    (tmp_path / "rows-00000000.npy.partial").write_bytes(b"half")
    run = simulate(faulty.many_rows, submission(9), seed=0, store=tmp_path)
    assert torch.equal(load_store(tmp_path).x, run.x)
    assert not list(tmp_path.glob("*.partial"))


def test_files_are_plain_numpy_arrays(tmp_path: Path) -> None:
    simulate(faulty.many_rows, submission(9, {3: faulty.RAISE}), seed=0, store=tmp_path)
    rows = np.concatenate([np.load(file) for file in tmp_path.glob("rows-*.npy")])
    failed = np.concatenate([np.load(file) for file in tmp_path.glob("failed-*.npy")])
    assert rows.dtype.names == ("row", "theta", "x")
    assert sorted(rows["row"].tolist()) == [0, 1, 2, 4, 5, 6, 7, 8]
    assert failed["row"].tolist() == [3]
    assert failed["reason"].tolist() == [faulty.REASONS[faulty.RAISE].encode()]


def test_results_reach_the_disk_soon_and_in_few_files(tmp_path: Path) -> None:
    theta = np.zeros((2_000, 1), np.float32)
    with open_store(tmp_path, theta, 0) as store:
        store.append(BatchResult(np.array([0]), np.zeros((1, 4), np.float32)))
        wait_until(lambda: len(load_store(tmp_path).x) == 1)
        for row in range(1, 2_000):
            store.append(BatchResult(np.array([row]), np.zeros((1, 4), np.float32)))
    assert len(load_store(tmp_path).x) == 2_000
    assert len(list(tmp_path.glob("rows-*.npy"))) < 200


@pytest.mark.parametrize(("hours", "files"), [(1 / 60, 1_000), (12, 10_000), (8_766, 20_000)])
def test_a_long_run_of_tiny_results_makes_thousands_of_files_not_millions(
    hours: float, files: int
) -> None:
    elapsed, count = 0.0, 0
    while elapsed < 3_600 * hours:  # something is always waiting, and a write takes 2 ms
        elapsed += 0.002 + write_gap(elapsed)
        count += 1
    assert count < files


def test_a_full_disk_stops_the_run_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    simulate(faulty.many_rows, submission(9), seed=0, store=tmp_path / "other")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        simulate(faulty.many_rows, submission(9), seed=0, store=tmp_path / "other2")
    monkeypatch.undo()
    store = open_store(tmp_path / "third", submission(9).numpy(), 0)
    monkeypatch.setattr(os, "fsync", full)
    store.append(lost_rows(1))
    with pytest.raises(OSError, match=r"`store`: writing to .* failed: .*No space left"):
        store.close()


def test_several_threads_may_wait_for_a_slow_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simulators.store.writer._MAX_WAITING_BYTES", 1_000)
    theta = np.zeros((64, 1), np.float32)
    with open_store(tmp_path, theta, 0) as store:

        def append(first: int) -> None:
            for row in range(first, 64, 4):
                store.append(BatchResult(np.array([row]), np.zeros((1, 200), np.float32)))

        threads = [threading.Thread(target=append, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert load_store(tmp_path).index.tolist() == list(range(64))


def test_the_command_line_writes_a_store_and_goes_on_with_it(tmp_path: Path) -> None:
    import simulators

    store = tmp_path / "store"
    command = [
        *(
            sys.executable,
            "-c",
            "from abi.cli.app import main; main()",
            "simulate",
            "--simulator",
            "simulators:MG1",
        ),
        *("--num-simulations", "500", "--seed", "3", "--out", str(store)),
    ]
    root = Path(simulators.__file__).parent.parent
    for _ in range(2):
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(root)},
        )
        assert done.returncode == 0, done.stderr
        assert "500 simulations, 0 failures" in done.stdout
    theta, x = simulators.sample_joint(simulators.MG1(), 500, seed=3)
    back = load_store(store)
    assert torch.equal(back.theta, theta)
    assert torch.equal(back.x, x)


def lost_rows(num_rows: int) -> BatchResult:
    from simulators.running.batches import Batch

    return lost(Batch(0, np.zeros((num_rows, 2), np.float32), 0), "never came")


def test_a_store_of_a_model_is_taken_up_after_its_file_has_moved(tmp_path: Path) -> None:
    """Version 0.1 named the file of a model of ours, and digested the imports in its code."""
    task = simulators.TwoMoons()
    theta = simulators.sample_prior(task.prior, 20, seed=1)
    first = simulate(task, theta, seed=2, store=tmp_path)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_text())
    assert manifest["simulator"]["module"] == "simulators"
    manifest["simulator"] |= {"module": "simulators.two_moons", "code": "3.11 0123"}
    path.write_text(json.dumps(manifest))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = simulate(task, theta, seed=2, store=tmp_path)
    assert torch.equal(first.x, again.x)
