"""How commands end: JSON for programs, exit statuses, Ctrl-C, help, completion, the doctor."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import invoke, run
from typer.main import get_command

from abi import installation
from abi.cli.app import app, main
from abi.cli.ending import EXIT_STATUS
from abi.files.parts import FORMAT_VERSION
from simulators.random import isolated_rng

ROOT = Path(__file__).parents[3]
MODULE = """
import time, torch
from torch.distributions import Independent, Uniform

prior = Independent(Uniform(torch.zeros(2), torch.ones(2)), 1)

def simulate(theta):
    return theta.repeat(1, 2) + 0.1 * torch.randn(len(theta), 4)

def slow(theta):
    time.sleep(0.02)
    return simulate(theta)

def sampler(n):
    return torch.rand(n, 2)

def sharp(num_samples, x):
    return x[:, :2] + 0.001 * torch.randn(num_samples, len(x), 2)
"""
COMMANDS = sorted(get_command(app).commands)  # type: ignore[attr-defined]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "endings_module.py").write_text(MODULE)
    np.savetxt(tmp_path / "observed.csv", [[0.3, 0.7, 0.35, 0.65]], delimiter=",")
    generator = torch.Generator().manual_seed(0)
    theta = 0.4 + 0.2 * torch.rand(200, 2, generator=generator)
    x = theta.repeat(1, 2) + 0.1 * torch.randn(200, 4, generator=generator)
    np.savez(tmp_path / "joint.npz", theta=theta.numpy(), x=x.numpy())
    monkeypatch.chdir(tmp_path)
    return tmp_path


WORDS = ("--simulator", "endings_module:simulate", "--prior", "endings_module:prior")


def test_results_come_as_json_and_nothing_else(folder: Path, small_fits: None) -> None:
    """Standard output alone is parsed: progress goes to standard error."""
    made = invoke("simulate", *WORDS, "--num-simulations", "400", "--out", "store", "--json")
    assert json.loads(made.stdout) == {"store": "store", "simulations": 400, "failures": []}
    fitted = invoke("fit", *WORDS, "--observed", "observed.csv", "--num-simulations", "800",
                    "--rounds", "1", "--out", "run", "--json")  # fmt: skip
    summary = json.loads(fitted.stdout)
    kept = json.loads((folder / "run" / "summary.json").read_text())
    assert kept == {"version": FORMAT_VERSION, **summary}
    tested = invoke("validate", "--posterior", "endings_module:sharp", "--data", "joint.npz",
                    "-m", "sbc", "--json")  # fmt: skip
    assert tested.exit_code == 1
    assert json.loads(tested.stdout)["rejected"] == ["sbc"]
    assert json.loads(invoke("doctor", "--json").stdout)["problems"] == []


def test_what_a_simulator_prints_does_not_stand_among_json(folder: Path) -> None:
    """Not from Python, from a program, nor from a worker process."""
    (folder / "chatty_module.py").write_text(
        "import os\nfrom endings_module import *\n"
        "def chatty(theta):\n"
        "    print('in Python')\n"
        "    os.system('echo in a program')\n"
        "    return simulate(theta)\n"
    )
    words = [sys.executable, "-m", "abi", "simulate", "--simulator", "chatty_module:chatty",
             "--prior", "endings_module:prior", "--num-simulations", "20", "--json",
             "--out"]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    for workers in ("1", "2"):
        made = subprocess.run(
            [*words, f"store_{workers}", "--workers", workers],
            capture_output=True, text=True, timeout=120, env=environment, check=True,
        )  # fmt: skip
        assert json.loads(made.stdout)["simulations"] == 20
        assert "in Python" in made.stderr
        assert "in a program" in made.stderr


def test_every_command_takes_json() -> None:
    for name in COMMANDS:
        assert "--json" in invoke(name, "--help").stdout, name


def test_exit_statuses_are_those_that_the_help_promises(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = invoke("--help").stdout
    for code, meaning in EXIT_STATUS.items():
        assert f"{code}: {meaning}" in " ".join(shown.split())
    data = ("--data", "joint.npz", "-m", "sbc", "--seed", "1")
    assert invoke("validate", "--posterior", "endings_module:sharp", *data).exit_code == 1
    theta = np.load("joint.npz")["theta"]
    # Draws of the prior: SBC is blind to the prior in the posterior's place.
    with isolated_rng(3):
        samples = 0.4 + 0.2 * torch.rand(100, *theta.shape)
    np.savez("exact.npz", theta=theta, x=np.load("joint.npz")["x"], samples=samples.numpy())
    sound = invoke("validate", "--samples", "exact.npz", "--layout", "samples_first", "-m", "sbc",
                   "--num-samples", "80")  # fmt: skip
    assert sound.exit_code == 0, sound.output
    assert invoke("validate", "--nonsense").exit_code == 2
    assert invoke("doctor").exit_code == 0
    monkeypatch.setattr(installation, "_version", lambda name: None if name == "numba" else "1")
    sick = invoke("doctor")
    assert sick.exit_code == 1
    assert "problem: numba is missing; install abi-toolkit again" in sick.output


def test_what_breaks_is_not_taken_for_an_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = folder / "breaking_module.py"
    module.write_text("def broken(num_samples, x):\n    raise RuntimeError('out of order')\n")
    words = ["abi", "validate", "--posterior", "breaking_module:broken", "--data", "joint.npz",
             "-m", "sbc"]  # fmt: skip
    monkeypatch.setattr(sys, "argv", words)
    with isolated_rng(0), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3
    assert "RuntimeError: out of order" in capsys.readouterr().err


def test_a_function_is_a_prior_to_every_command(folder: Path) -> None:
    done = invoke("simulate", "--simulator", "endings_module:simulate", "--prior",
                  "endings_module:sampler", "--num-simulations", "20", "--out", "s")  # fmt: skip
    assert "20 simulations, 0 failures" in done.stdout, done.output


def test_the_doctor_tells_versions_paths_threads_gpu_and_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = invoke("doctor").stdout
    version = torch.__version__.partition("+")[0]
    for part in (version, str(ROOT / "validation"), "threads: ", "GPU: ", "free disk"):
        assert part in text
    parts = {"abi": Path("here/abi"), "simulators": Path("there/simulators")}
    monkeypatch.setattr(installation, "package_folders", lambda: parts)
    assert "do not share one parent folder" in invoke("doctor").output


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_examples_whose_options_exist(name: str) -> None:
    text = invoke(name, "--help").stdout
    options, _, shown = text.partition("Examples:")
    commands = re.findall(r"^ abi .*$", shown, flags=re.MULTILINE)
    assert commands
    for command in commands:
        words = shlex.split(command)
        assert words[1] == name or words[1] in COMMANDS
        known = options if words[1] == name else invoke(words[1], "--help").stdout
        for option in re.findall(r" (--[a-z-]+|-[a-z])\b", command):
            assert re.search(rf"{option}\b", known), f"{command}: {option}"


def _interrupt(folder: Path, words: list[str], ready: Path) -> tuple[int, str]:
    """Start a command, press Ctrl-C once ``ready`` is there, and return status and last words."""
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        "import small_commands; small_commands.command().ABIConfig = small_commands.constants; "
        "from abi.cli.app import main; main()"
    )
    user = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    while not ready.exists():
        assert user.poll() is None, user.communicate()[1]
        time.sleep(0.02)
    user.send_signal(signal.SIGINT)
    said = user.communicate(timeout=60)[1]
    return user.returncode, said


def test_ctrl_c_leaves_a_fit_to_go_on_with_by_the_words_it_prints(folder: Path) -> None:
    words = ["fit", "--simulator", "endings_module:slow", "--prior", "endings_module:prior",
             "--observed", "observed.csv", "--num-simulations", "400", "--rounds", "2",
             "--no-progress", "--out"]  # fmt: skip
    status, said = _interrupt(folder, [*words, "cut"], folder / "cut" / "round_01.safetensors")
    assert status == 130
    *_, hint, command = said.strip().splitlines()
    assert hint == "abi: interrupted; what was finished is kept. Go on with:"
    assert command == shlex.join(["abi", *words, "cut", "--resume"])
    assert not (folder / "cut" / "samples.csv").exists()
    again = run(folder, *shlex.split(command)[1:])
    assert again.returncode == 0, again.stderr
    rounds = json.loads((folder / "cut" / "summary.json").read_text())["asked"]["rounds"]
    assert rounds == 2
    assert (folder / "cut" / "samples.csv").exists()


def test_ctrl_c_leaves_a_store_to_go_on_with(folder: Path) -> None:
    words = ["simulate", "--simulator", "endings_module:slow", "--prior", "endings_module:prior",
             "--num-simulations", "150", "--one-at-a-time", "--out", "store"]  # fmt: skip
    module = folder / "endings_module.py"
    module.write_text(
        module.read_text().replace(
            "theta.repeat(1, 2) + 0.1 * torch.randn(len(theta), 4)",
            "theta.repeat(2) + 0.1 * torch.randn(4)",
        )
    )
    status, said = _interrupt(folder, words, folder / "store")
    assert status == 130
    assert said.strip().splitlines()[-1] == shlex.join(["abi", *words])
    again = run(folder, *words)
    assert "150 simulations, 0 failures" in again.stdout


def test_the_shell_completes_commands_options_and_names_of_tests() -> None:
    def complete(*words: str) -> set[str]:
        done = subprocess.run(
            [Path(sys.executable).parent / "abi"],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ
            | {
                "_ABI_COMPLETE": "complete_bash",
                "COMP_WORDS": " ".join(words),
                "COMP_CWORD": str(len(words) - 1),
                "PYTHONPATH": str(ROOT),
            },
        )
        return set(done.stdout.split())

    assert complete("abi", "val") == {"validate"}
    assert complete("abi", "validate", "-m", "colt") == {"colt", "colt_identity"}
