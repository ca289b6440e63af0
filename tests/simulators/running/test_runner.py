"""simulate: every fault costs its own row, and nothing else changes the result."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import faulty_simulators as faulty
import numpy as np
import pytest
import torch
from faulty_simulators import HARMLESS, HEALTHY, REASONS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from submissions import KINDS, ONE_ROW, start_script, submission, wait_until
from torch import Tensor

import simulators
from simulators import simulate
from simulators.given.function import Form, FunctionSimulator
from simulators.running.batches import Batch, BatchResult
from simulators.running.cuts import Pace, cut_by_rows, cut_by_time
from simulators.running.engines import Engine, open_engine


@pytest.fixture(scope="module")
def processes() -> Iterator[Engine]:
    engine = open_engine(2, None, "processes")
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def distributed() -> Iterator[Engine]:
    pytest.importorskip("distributed")
    engine = open_engine(2, None, "distributed")
    yield engine
    engine.close()


@pytest.fixture(params=["in-process", "processes", "distributed"])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "in-process":
        return open_engine()
    found: Engine = request.getfixturevalue(request.param)
    return found


def assert_costs_only_itself(run: simulators.Simulations, faults: dict[int, int]) -> None:
    assert [failure.index for failure in run.failures] == sorted(faults)
    for failure in run.failures:
        code = faults[failure.index]
        assert failure.reason.startswith(REASONS[code])
        assert failure.theta == (code, failure.index)
    assert run.index.tolist() == sorted(set(range(run.num_submitted)) - set(faults))
    assert torch.equal(run.theta, submission(run.num_submitted, faults)[run.index])
    assert torch.isfinite(run.x).all()
    # Rows carry their number: x is theirs, within 6 standard deviations of the noise.
    assert (run.x.mean(dim=1) - run.theta[:, 1]).abs().max() < 6 / 3**0.5


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_that_fails_in_any_way_costs_itself_alone(engine: Engine, kind: str) -> None:
    codes = HARMLESS if engine.__class__.__name__ == "InProcess" else sorted(REASONS)
    faults = {5 * i: code for i, code in enumerate(codes)}  # row 0 is one, and all else is healthy
    theta = submission(48, faults)
    timeout = None if len(codes) == len(HARMLESS) else 2.0
    run = simulate(KINDS[kind], theta, engine=engine, timeout=timeout, seed=3)
    assert_costs_only_itself(run, faults)


@pytest.mark.parametrize("kind", ["one row", "seeded"])
def test_the_neighbours_of_a_fault_are_what_they_are_without_it(engine: Engine, kind: str) -> None:
    faults = {7 + i: code for i, code in enumerate(HARMLESS)}
    healthy = simulate(KINDS[kind], submission(100), seed=3)
    run = simulate(KINDS[kind], submission(100, faults), engine=engine, seed=3)
    assert torch.equal(run.x, healthy.x[run.index])


@pytest.mark.parametrize("kind", KINDS)
def test_the_result_is_the_same_for_every_engine_bit_for_bit(engine: Engine, kind: str) -> None:
    for num_rows, faults in ((130, {3: faulty.RAISE, 77: faulty.SHAPE}), (1, {}), (0, {})):
        theta = submission(num_rows, faults)
        here = simulate(KINDS[kind], theta, seed=11)
        there = simulate(KINDS[kind], theta, engine=engine, seed=11)
        assert torch.equal(here.x, there.x)
        assert torch.equal(here.index, there.index)
        assert here.failures == there.failures


@given(num_rows=st.integers(0, 90), seed=st.integers(0, 2**62))
@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_one_worker_and_two_give_the_same_rows(processes: Engine, num_rows: int, seed: int) -> None:
    theta = submission(num_rows)
    for kind in KINDS.values():
        two = simulate(kind, theta, engine=processes, seed=seed)
        assert torch.equal(simulate(kind, theta, seed=seed).x, two.x)


def test_a_compiled_task_is_the_same_in_this_process_and_in_others(processes: Engine) -> None:
    task = simulators.MG1()
    theta = simulators.sample_prior(task.prior, 300, seed=0)
    run = simulate(task, theta, engine=processes, seed=5)
    assert torch.equal(run.x, task(theta, 5))


def test_quick_rows_do_not_overtake_slow_ones(processes: Engine) -> None:
    theta = torch.zeros(40, 2)
    theta[:3, 0], theta[:, 1] = 0.4, torch.arange(40)
    run = simulate(faulty.slow_rows, theta, engine=processes, seed=0)
    assert torch.equal(run.x, theta)


def test_slow_rows_together_in_a_batch_do_not_count_as_a_hang() -> None:
    theta = torch.zeros(96, 1)
    theta[61:64] = 0.9  # one batch of three, slower than the timeout together
    assert [61, 62, 63] in [
        list(range(batch.first_row, batch.first_row + 3))
        for batch in cut_by_rows(theta.numpy(), 0, np.ones(96, bool))
    ]
    for simulator in (faulty.slow_rows, FunctionSimulator(faulty.slow_rows_one, Form())):
        run = simulate(simulator, theta, workers=2, timeout=2.0, seed=0)
        assert not run.failures


def test_loading_and_the_first_call_of_a_worker_do_not_count_as_a_hang() -> None:
    for simulator in (faulty.SlowToLoad(2.5), faulty.SlowFirstCall()):
        run = simulate(simulator, torch.ones(8, 1), workers=2, timeout=1.0, seed=0)
        assert not run.failures


def test_hanging_rows_cost_about_one_timeout_each_for_each_worker() -> None:
    faults = dict.fromkeys((400, 401, 900, 1_500), faulty.HANG)
    for kind in ("one row", "seeded"):
        began = time.monotonic()
        run = simulate(KINDS[kind], submission(2_000, faults), workers=2, timeout=1.0, seed=0)
        # 2 s of timeouts, as much for the batches they are in, and generous room for starts; a
        # batch that may take 1 s for each of its 63 rows would cost a minute.
        assert time.monotonic() - began < 25.0
        assert_costs_only_itself(run, faults)


def test_a_worker_killed_from_outside_costs_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    stop = threading.Event()

    def kill_workers() -> None:
        for _ in range(3):
            stop.wait(0.8)
            if log.exists() and not stop.is_set():
                with suppress(ProcessLookupError):
                    os.kill(int(log.read_text().split()[-1]), signal.SIGKILL)

    killer = threading.Thread(target=kill_workers)
    killer.start()
    run = simulate(faulty.Logged(str(log), 0.05), submission(80), workers=2, seed=1)
    stop.set()
    killer.join()
    assert torch.equal(run.x, faulty.Seeded()(submission(80), 1))


def test_an_engine_keeps_its_workers_between_runs_and_replaces_dead_ones() -> None:
    def process_ids(theta: Tensor) -> Tensor:
        return torch.full((len(theta), 1), float(os.getpid()))

    engine = open_engine(2, timeout=60.0)
    first = set(simulate(process_ids, submission(64), engine=engine).x.flatten().tolist())
    again = set(simulate(process_ids, submission(64), engine=engine).x.flatten().tolist())
    known = first | again  # a run may be over before the second worker has begun
    assert len(known) <= 2
    assert os.getpid() not in known
    for pid in known:
        os.kill(int(pid), signal.SIGKILL)
    last = set(simulate(process_ids, submission(64), engine=engine).x.flatten().tolist())
    assert not last & known
    engine.close()
    assert not any(alive(int(pid)) for pid in last)


def test_small_runs_on_an_open_engine_are_cheap(processes: Engine) -> None:
    simulate(faulty.Seeded(), submission(10), engine=processes, seed=0)
    began = time.monotonic()
    for seed in range(20):
        simulate(faulty.Seeded(), submission(10), engine=processes, seed=seed)
    assert time.monotonic() - began < 20 * 0.25  # 0.005 s each on an idle machine


def test_functions_without_a_module_run_in_workers(processes: Engine) -> None:
    shift = 3.0
    run = simulate(lambda theta: theta + shift, submission(5), engine=processes, seed=0)
    assert torch.equal(run.x, submission(5) + 3.0)


def printed_by(script: Path, lines: str) -> str:
    """What a program of the user prints, in a process of its own."""
    script.write_text(textwrap.dedent(lines))
    root = Path(simulators.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, script],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(root)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    lines = """
        import torch, simulators
        def simulator(theta):
            return theta + 1.0
        print("once", len(simulators.simulate(simulator, torch.zeros(9, 1), workers=2).x))
        """
    assert printed_by(tmp_path / "script.py", lines) == "once 9\n"


def test_a_worker_has_imported_what_simulators_are_slow_to_import(tmp_path: Path) -> None:
    """Else each simulation that hangs or kills its worker costs that import once more."""
    lines = """
        import sys, scipy.stats, torch, simulators
        def simulator(theta):
            return theta + float("scipy.stats" in sys.modules)
        print(simulators.simulate(simulator, torch.zeros(2, 1), workers=2).x.flatten().tolist())
        """
    assert printed_by(tmp_path / "script.py", lines) == "[1.0, 1.0]\n"


def test_a_simulator_that_cannot_travel_is_refused_with_the_reason() -> None:
    lock = threading.Lock()
    with pytest.raises(ValueError, match=r"`simulator` must be .* copied .*lock"):
        simulate(lambda theta: (lock, theta)[1], submission(3), workers=2)


def test_a_simulator_that_cannot_be_loaded_in_a_worker_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match=r"could not be loaded .*ZeroDivisionError"):
        simulate(faulty.CannotLoad(), submission(3), workers=2)
    with pytest.raises(RuntimeError, match=r"died before they could simulate, .* exit status 9"):
        simulate(faulty.DiesLoading(), submission(3), workers=2)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_broken_simulator_is_stopped_long_before_the_last_row(
    tmp_path: Path, num_workers: int
) -> None:
    log = tmp_path / "log"
    simulator = FunctionSimulator(faulty.LoggedOneByOne(str(log)), Form())
    theta = submission(5_000, dict.fromkeys(range(5_000), faulty.RAISE))
    with pytest.raises(ValueError, match=r"failed for .* more than the 50% .*no convergence"):
        simulate(simulator, theta, workers=num_workers, store=tmp_path / "store")
    tried = len(log.read_text().splitlines())
    assert tried < 1_500
    kept = simulators.load_store(tmp_path / "store")
    assert 50 <= len(kept.failures) <= tried


def test_failures_up_to_the_limit_are_allowed() -> None:
    theta = submission(40, dict.fromkeys(range(0, 40, 4), faulty.RAISE))
    assert len(simulate(ONE_ROW, theta, max_failure_fraction=0.25).failures) == 10
    with pytest.raises(ValueError, match=r"failed for 10 of the .* more than the 24%"):
        simulate(ONE_ROW, theta, max_failure_fraction=0.24)
    everything = simulate(ONE_ROW, theta[::4], max_failure_fraction=1.0)
    assert everything.x.shape == (0, 0)
    assert len(everything.failures) == 10


def test_failures_in_the_first_rows_by_chance_do_not_stop_a_run() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):  # 45% fail: below the limit, though not among every first 50
        failing = rng.permutation(1_000)[:450].tolist()
        theta = submission(1_000, dict.fromkeys(failing, faulty.NAN))
        assert len(simulate(faulty.Seeded(), theta, seed=0).failures) == 450


def test_a_simulator_of_one_theta_used_as_batched_is_told_about_from_function() -> None:
    with pytest.raises(ValueError, match=r"wrong shape.*from_function"):
        simulate(lambda theta: theta.sum(), submission(10))


def test_a_simulator_may_explain_its_failures(engine: Engine) -> None:
    theta = torch.tensor([[4.0, 1.0], [-9.0, 1.0], [4.0, -1.0], [1.0, 1.0]])
    run = simulate(faulty.Explained(), theta, engine=engine)
    reasons = [failure.reason for failure in run.failures]
    assert reasons == ["negative root of -9", "not finite: 1 of 2 values are NaN or infinite"]


def test_simulators_may_not_change_the_parameters_of_the_caller() -> None:
    theta = submission(10)
    simulate(lambda rows: rows.add_(1.0), theta)
    assert torch.equal(theta, submission(10))


def test_interruption_stops_the_workers_and_keeps_what_was_done(tmp_path: Path) -> None:
    """Ctrl-C as a terminal gives it: a job in the background inherits an ignored signal."""
    log, store = tmp_path / "log", tmp_path / "store"
    theta = submission(400)
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "import faulty_simulators as faulty; from submissions import submission; "
        "from simulators import simulate; "
        f"simulate(faulty.Logged({str(log)!r}, 0.02), submission(400), workers=2, seed=4, "
        f"store={str(store)!r})"
    )
    tests = Path(__file__).parents[2]
    paths = os.pathsep.join([str(tests), str(tests.parent)])
    user = subprocess.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        text=True,
    )
    while not log.exists() or len(log.read_text().splitlines()) < 30:
        assert user.poll() is None, user.communicate()[1]
        time.sleep(0.05)
    user.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in user.communicate(timeout=60)[1]
    assert user.returncode != 0
    workers = {int(line.split()[1]) for line in log.read_text().splitlines()}
    assert not any(alive(pid) for pid in workers)
    done = simulators.load_store(store)
    assert 0 < len(done.x) < 400
    again = tmp_path / "again"
    run = simulate(faulty.Logged(str(again)), theta, workers=2, store=store)
    repeated = {int(line.split()[0]) for line in again.read_text().splitlines()}
    assert not repeated & set(done.index.tolist())
    assert torch.equal(run.x, faulty.Seeded()(theta, 4))


def test_workers_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    run = start_script(
        f"simulate(faulty.Logged({str(log)!r}, 100.0), torch.zeros(9, 2), workers=2)"
    )
    wait_until(lambda: log.exists() and len(set(log.read_text().split()[1::2])) == 2)
    run.kill()
    run.wait()
    workers = {int(line.split()[1]) for line in log.read_text().splitlines()}
    wait_until(lambda: not any(alive(pid) for pid in workers))


def test_a_running_cluster_may_be_given_by_client_or_address() -> None:
    distributed = pytest.importorskip("distributed")
    theta = submission(60, {7: faulty.EXIT, 30: faulty.HANG})
    with simulators.random.isolated_rng(0):
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        )
        client = distributed.Client(cluster)
    here = simulate(faulty.Seeded(), theta, workers=2, timeout=1.0, seed=2)
    for engine in (client, cluster.scheduler_address):
        there = simulate(faulty.Seeded(), theta, engine=engine, timeout=1.0, seed=2)
        assert torch.equal(here.x, there.x)
        assert here.failures == there.failures
    with simulators.random.isolated_rng(0):
        client.close()
        cluster.close()


def test_nothing_is_shown_for_short_runs_or_where_nobody_watches(
    capsys: pytest.CaptureFixture[str],
) -> None:
    simulate(faulty.slow_rows, torch.full((3, 1), 0.4), seed=0)
    assert capsys.readouterr() == ("", "")


def test_a_long_run_on_a_terminal_shows_how_far_it_is() -> None:
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    run = start_script("simulate(faulty.slow_rows, torch.full((12, 1), 0.2))", stderr=theirs)
    os.close(theirs)
    shown = ""
    with suppress(OSError):  # how the end of a terminal is told
        while part := os.read(ours, 10_000):
            shown += part.decode()
    run.wait()
    os.close(ours)
    assert "simulating" in shown
    assert "12/12" in shown
    assert "/s" in shown


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"workers": 0}, "`workers` must be a whole number of at least 1; got 0"),
        ({"timeout": 0.0}, "`timeout` must be a positive number of seconds; got 0"),
        ({"engine": "threads"}, "`engine` must be one of .* got 'threads'"),
        ({"engine": open_engine(), "timeout": 1.5}, "`timeout` needs .* got timeout=1.5"),
        ({"max_failure_fraction": 1.5}, "`max_failure_fraction` must lie .* got 1.5"),
        ({"theta": torch.zeros(3)}, r"`theta` must have shape .* got \(3,\)"),
    ],
)
def test_wrong_arguments_are_refused_with_what_came(
    arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        simulate(**{"simulator": faulty.many_rows, "theta": submission(3)} | arguments)  # type: ignore[arg-type]


@given(num_rows=st.integers(0, 5_000), kept=st.floats(0.0, 1.0), seed=st.integers(0, 100))
@settings(deadline=None)
def test_the_cut_by_rows_covers_what_is_missing_and_never_moves(
    num_rows: int, kept: float, seed: int
) -> None:
    theta = np.zeros((num_rows, 1), np.float32)
    every = [(b.first_row, len(b)) for b in cut_by_rows(theta, 0, np.ones(num_rows, bool))]
    missing = np.random.default_rng(seed).random(num_rows) > kept
    some = [(b.first_row, len(b)) for b in cut_by_rows(theta, 0, missing)]
    assert set(some) <= set(every)
    covered = [row for first, size in every for row in range(first, first + size)]
    assert covered == list(range(num_rows))
    rows = {row for first, size in some for row in range(first, first + size)}
    assert set(np.flatnonzero(missing).tolist()) <= rows


@given(
    num_rows=st.integers(0, 3_000),
    workers=st.integers(1, 64),
    row_seconds=st.floats(1e-7, 10.0),
    seed=st.integers(0, 100),
)
@settings(deadline=None)
def test_the_cut_by_time_covers_what_is_missing_once_at_any_pace(
    num_rows: int, workers: int, row_seconds: float, seed: int
) -> None:
    missing = np.random.default_rng(seed).random(num_rows) > 0.1
    pace, rows = Pace(), []
    for batch in cut_by_time(np.zeros((num_rows, 1), np.float32), 0, missing, workers, pace):
        assert len(batch) == 1 or len(batch) * row_seconds <= 0.5
        rows += range(batch.first_row, batch.first_row + len(batch))
        pace.learn(result_of(batch, len(batch) * row_seconds))
    assert rows == np.flatnonzero(missing).tolist()


def result_of(batch: Batch, seconds: float) -> BatchResult:
    index = batch.first_row + np.arange(len(batch))
    return BatchResult(index, np.zeros((len(batch), 1), np.float32), (), seconds)


def alive(pid: int) -> bool:
    """Whether a process is running; one that only waits to be buried is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


assert HEALTHY == 0  # submission() fills with it
