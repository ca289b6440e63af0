"""Rounds that judge each other; fits that end early, resume, or see x through a user's module."""

from __future__ import annotations

from pathlib import Path

import problems
import pytest
import torch
from fits import X_O, quick_fit
from problems import interrupted_after, rounds_done
from torch import Tensor, nn

import abi
from abi.rounds.judging import is_enough
from abi.verdict.record import Check
from simulators import from_function
from validation.swaps.deviations import Deviation

ASKED: dict[str, object] = {"num_rounds": 3, "stop_when": 1e-6}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> abi.ABIPosterior:
    """A fit of three rounds that nothing interrupts, and whose answers are never good enough."""
    return quick_fit(**ASKED, run_dir=tmp_path_factory.mktemp("runs") / "whole")


def test_every_round_but_the_last_is_judged_by_the_next_ones_pairs(
    whole: abi.ABIPosterior,
) -> None:
    first, second, third = whole.rounds
    assert first.before is None
    assert first.moved is None
    for record in (second, third):
        assert record.before is not None
        assert record.before.num_pairs + record.before.left_out <= record.simulator_calls
        assert [part.name for part in record.before.parameters] == ["theta_1", "theta_2"]
        assert record.moved is not None
        assert record.moved.value > 0.0
    verdict = whole.verdict
    assert [part.round for part in verdict.rounds] == [1, 2]
    assert [part.check for part in verdict.rounds] == [second.before, third.before]
    calls = first.simulator_calls
    assert [part.calls for part in verdict.rounds] == [calls, calls + second.simulator_calls]
    assert verdict.moved == third.moved
    assert verdict.x_o_p_value == third.x_o_p_value


def test_judging_costs_no_calls(whole: abi.ABIPosterior) -> None:
    made = sum(record.simulator_calls for record in whole.rounds)
    assert made + whole.verdict.num_calls == whole.num_simulations == 1_200


def test_a_fit_stopped_between_rounds_and_before_its_check_resumes_to_the_same_verdict(
    whole: abi.ABIPosterior, tmp_path: Path
) -> None:
    with pytest.raises(KeyboardInterrupt):
        quick_fit(**ASKED, simulator=interrupted_after(tmp_path, 1), run_dir=tmp_path)
    assert rounds_done(tmp_path) == 1
    with pytest.raises(KeyboardInterrupt):
        abi.resume(tmp_path, problems.BOX, interrupted_after(tmp_path, 3), progress=False)
    assert rounds_done(tmp_path) == 3  # and no call of the check is made
    counting = problems.Counting()
    task = from_function(counting, problems.BOX, batched=True)  # it is not called to find its form
    resumed = abi.resume(tmp_path, problems.BOX, task, progress=False)
    assert whole.verdict.num_calls == 84
    assert counting.calls == 84 + 1  # which shows that it is the simulator of before
    assert resumed.verdict == whole.verdict
    assert resumed.pairs is not None
    assert whole.pairs is not None
    assert torch.equal(resumed.pairs.theta, whole.pairs.theta)
    assert torch.equal(resumed.pairs.x, whole.pairs.x)
    assert resumed.check(50).verdict == whole.check(50).verdict
    for x in (X_O, X_O + 0.05):
        assert torch.equal(resumed.sample((9,), x=x), whole.sample((9,), x=x))


def test_rounds_end_early_where_an_answer_is_good_enough(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("abi.verdict.record.ALPHA", 0.0)  # no answer is rejected
    monkeypatch.setattr("abi.rounds.regions.finding._WORTH", 1.0)  # every region is worthwhile
    posterior = quick_fit(num_rounds=4, stop_when=10.0, run_dir=tmp_path)
    assert len(posterior.rounds) == 2  # the first answer is judged by the second round
    saved = sum(record.simulator_calls for record in posterior.rounds) + 84
    assert posterior.num_simulations == saved < 1_200 / 2
    assert posterior.verdict.num_calls == 84  # the last answer has its own check all the same
    assert len(posterior.sample((10,))) == 10
    # The folder knows that the fit has ended.
    again = abi.resume(tmp_path, problems.BOX, problems.simulate, progress=False)
    assert len(again.rounds) == 2
    assert torch.equal(again.sample((10,)), posterior.sample((10,)))
    assert again.verdict == posterior.verdict
    assert posterior.answer is not None
    assert again.answer is not None
    assert len(again.answer.reach.regions) == len(posterior.answer.reach.regions) == 1


def test_rounds_go_on_where_no_answer_is_good_enough(whole: abi.ABIPosterior) -> None:
    assert len(whole.rounds) == 3
    assert whole.num_simulations == 1_200


def _check(p_value: float | None, bias: float = 0.2, ratio: float = 1.2) -> Check:
    part = Deviation(
        name="mu",
        bias=0.0,
        bias_low=-bias,
        bias_high=bias,
        sd_ratio=1.0,
        sd_ratio_low=1.0 / ratio,
        sd_ratio_high=ratio,
    )
    return Check(100, 0, p_value, {"sbc": p_value or 1.0}, (part,))


def test_an_answer_is_enough_by_what_was_asked_for_and_never_where_it_is_rejected() -> None:
    assert is_enough(_check(0.5), 0.25)
    assert not is_enough(_check(0.5), 0.15)
    assert not is_enough(_check(0.05), 10.0)
    assert not is_enough(_check(None), 10.0)
    assert not is_enough(None, 10.0)
    assert not is_enough(_check(0.5), None)
    assert is_enough(_check(0.5), "passes")
    assert not is_enough(_check(0.5, bias=0.9), "passes")
    assert not is_enough(_check(0.5, ratio=2.0), "passes")
    assert not is_enough(Check(100, 0, 0.5), 10.0)  # no deviations: nothing is known of the bias


@pytest.mark.parametrize("value", [0.0, -0.2, float("nan"), float("inf"), "fails", "", True, [0.2]])
def test_a_stop_that_is_none_is_refused_by_name(value: object) -> None:
    with pytest.raises(ValueError, match=r'`stop_when` must be "passes", a largest bias .*; got'):
        quick_fit(stop_when=value)


class Features(nn.Module):
    """The mean of three looks, behind weights to learn."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 3)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.linear(x.reshape(len(x), 3, 2).mean(dim=1))
        return out


@pytest.mark.moves_global_rng  # torch draws the first weights of a module
def test_a_users_encoder_is_given_again_to_ask_a_loaded_posterior_elsewhere(
    tmp_path: Path,
) -> None:
    encoder = Features()
    posterior = quick_fit(encoder=encoder, num_rounds=1)
    path, near = tmp_path / "posterior.safetensors", X_O + 0.05
    posterior.save(path)
    assert posterior.verdict.p_value is not None
    alone = abi.load(path)
    assert torch.equal(alone.sample((20,)), posterior.sample((20,)))
    assert alone.verdict == posterior.verdict
    with pytest.raises(ValueError, match=r"its encoder is a module of yours, which abi\.load"):
        alone.sample((5,), x=near)
    with pytest.raises(ValueError, match="`check`: the answer cannot be checked: its encoder is"):
        alone.check(50, simulator=problems.simulate, prior=problems.BOX)
    given = abi.load(path, encoder=Features())  # its weights are the file's
    assert torch.equal(given.sample((20,), x=near), posterior.sample((20,), x=near))
    theta = posterior.sample((20,))
    assert torch.equal(given.log_prob(theta, near), posterior.log_prob(theta, near))
    assert given.verdict == posterior.verdict
    more = given.check(50, simulator=problems.simulate, prior=problems.BOX)
    assert more.verdict == posterior.check(50).verdict
    assert given.num_simulations == posterior.num_simulations
