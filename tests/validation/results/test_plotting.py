"""Pictures can be drawn of every result, and the command line tells its verdict."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from one_look import TASK, exact
from typer.testing import CliRunner

from abi.cli.app import app
from simulators import sample_joint
from simulators.random import isolated_rng
from validation import ColtTraining, Training, colt, fit_lc2st, localize, validate

matplotlib = pytest.importorskip("matplotlib")
QUICK = Training(hidden=(8,), max_epochs=4)


@pytest.fixture
def joint() -> tuple[torch.Tensor, torch.Tensor]:
    return sample_joint(TASK, 60, 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    with isolated_rng(0):
        yield tmp_path


def test_every_result_has_a_picture(joint: tuple[torch.Tensor, torch.Tensor], folder: Path) -> None:
    names = ["sbc", "tarp", "c2st", "conformal_multiple", "score_rank", "local_hpd"]
    names += ["colt_identity", "lc2st"]
    report = validate(exact, *joint, names, num_samples=20)
    paths = report.save_plots(folder / "plots")
    local = ["colt_identity_localization", "lc2st_pairs"]
    assert [path.stem for path in paths] == names + local
    assert all(path.stat().st_size > 1_000 for path in paths)


def test_a_rank_curve_outside_its_band_is_a_rejection(
    joint: tuple[torch.Tensor, torch.Tensor],
) -> None:
    from scipy.stats import kstwo

    from validation import tarp

    result = tarp(lambda num, x: 0.2 * exact(num, x), *joint, num_samples=50)
    ax = result.plot()
    heights = ax.lines[-1].get_ydata()
    assert np.abs(heights).max() == pytest.approx(result.statistic, abs=1e-6)
    assert (result.statistic > kstwo.ppf(0.95, 60)) == result.reject(0.05)


def test_pp_plot_pair_plot_and_localization_are_drawn(
    joint: tuple[torch.Tensor, torch.Tensor],
) -> None:
    from validation.results.plotting import plot_localization, plot_pairs

    result = fit_lc2st(exact, *joint, num_nulls=5, training=QUICK).test(
        torch.zeros(2), num_samples=50
    )
    assert result.plot().get_title().startswith("lc2st: p = ")
    assert len(plot_pairs(result, names=("a", "b")).axes) == 5
    balls = colt(exact, *joint, num_samples=30, training=ColtTraining(hidden=(8,), epochs=3))
    with pytest.raises(ValueError, match="'colt' has no probabilities"):
        plot_pairs(balls)
    ax = plot_localization(localize(balls, torch.zeros(2)))
    assert "in the ball" in ax.get_legend_handles_labels()[1][1]


def _run(*arguments: str) -> object:
    return CliRunner().invoke(app, ["validate", *arguments])


def test_the_command_line_tells_its_verdict_by_exit_status(
    joint: tuple[torch.Tensor, torch.Tensor], folder: Path
) -> None:
    theta, x = joint
    np.savez(folder / "joint.npz", theta=theta.numpy(), x=x.numpy())
    (folder / "my_posteriors.py").write_text(
        "import torch\n"
        "def exact(num_samples, x):\n"
        "    return x / 2 + 0.5**0.5 * torch.randn(num_samples, *x.shape)\n"
        "def blind(num_samples, x):\n"
        "    return 3.0 + torch.randn(num_samples, *x.shape)\n"
    )
    fine = _run("--posterior", "my_posteriors:exact", "--data", "joint.npz", "-m", "sbc", "-m",
                "tarp", "--out", "fine.json", "--plots", "plots")  # fmt: skip
    assert fine.exit_code == 0, fine.output
    assert "not rejected" in fine.output
    assert json.loads((folder / "fine.json").read_text())["rejected"] == []
    assert (folder / "plots" / "tarp.png").exists()
    bad = _run("--posterior", "my_posteriors:blind", "--data", "joint.npz", "-m", "sbc")
    assert bad.exit_code == 1, bad.output


def test_the_command_line_takes_stored_samples_and_refuses_half_a_request(
    joint: tuple[torch.Tensor, torch.Tensor], folder: Path
) -> None:
    theta, x = joint
    np.savez(folder / "s.npz", theta=theta, x=x, samples=exact(70, x).numpy())
    good = _run("--samples", "s.npz", "--layout", "samples_first", "-m", "sbc")
    assert good.exit_code in (0, 1), good.output
    for arguments, message in (
        (["--samples", "s.npz"], "`layout` must say"),
        ([], "`--samples` must be given"),
        (["--posterior", "math:pi", "--theta", "s.npz"], "got float"),
        (["--posterior", "simulators:sample_joint"], "`--data` with theta and x"),
    ):
        result = _run(*arguments)
        assert isinstance(result.exception, ValueError | TypeError)
        assert message in str(result.exception)
