"""One fit, its page and one validation for all tests of the room."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import X_O, checked, sharp
from problems import prior, simulate
from typer.testing import CliRunner

import abi
from abi.cli.app import app
from simulators.random import isolated_rng
from validation import Report

QUICK = {"num_simulations": 400, "num_rounds": 2, "progress": False}


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "mine"
    posterior = abi.fit(prior, simulate, X_O, run_dir=folder, **QUICK)
    posterior.save(folder / "posterior.safetensors")
    return folder


@pytest.fixture(scope="module")
def page(run_dir: Path) -> str:
    out = run_dir.parent / "mine.html"
    done = CliRunner().invoke(app, ["report", str(run_dir), "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def report() -> Report:
    names = ["sbc", "tarp", "c2st", "conformal_multiple", "score_rank", "colt_identity"]
    with isolated_rng(0):
        return checked(sharp, [*names, "lc2st", "local_hpd"])
