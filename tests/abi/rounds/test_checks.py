"""Pairs that check an answer: how many, from where, seen by no training, and more of them later."""

from __future__ import annotations

import math
from pathlib import Path

import problems
import pytest
import torch
from fits import X_O, quick_fit
from torch import Tensor

import abi
from abi.plan import Plan
from abi.rounds.regions.region import inside_all
from simulators import from_function

NUM_CALLS = 1_200  # of a quick fit, 84 of which check it


class Recorder:
    """A simulator that remembers its theta, and from some call on fails for half of them."""

    def __init__(self, fails_after: float = math.inf) -> None:
        self.fails_after = fails_after
        self.theta = torch.empty(0, 2)

    def __call__(self, theta: Tensor) -> Tensor:
        late = len(self.theta) >= self.fails_after
        self.theta = torch.cat([self.theta, theta])
        x = problems.simulate(theta)
        x[late & (theta[:, 0] > X_O[0])] = torch.nan
        return x


@pytest.fixture(scope="module")
def recorder() -> Recorder:
    """The simulator of the fit below."""
    return Recorder()


@pytest.fixture(scope="module")
def posterior(recorder: Recorder) -> abi.ABIPosterior:
    """A fit of two rounds."""
    return quick_fit(simulator=recorder)


@pytest.mark.parametrize(
    ("check_fraction", "num_simulations"), [(0.0, 401), (0.07, 1_001), (0.3, 403)]
)
def test_no_share_of_checks_makes_more_calls_than_asked_for(
    check_fraction: float, num_simulations: int
) -> None:
    simulator = Recorder()
    posterior = quick_fit(
        simulator=from_function(simulator, problems.BOX, batched=True),
        num_simulations=num_simulations,
        num_rounds=1,
        check_fraction=check_fraction,
    )
    assert len(simulator.theta) == posterior.num_simulations == num_simulations
    assert posterior.verdict.num_calls == int(check_fraction * num_simulations)
    assert sum(record.simulator_calls for record in posterior.rounds) == (
        num_simulations - posterior.verdict.num_calls
    )


def test_rounds_keep_what_they_cannot_do_without() -> None:
    assert Plan(210, 2, 0, abi.ABIConfig(), check_fraction=0.5).num_check == 10
    large = Plan(100_000, 2, 0, abi.ABIConfig(), check_fraction=0.07)
    assert large.num_check == 1_000  # more would cost time and show little
    assert large.calls(1) + large.calls(2) == 99_000
    plan = Plan(1_000, 2, 0, abi.ABIConfig(), check_fraction=0.3)
    assert plan.num_check + plan.calls(1) + plan.calls(2) == 1_000


@pytest.mark.parametrize("value", [-0.1, 0.51, 1.0, float("nan"), "all", None])
def test_a_share_of_checks_out_of_range_is_refused_by_name(value: object) -> None:
    with pytest.raises(ValueError, match=r"`check_fraction` must be .*in \[0, 1/2\].*; got"):
        quick_fit(check_fraction=value)


def test_no_training_sees_a_check_pair(posterior: abi.ABIPosterior, recorder: Recorder) -> None:
    assert posterior.pairs is not None
    num_check = int(0.07 * NUM_CALLS)
    trained, checked = recorder.theta[:-num_check], recorder.theta[-num_check:]
    assert torch.equal(posterior.pairs.theta, checked)
    assert not bool((checked[:, None] == trained[None]).all(dim=2).any())
    assert not bool((checked[:, None] == posterior.accepted[None]).all(dim=2).any())


def test_check_pairs_lie_in_the_region_of_the_answer(posterior: abi.ABIPosterior) -> None:
    assert posterior.pairs is not None
    assert bool(inside_all(posterior.pairs.regions, posterior.pairs.theta).all())
    # 99% of the answer lies there: four standard errors of a share of 2,000.
    inside = inside_all(posterior.pairs.regions, posterior.sample((2_000,))).double().mean()
    assert float(inside) == pytest.approx(0.99, abs=4.0 * (0.99 * 0.01 / 2_000) ** 0.5 + 0.01)
    q, theta, x = posterior.check_pairs(40)
    assert len(theta) == len(x) <= len(posterior.pairs.theta)
    draws = q.sample(40, x)
    assert draws.shape == (40, len(x), 2)
    assert bool(inside_all(posterior.pairs.regions, draws.flatten(0, 1)).all())
    again = posterior.check_pairs(40)[0].sample(40, x)
    assert torch.equal(again, draws)
    other, _, x = posterior.check_pairs(40, seed=1)
    assert not torch.equal(other.sample(40, x)[:, 0], draws[:, 0])


def test_a_fit_without_check_pairs_says_how_to_get_some() -> None:
    posterior = quick_fit(num_rounds=1, check_fraction=0.0)
    assert posterior.pairs is None
    assert posterior.verdict.outcome == "cannot tell"
    assert "no check pairs were kept" in posterior.verdict.headline
    assert "posterior.check(600)" in posterior.verdict.headline
    with pytest.raises(ValueError, match="`check_pairs`: cannot tell: no check pairs were kept"):
        posterior.check_pairs()
    checked = posterior.check(60)
    assert checked.verdict.num_calls == 60
    assert checked.verdict.p_value is not None
    assert 0 < len(checked.check_pairs(5)[1]) <= 60


