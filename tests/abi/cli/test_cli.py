"""The command line, as a user types it."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import invoke, run

import abi
from abi.cli.ending import verdict_words
from abi.files.run_folder import RunFolder

OWN = ("--simulator", "mymodule:simulate")


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a command called in this process is typed."""
    monkeypatch.chdir(folder)
    return folder


def test_a_users_own_function_is_fitted_and_everything_is_left_behind(folder: Path) -> None:
    done = run(
        folder, "fit", "--simulator", "mymodule:simulate", "--prior", "mymodule:prior",
        "--observed", "observed.csv", "--num-simulations", "800", "--seed", "1", "--out", "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "round 3/3" in done.stdout + done.stderr
    out = folder / "run"
    summary = json.loads((out / "summary.json").read_text())
    assert summary["seed"] == 1
    assert summary["exact"] is None
    assert 0 < summary["simulator_calls"] <= 800
    assert summary["posterior"]["theta_1"]["mean"] == pytest.approx(0.325, abs=0.1)
    assert {"abi-toolkit", "torch", "numpy", "python"} <= set(summary["versions"])
    with (out / "samples.csv").open() as file:
        names, *rows = list(csv.reader(file))
    assert names == ["theta_1", "theta_2"]
    assert len(rows) == summary["num_samples"] == 10_000
    with (out / "rounds.csv").open() as file:
        rounds = list(csv.DictReader(file))
    assert [row["round"] for row in rounds] == ["1", "2", "3"]
    checked = summary["verdict"]["num_calls"]
    assert checked == 56  # 7% of the budget
    made = sum(int(row["simulator_calls"]) for row in rounds)
    assert made + checked == summary["simulator_calls"]
    judged = ("before_num_pairs", "before_p_value", "before_largest_bias", "moved")
    assert [rounds[0][name] for name in judged] == [""] * 4
    assert all(float(rounds[1][name]) > 0 for name in judged)
    assert "before" not in rounds[1]
    assert verdict_words(summary["verdict"]["headline"], Path("run")) in done.stdout
    assert (out / "marginals.png").read_bytes().startswith(b"\x89PNG")
    posterior = abi.load(out / "posterior.safetensors")
    assert posterior.sample((3,)).shape == (3, 2)
    assert verdict_words(posterior.verdict, Path("run")) in done.stdout
    assert json.loads(json.dumps(posterior.verdict.to_dict())) == summary["verdict"]
    # A prior that is an object of torch is found again by the name it was given by.
    origin = RunFolder.open(out).request()[3]
    assert origin["prior"] == {"path": "mymodule:prior", "arguments": None}

    again = run(folder, "fit", "--simulator", "mymodule:simulate", "--prior", "mymodule:prior",
                "--observed", "observed.csv", "--out", "run")  # fmt: skip
    assert again.returncode == 2
    assert "already holds a run" in again.stderr
    assert json.loads((out / "summary.json").read_text()) == summary


def test_a_task_brings_prior_observation_and_exact_answer(inside: Path, small_fits: None) -> None:
    done = invoke("fit", "--simulator", "simulators:MG1", "--num-simulations", "300",
                  "--rounds", "1", "--num-samples", "2000", "--out", "queue",
                  "--no-progress")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "exact mean ± sd" in done.stdout
    assert "theta_2 - theta_1" in done.stdout
    assert "picture: queue/marginals.png" in done.stdout
    summary = json.loads(Path("queue/summary.json").read_text())
    assert summary["exact"]["theta_1"]["mean"] == pytest.approx(3.966, abs=0.01)


def test_an_interrupted_run_goes_on(inside: Path, small_fits: None) -> None:
    words = ("fit", *OWN, "--prior", "mymodule:sampler", "--observed", "observed.csv",
             "--num-simulations", "400", "--rounds", "2", "--no-progress", "--out")  # fmt: skip
    whole = invoke(*words, "whole")
    assert whole.exit_code == 0, whole.output
    cut = Path("cut")
    cut.mkdir()
    for name in ("request.safetensors", "round_01.safetensors"):
        (cut / name).write_bytes(Path("whole", name).read_bytes())
    assert invoke(*words, "cut", "--resume").exit_code == 0
    assert (cut / "samples.csv").read_text() == Path("whole/samples.csv").read_text()
    verdicts = [
        json.loads(Path(run, "summary.json").read_text())["verdict"] for run in ("cut", "whole")
    ]
    assert verdicts[0] == verdicts[1]


def test_mistakes_end_with_one_line_and_status_2(folder: Path) -> None:
    """In a process of its own; the others stand in ``tests/project/test_first_hour.py``."""
    done = run(folder, "fit", "--simulator", "nowhere:f", "--out", "run")
    assert done.returncode == 2
    assert "no module named 'nowhere'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (folder / "run").exists()


def test_arrays_are_read_without_unpickling(inside: Path) -> None:
    np.save("bad.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    done = invoke("fit", "--simulator", "simulators:MG1", "--observed", "bad.npy", "--out", "r")
    assert isinstance(done.exception, ValueError)
    assert "could not be read" in str(done.exception)


def test_the_version_tells_where_the_packages_are(tmp_path: Path) -> None:
    done = run(tmp_path, "--version")
    assert done.returncode == 0
    assert abi.__version__ in done.stdout
    for package in ("abi", "simulators", "validation"):
        assert f"{package}: " in done.stdout


def test_a_shadowed_package_is_warned_of(tmp_path: Path) -> None:
    shadow = tmp_path / "validation"
    shadow.mkdir()
    (shadow / "__init__.py").touch()
    code = (
        f"import sys; import abi; sys.path.insert(0, {str(tmp_path)!r}); "
        "sys.argv = ['abi', '--version']; from abi.cli.app import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"validation: {shadow}" in done.stdout
    assert "do not share one parent folder" in done.stderr


def test_threads_are_left_as_found() -> None:
    from fits import quick_fit

    before = torch.get_num_threads()
    quick_fit(num_simulations=200, num_rounds=1)
    assert torch.get_num_threads() == before


def test_a_store_feeds_the_fit_and_the_tests(inside: Path, small_fits: None) -> None:
    own = (*OWN, "--prior", "mymodule:prior")
    made = invoke("simulate", *own, "--num-simulations", "800", "--seed", "3", "--out", "store")
    assert made.exit_code == 0, made.output
    fitted = invoke("fit", *own, "--observed", "observed.csv", "--simulations", "store",
                    "--rounds", "1", "--num-simulations", "2000", "--no-progress",
                    "--run-dir", "run")  # fmt: skip
    assert fitted.exit_code == 0, fitted.output
    summary = json.loads(Path("run/summary.json").read_text())
    # The pairs cost no call; the check of the answer does.
    assert summary["simulator_calls"] == summary["verdict"]["num_calls"] == 140
    assert abi.load("run/posterior.safetensors").rounds[0].pairs == 800
    tested = invoke("validate", "--posterior", "mymodule:sharp", "--data", "store",
                    "--method", "sbc", "--out", "report.json")  # fmt: skip
    assert tested.exit_code == 1, tested.output  # far too sharp: rejected
    assert json.loads(Path("report.json").read_text())
