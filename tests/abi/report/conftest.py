"""One fit, its page and one validation for all tests of the room."""

from __future__ import annotations

from pathlib import Path

import pytest
from fits import SMALL
from pages import X_O, checked, page_for, sharp, stub
from problems import prior, simulate
from typer.testing import CliRunner

import abi
from abi.cli.app import app
from simulators.random import isolated_rng
from validation import ColtTraining, Report

QUICK = {"num_simulations": 400, "num_rounds": 2, "config": SMALL, "progress": False}
BALLS = ColtTraining(hidden=(16,), epochs=20, draws_per_epoch=10)


@pytest.fixture(scope="session")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "mine"
    posterior = abi.fit(prior, simulate, X_O, run_dir=folder, **QUICK)
    posterior.save(folder / "posterior.safetensors")
    return folder


@pytest.fixture(scope="session")
def page(run_dir: Path) -> str:
    out = run_dir.parent / "mine.html"
    done = CliRunner().invoke(app, ["report", str(run_dir), "--out", str(out)])
    assert done.exit_code == 0, done.output
    return out.read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def report() -> Report:
    names = ["sbc", "tarp", "c2st", "conformal_multiple", "score_rank", "colt_identity"]
    with isolated_rng(0), pytest.MonkeyPatch.context() as patch:
        patch.setattr("validation.methods.localization.ColtTraining", lambda: BALLS)
        return checked(sharp, [*names, "lc2st", "local_hpd"])


@pytest.fixture(scope="session")
def hundred() -> str:
    """The page of a fit of a hundred parameters."""
    return page_for(stub(100))