def test_calls_that_fail_in_the_check_are_counted_and_lose_nothing(
    posterior: abi.ABIPosterior,
) -> None:
    """The answer is that of a fit whose check did not fail."""
    num_check = posterior.verdict.num_calls
    half = quick_fit(simulator=Recorder(fails_after=NUM_CALLS - num_check))
    assert half.pairs is not None
    failures = half.verdict.failures
    assert 0.2 * num_check < failures < 0.8 * num_check
    assert len(half.pairs.theta) == len(half.pairs.x) == num_check - failures
    assert half.verdict.num_calls == num_check
    assert half.num_simulations == NUM_CALLS
    assert bool(half.pairs.x.isfinite().all())
    assert torch.equal(half.sample((50,)), posterior.sample((50,)))


def test_a_check_that_fails_whole_leaves_the_answer_and_the_pairs_before(
    posterior: abi.ABIPosterior, tmp_path: Path
) -> None:
    more = posterior.check(30, simulator=problems.all_nan, prior=problems.BOX)
    assert (more.verdict.num_calls, more.verdict.failures) == (84 + 30, 30)
    assert more.pairs is not None
    assert posterior.pairs is not None
    assert torch.equal(more.pairs.x, posterior.pairs.x)
    bare = quick_fit(num_rounds=1, check_fraction=0.0)
    none = bare.check(30, simulator=problems.all_nan, prior=problems.BOX)
    assert none.verdict.outcome == "cannot tell"
    assert "only 0 check pairs can be used" in none.verdict.headline
    none.save(tmp_path / "none.safetensors")
    assert abi.load(tmp_path / "none.safetensors").verdict == none.verdict
    assert len(none.check(40).pairs.theta) == 40  # type: ignore[union-attr]


def test_a_further_check_adds_pairs_and_keeps_those_before(
    posterior: abi.ABIPosterior, recorder: Recorder
) -> None:
    assert posterior.pairs is not None
    calls = len(recorder.theta)
    verdict = posterior.verdict
    more = posterior.check(100)
    assert more.pairs is not None
    assert len(recorder.theta) == calls + 100
    assert torch.equal(more.pairs.theta[:84], posterior.pairs.theta)
    assert torch.equal(more.pairs.x[:84], posterior.pairs.x)
    assert len(more.pairs.theta) == more.verdict.num_calls == 184
    assert more.verdict.check.num_pairs + more.verdict.check.left_out == 184
    assert len(more.pairs.theta.unique(dim=0)) == 184
    assert more.num_simulations == posterior.num_simulations + 100
    assert posterior.verdict is verdict
    again = posterior.check(100)
    assert again.verdict == more.verdict
    assert torch.equal(again.pairs.x, more.pairs.x)  # type: ignore[union-attr]
    third = more.check(100).pairs
    assert third is not None
    assert len(third.theta.unique(dim=0)) == 284  # new ones each time


@pytest.mark.parametrize("prior", [problems.BOX, problems.prior], ids=["density", "sampler"])
def test_a_loaded_posterior_is_checked_further_as_the_fit_itself(
    posterior: abi.ABIPosterior, prior: object, tmp_path: Path
) -> None:
    """Pairs of a prior that only draws lie in the regions of the rounds too: it must fill them."""
    if prior is problems.prior:
        posterior = quick_fit(prior=prior)
    posterior.save(tmp_path / "posterior.safetensors")
    loaded = abi.load(tmp_path / "posterior.safetensors")
    assert loaded.verdict == posterior.verdict
    assert loaded.num_simulations == posterior.num_simulations
    for one, other in zip(loaded.check_pairs(20)[1:], posterior.check_pairs(20)[1:], strict=True):
        assert torch.equal(one, other)
    further = loaded.check(100, simulator=problems.simulate, prior=prior)
    same = posterior.check(100)
    assert further.verdict == same.verdict
    assert further.pairs is not None
    assert same.pairs is not None
    assert len(further.pairs.regions) == len(same.pairs.regions)


def test_a_loaded_posterior_is_checked_with_the_simulator_given_again(
    posterior: abi.ABIPosterior, tmp_path: Path
) -> None:
    posterior.save(tmp_path / "posterior.safetensors")
    loaded = abi.load(tmp_path / "posterior.safetensors")
    with pytest.raises(ValueError, match="`simulator` must be given"):
        loaded.check(50)
    with pytest.raises(ValueError, match="`prior` must be given"):
        loaded.check(50, simulator=problems.simulate)
    with pytest.raises(ValueError, match="`x_o` must have as many values as a simulation"):
        loaded.check(50, simulator=problems.constant, prior=problems.BOX)


@pytest.mark.parametrize("value", [0, -5, 2.5, None, True])
def test_a_number_of_calls_that_is_none_is_refused(
    posterior: abi.ABIPosterior, value: object
) -> None:
    with pytest.raises(ValueError, match="`num_simulations` must be a whole number of at least 1"):
        posterior.check(value)  # type: ignore[arg-type]
