"""One fit for every x: exactness, its verdict over all x, its file, and refining it at an x_o."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import problems
import pytest
import torch
from fits import BY_GENERATOR, TRAINED
from torch import Tensor

import abi
from simulators import GaussianLinear, from_function, sample_joint, simulate
from validation import sbc

TASK = GaussianLinear(2, 1.0, 0.05)


def amortised(**changes: object) -> abi.ABIPosterior:
    arguments = {"num_simulations": 1_500, "config": TRAINED, "progress": False}
    return abi.fit(TASK.prior, TASK, None, **(arguments | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def fit() -> abi.ABIPosterior:
    return amortised()


@pytest.fixture(scope="module")
def x_o() -> Tensor:
    return sample_joint(TASK, 1, seed=4)[1][0]


@pytest.fixture(scope="module")
def refined(fit: abi.ABIPosterior, x_o: Tensor) -> abi.ABIPosterior:
    return fit.refine(x_o, num_simulations=600, num_rounds=1, progress=False)


def test_it_is_near_the_exact_posterior_at_every_x(fit: abi.ABIPosterior) -> None:
    _, x = sample_joint(TASK, 20, seed=1)
    draws = fit.sample_batched((2_000,), x)
    for drawn, row in zip(draws.unbind(dim=1), x, strict=True):
        mean, variance = TASK.posterior_moments(row)
        assert float(((drawn.mean(dim=0) - mean) / variance**0.5).abs().max()) < 0.6
        assert float((drawn.std(dim=0) / variance**0.5).log().abs().max()) < 0.4
    one = fit.sample((2_000,), x=x[0])
    theta = one[:50]
    assert torch.equal(fit.log_prob(theta, x=x[0]), fit.log_prob(theta, x=x[:1].expand(50, -1)))


def test_its_verdict_is_over_all_x(fit: abi.ABIPosterior) -> None:
    verdict = fit.verdict
    assert fit.x_o is None
    assert verdict.x_o_p_value is None
    assert verdict.check.num_pairs == verdict.num_calls == int(0.07 * 1_500)
    assert {"sbc", "tarp", "hpd", "c2st"} <= set(verdict.check.p_values)
    assert "lc2st" not in verdict.check.p_values
    text = str(verdict)
    assert "right at every x?" in text
    assert "how far off on average?" in text
    assert "x_o" not in text
    assert verdict.more_calls is None
    q, theta, x = fit.check_pairs(num_draws=50)
    assert 0.0 < sbc(q, theta, x, seed=0).p_value <= 1.0


def test_without_an_x_it_says_what_to_do(fit: abi.ABIPosterior) -> None:
    pictures = fit.summary, fit.plot, fit.plot_predictive
    for ask in (fit.sample, fit.to_arviz, lambda: fit.log_prob(torch.zeros(1, 2)), *pictures):
        with pytest.raises(ValueError, match="`x` must be given: the fit is amortised") as error:
            ask()
        assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="`x_o` must be given: the fit is amortised"):
        fit.refine()


def test_a_notebook_shows_it_without_an_x_and_its_rounds_only_how_it_was_judged(
    fit: abi.ABIPosterior, refined: abi.ABIPosterior
) -> None:
    html = fit._repr_html_()
    assert "for every x" in html
    assert "1,500 simulator calls in 1 round" in html
    assert fit.rounds[0].answer is None
    assert len(fit.plot_rounds().axes) == 3 * fit.theta_dim
    told = [record.answer for record in refined.rounds]
    assert None not in told  # both at its x_o


def test_it_comes_back_from_its_file_and_its_folder(fit: abi.ABIPosterior, tmp_path: Path) -> None:
    made = amortised(run_dir=tmp_path)
    x = sample_joint(TASK, 3, seed=2)[1]
    for other in (made, abi.load(tmp_path / "posterior.safetensors")):
        assert other.x_o is None
        assert other.verdict == fit.verdict
        assert torch.equal(other.sample_batched((20,), x), fit.sample_batched((20,), x))
    (tmp_path / "posterior.safetensors").unlink()
    resumed = abi.resume(tmp_path, progress=False)
    assert resumed.x_o is None
    assert torch.equal(resumed.sample_batched((20,), x), fit.sample_batched((20,), x))


def test_refined_at_an_x_o_it_uses_its_pairs_and_is_near_exact(
    fit: abi.ABIPosterior, refined: abi.ABIPosterior, x_o: Tensor
) -> None:
    assert refined.x_o is not None
    assert torch.equal(refined.x_o, x_o)
    assert refined.reach is not None
    assert len(refined.reach.regions) == 1
    last = refined.rounds[-1]
    assert last.pairs > last.simulator_calls  # of the amortised fit, those inside
    assert refined.num_simulations == 1_500 + 600
    assert refined.rounds[0].x_o_p_value is not None
    assert "L-C2ST at x_o" in str(refined.verdict)
    mean, variance = TASK.posterior_moments(x_o)
    draws = refined.sample((5_000,))
    assert float(((draws.mean(dim=0) - mean) / variance**0.5).abs().max()) < 0.35
    assert float((draws.std(dim=0) / variance**0.5).log().abs().max()) < 0.25
    assert fit.x_o is None


def test_a_refined_fit_is_for_its_x_o_alone(
    fit: abi.ABIPosterior, refined: abi.ABIPosterior, x_o: Tensor
) -> None:
    with pytest.raises(ValueError, match="around another observation"):
        refined.refine(x_o + 1.0)
    with pytest.raises(ValueError, match="`x_o` must have as many values"):
        fit.refine(torch.zeros(3))
    with pytest.raises(ValueError, match="`x_o` has gaps, but the fit's simulations had none"):
        fit.refine([float("nan"), *x_o[1:].tolist()])


def test_a_refinement_in_a_folder_is_resumed(
    fit: abi.ABIPosterior, refined: abi.ABIPosterior, x_o: Tensor, tmp_path: Path
) -> None:
    asked = {"num_simulations": 600, "num_rounds": 1, "progress": False}
    made = fit.refine(x_o, run_dir=tmp_path, **asked)  # type: ignore[arg-type]
    (tmp_path / "posterior.safetensors").unlink()
    (tmp_path / "round_02.safetensors").unlink()
    again = abi.resume(tmp_path, progress=False)
    for other in (made, again):
        assert torch.equal(other.sample((20,)), refined.sample((20,)))


def test_the_simulator_is_called_once_more_to_see_what_x_is() -> None:
    counting = problems.Counting()
    task = from_function(counting, problems.BOX, batched=True)
    fit = abi.fit(
        task.prior, task, None, num_simulations=200, config=TRAINED, check_fraction=0.0,
        progress=False,
    )  # fmt: skip
    assert fit.num_simulations == 200
    assert counting.calls == 201


def test_it_may_begin_with_stored_simulations() -> None:
    theta = sample_joint(TASK, 300, seed=5)[0]
    made = simulate(TASK, theta, seed=6, progress=False)
    fit = amortised(num_simulations=100, simulations=made, check_fraction=0.0)
    assert fit.num_simulations == 0
    assert fit.rounds[0].pairs == 300


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_rounds": 2}, "`num_rounds` must be 1 without an x_o"),
        ({"config": replace(TRAINED, accept_fraction=0.5)}, "`config` must have"),
        ({"config": replace(TRAINED, proposal="generator")}, "`config` must have"),
        ({"config": BY_GENERATOR["mixture"]}, "`config` must have"),
        ({"distance": lambda x: x[:, 0]}, "`distance` is to one x_o"),
    ],
)
def test_what_needs_an_x_o_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        amortised(**changes)
    assert "\n" not in str(error.value)


def test_a_simulator_that_always_fails_is_told_before_the_budget_is_spent() -> None:
    task = from_function(problems.all_nan, problems.BOX, batched=True)
    with pytest.raises(ValueError, match="`simulator` failed for each of 20 draws"):
        abi.fit(task.prior, task, None, progress=False)
