"""One fit for several observations: exactness of each, cost, verdicts, files, what is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from fits import TRAINED
from torch import Tensor

import abi
from simulators import GaussianLinear, sample_joint, sample_prior, simulate

TASK = GaussianLinear(2, 1.0, 0.01)  # each posterior fills about a hundredth of the prior
CALLS, CHECKED = 2_000, 0.2
NUM = 4


def several(x: Any, **changes: object) -> abi.Posteriors:
    arguments = {
        "num_simulations": CALLS,
        "num_rounds": 2,
        "config": TRAINED,
        "progress": False,
        "check_fraction": CHECKED,
    }
    return abi.fit_many(TASK.prior, TASK, x, **(arguments | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def x() -> Tensor:
    return sample_joint(TASK, NUM, seed=4)[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("many") / "run"


@pytest.fixture(scope="module")
def posteriors(x: Tensor, folder: Path) -> abi.Posteriors:
    return several(x, run_dir=folder)


def test_each_is_near_its_exact_posterior(posteriors: abi.Posteriors, x: Tensor) -> None:
    assert torch.equal(posteriors.x_o, x)
    for posterior, x_o in zip(posteriors, x, strict=True):
        mean, variance = TASK.posterior_moments(x_o)
        draws = posterior.sample((4_000,))
        assert float(((draws.mean(dim=0) - mean) / variance**0.5).abs().max()) < 0.4
        assert float((draws.std(dim=0) / variance**0.5).log().abs().max()) < 0.3


def test_they_share_their_rounds_and_a_region(posteriors: abi.Posteriors) -> None:
    first, *others = posteriors
    assert first.reach is not None
    assert len(first.reach.regions) == 1  # the second round drew from the union
    inside = first.reach.regions[0].contains(sample_prior(TASK.prior, 10_000, seed=1))
    assert 0.005 < float(inside.float().mean()) < 0.25
    shared = [record.simulator_calls for record in first.rounds]
    for other in others:
        assert [record.simulator_calls for record in other.rounds] == shared
    assert sum(shared) == CALLS * (1 - CHECKED)
    assert posteriors.num_simulations == CALLS
    assert first.num_simulations == sum(shared) + CALLS * CHECKED / NUM


def test_where_they_fill_the_prior_what_is_left_makes_one_round() -> None:
    wide = GaussianLinear(2, 1.0, 0.5)  # each posterior is half as wide as the prior
    rows = sample_joint(wide, 8, seed=1)[1]
    asked = {"num_simulations": 600, "num_rounds": 3, "config": TRAINED, "check_fraction": 0.0}
    found = abi.fit_many(wide.prior, wide, rows, progress=False, **asked)
    first, second = found[0].rounds
    assert first.simulator_calls < second.simulator_calls
    assert found.num_simulations == 600
    assert second.pairs == 600
    assert found[0].reach is not None
    assert found[0].reach.regions == ()


def test_each_has_a_verdict_of_its_own_and_they_have_one_together(
    posteriors: abi.Posteriors,
) -> None:
    for posterior in posteriors:
        assert posterior.verdict.num_calls == CALLS * CHECKED / NUM
        assert posterior.verdict.x_o_p_value is not None
        assert posterior.rounds[-1].answer is not None
        assert posterior.rounds[-1].moved is None
    least = min(p for v in posteriors.verdicts if (p := v.p_value) is not None)
    assert posteriors.p_value == min(1.0, NUM * least)
    text = str(posteriors)
    assert len(text.splitlines()) == NUM + 2
    assert "All of them right? p = " in text
    assert repr(posteriors).startswith(f"Posteriors at {NUM} observations, 2,000 simulator calls")
    assert posteriors._repr_html_().count("<tr") == NUM + 1
    assert len(posteriors[1:3]) == 2


def test_one_of_them_is_refined(posteriors: abi.Posteriors, x: Tensor) -> None:
    refined = posteriors[2].refine(num_simulations=400, num_rounds=1, progress=False)
    assert refined.x_o is not None
    assert torch.equal(refined.x_o, x[2])
    assert refined.num_simulations == posteriors[2].num_simulations + 400
    mean, variance = TASK.posterior_moments(x[2])
    draws = refined.sample((4_000,))
    assert float(((draws.mean(dim=0) - mean) / variance**0.5).abs().max()) < 0.4


def test_it_answers_at_the_others_x_too(posteriors: abi.Posteriors, x: Tensor) -> None:
    at_second = posteriors[0].sample((2_000,), x=x[1])
    own = posteriors[1].sample((2_000,))
    assert float((at_second.mean(dim=0) - own.mean(dim=0)).abs().max() / own.std()) < 0.15


def test_files_hold_them(posteriors: abi.Posteriors, folder: Path, tmp_path: Path) -> None:
    posteriors.save(tmp_path / "kept")
    posteriors.save(tmp_path / "kept")  # the folder is replaced
    assert len(list((tmp_path / "kept").iterdir())) == NUM
    for found in (abi.Posteriors.load(tmp_path / "kept"), abi.Posteriors.load(folder)):
        assert found.verdicts == posteriors.verdicts
        assert torch.equal(found[3].sample((20,)), posteriors[3].sample((20,)))
    one = abi.load(tmp_path / "kept" / "002.safetensors")
    assert torch.equal(one.sample((20,)), posteriors[1].sample((20,)))
    with pytest.raises(ValueError, match="holds no posteriors; name a folder"):
        abi.Posteriors.load(tmp_path)


def test_an_interrupted_run_goes_on(
    posteriors: abi.Posteriors, folder: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(folder, run)
    shutil.rmtree(run / "posteriors")
    (run / "round_02.safetensors").unlink()
    found = abi.resume_many(run, progress=False)
    assert found.verdicts == posteriors.verdicts
    assert torch.equal(found[1].sample((20,)), posteriors[1].sample((20,)))
    with pytest.raises(ValueError, match=r"of several observations; go on with it by abi.resume_m"):
        abi.resume(run)


def test_observations_come_in_any_form_and_pairs_made_before_serve() -> None:
    theta = sample_prior(TASK.prior, 1_000, seed=1)
    pairs = simulate(TASK, theta, seed=2, progress=False)
    rows = [[0.1, 0.2], [0.4, -0.3]]
    forms = np.array(rows), pd.DataFrame(rows, columns=["a", "b"])
    asked = {"num_simulations": 120, "num_rounds": 1, "simulations": pairs, "check_fraction": 0.0}
    found = [several(form, **asked) for form in forms]
    for posterior, row in zip(found[0], rows, strict=True):  # the pairs alone have taught it
        mean, variance = TASK.posterior_moments(torch.tensor(row))
        draws = posterior.sample((4_000,))
        assert float(((draws.mean(dim=0) - mean) / variance**0.5).abs().max()) < 0.5
    for other in found:
        assert torch.equal(other.x_o, torch.tensor(rows))
        assert torch.equal(other[1].sample((5,)), found[0][1].sample((5,)))
        assert other.num_simulations == 0  # none but those made before
        assert other.p_value is None


@pytest.mark.parametrize(
    ("observations", "message"),
    [
        ([], "`observations` holds none"),
        ({"x": 1.0}, "`observations` must be a list of observations"),
        (0.5, "`observations` must be a list of observations"),
        ([[0.0, 0.0], [0.0, float("inf")]], "`observations`, number 2: `x_o` must be finite"),
        ([[0.0, 0.0], [0.0]], "`observations`, number 2: `x_o` must have as many values"),
    ],
)
def test_what_are_no_observations_is_told(observations: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message) as error:
        several(observations)
    assert "\n" not in str(error.value)


def test_constants_of_one_x_are_refused() -> None:
    config = replace(TRAINED, accept_fraction=0.5)
    with pytest.raises(ValueError, match="where there are several observations"):
        several([[0.0, 0.0]], config=config)


def test_unusual_observations_are_named() -> None:
    rows = [[0.0, 0.0], [30.0, -30.0]]
    with pytest.warns(UserWarning, match=r"1 of 2 are unusual for this model \(number 2\)"):
        several(rows, num_simulations=400, num_rounds=1, check_fraction=0.0)


def test_gaps_may_differ_between_observations() -> None:
    """Of N(theta_j, .01) each, what was not measured leaves the prior: exactly known."""
    nan = float("nan")
    rows = [[0.4, -0.3], [nan, 0.5], [0.2, nan]]
    found = several(rows, num_simulations=3_000, check_fraction=0.1)
    for posterior, row in zip(found, rows, strict=True):
        draws = posterior.sample((4_000,))
        for place, value in enumerate(row):
            known = value == value
            mean, sd = (value / 1.01, (0.01 / 1.01) ** 0.5) if known else (0.0, 1.0)
            assert abs(float(draws[:, place].mean()) - mean) < 0.4 * sd
            assert float((draws[:, place].std() / sd).log().abs()) < 0.35
        assert posterior.verdict.check.p_value is not None


def test_the_same_gaps_are_left_out_of_all_simulations() -> None:
    rows = [[0.4, float("nan")], [0.1, float("nan")]]
    asked = {"num_simulations": 400, "num_rounds": 1, "check_fraction": 0.0}
    found = several(rows, **asked)
    assert found[0].kernel is not None
    assert found[0].kernel.layout.gaps == (1,)
    with pytest.raises(ValueError, match="number 2: `x_o` must hold a value that was measured"):
        several([rows[0], [float("nan")] * 2], **asked)
