"""How the calls of a fit are shared: as planned, or in rounds that are added while they narrow."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from torch.distributions import Independent, Uniform

import abi
from abi.config import ABIConfig
from abi.plan import Plan, default_rounds
from abi.rounds.schedule import Made, next_round
from abi.training.loop import TrainingSettings

CALLS = (300, 500, 1_000, 2_000, 10_000, 100_000)


def plan_of(calls: int, **changes: object) -> Plan:
    asked = {"check_fraction": 0.07, "adaptive": True} | changes
    return Plan(calls, default_rounds(calls), 0, ABIConfig(), **asked)  # type: ignore[arg-type]


def rounds(plan: Plan, narrowed: Iterable[float | None], theta_dim: int = 2) -> list[int]:
    """The calls of all rounds, each of which leaves this share of its pairs in its region."""
    done: list[Made] = []
    for share in narrowed:
        following = next_round(plan, done, theta_dim)
        done.append(Made(following.calls, share))
        if following.rounds_left == 1:
            break
    return [made.simulator_calls for made in done]


@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("share", [0.0, 0.09, 0.2, None])
@pytest.mark.parametrize("theta_dim", [2, 10, 50])
def test_all_calls_are_made_and_most_are_left_for_the_last_rounds(
    calls: int, share: float | None, theta_dim: int
) -> None:
    plan = plan_of(calls)
    made = rounds(plan, [share] * 50, theta_dim)
    assert sum(made) == calls - plan.num_check
    assert made[-1] >= 0.14 * sum(made)
    assert min(made) >= 90
    if share is None or share > 0.1:
        assert len(made) == default_rounds(calls)
    assert made[0] == plan.calls(1)


def test_a_posterior_that_fills_its_regions_has_the_rounds_of_the_plan() -> None:
    plan, adaptive = plan_of(10_000, adaptive=False), plan_of(10_000)
    planned = [plan.calls(number) for number in range(1, 5)]
    assert rounds(plan, [0.01] * 9) == planned  # whatever the regions
    assert rounds(adaptive, [0.3] * 9) == pytest.approx(planned, abs=3)


def test_rounds_are_added_while_the_regions_narrow() -> None:
    made = rounds(plan_of(10_000), [0.05, 0.05, 0.05, 0.3, 0.3, 0.3, 0.3])
    assert made[:4] == [made[0]] * 4
    assert len(made) == 4 + 2
    ended = rounds(plan_of(10_000), [0.05, 0.05, None, None])
    assert len(ended) == 4  # the posterior fills its region: the rest of the calls are one round
    first_wide = rounds(plan_of(10_000), [None, 0.05, 0.3, 0.3, 0.3, 0.3])
    assert len(first_wide) == 5


def test_an_answer_that_fills_where_its_pairs_come_from_has_one_more_round() -> None:
    plan = plan_of(10_000)
    done = [Made(plan.calls(1), None, filled=True)]
    following = next_round(plan, done, 5)
    assert following.rounds_left == 1
    assert plan.calls(1) + following.calls == 10_000 - plan.num_check
    early = plan_of(10_000, stop_when="passes")  # which has rounds to stop after
    assert next_round(early, done, 5).rounds_left == default_rounds(10_000) - 1


def test_many_parameters_have_more_calls_in_a_round_that_is_added() -> None:
    few, many = (rounds(plan_of(10_000), [0.05] * 9, theta_dim) for theta_dim in (5, 10))
    assert few[:3] == [few[0]] * 3
    assert many[1] == 2 * many[0] == 2 * few[0]


def test_simulations_made_before_are_no_calls_of_the_plan() -> None:
    plan = plan_of(1_000)
    given = (Made(50_000, 0.5),)
    following = next_round(plan, given, 2, given=True)
    assert following.rounds_left == plan.num_rounds - 1
    rest = next_round(plan, (*given, Made(following.calls, 0.5)), 2, given=True)
    assert rest.rounds_left == 1
    assert following.calls + rest.calls == 1_000 - plan.num_check


def test_several_posteriors_that_fill_the_prior_share_one_more_round() -> None:
    plan = plan_of(10_000, adaptive=False, num_observations=3)
    following = next_round(plan, (Made(plan.calls(1), None),), 2)
    assert following.rounds_left == 1
    assert following.calls == 10_000 - plan.num_check - plan.calls(1)


PRIOR = Independent(Uniform(-torch.ones(3), torch.ones(3)), 1)


def simulate(theta: torch.Tensor, width: float = 1e-4) -> torch.Tensor:
    return theta + width * torch.randn_like(theta)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[abi.ABIPosterior, Path]:
    """A fit whose posterior is 1e-12 of the prior, and its folder."""
    folder = tmp_path_factory.mktemp("narrow") / "run"
    told = {"num_simulations": 1_000, "progress": False, "run_dir": folder}
    return abi.fit(PRIOR, simulate, torch.zeros(3), **told), folder  # type: ignore[arg-type]


def test_a_fit_adds_rounds_where_the_posterior_is_far_narrower_than_the_prior(
    run: tuple[abi.ABIPosterior, Path],
) -> None:
    """Where it is not, the same fit has the planned three."""
    wide = abi.fit(
        PRIOR,
        lambda theta: simulate(theta, 0.3),
        torch.zeros(3),
        num_simulations=1_000,
        progress=False,
    )
    assert len(wide.rounds) == 3 < len(run[0].rounds)
    # Of the narrow one five seeds have sds of .75 to 1.20.
    for posterior, width, most in ((run[0], 1e-4, 0.3), (wide, 0.3, 0.25)):
        assert sum(r.simulator_calls for r in posterior.rounds) == 930
        draws = posterior.sample((2_000,))
        assert (draws.mean(dim=0).abs() < 0.5 * width).all()
        assert (draws.std(dim=0) / width - 1.0).abs().max() < most
    narrowed = [r.narrowed for r in run[0].rounds]
    assert narrowed[-1] is None
    assert narrowed[0] is not None
    assert narrowed[0] < 0.1


@pytest.mark.parametrize(("calls", "filled"), [(1_000, [False] * 3), (10_000, [True, False])])
def test_more_than_a_few_parameters_that_data_hardly_tell_have_fewer_rounds(
    calls: int, filled: list[bool]
) -> None:
    """Two, once enough pairs say so."""
    prior = Independent(Uniform(-torch.ones(4), torch.ones(4)), 1)
    config = ABIConfig(num_flows=1, generator_training=TrainingSettings(num_steps=200))
    fit = abi.fit(
        prior,
        lambda theta: simulate(theta, 3.0),
        torch.zeros(4),
        num_simulations=calls,
        config=config,
        progress=False,
    )
    assert [r.filled for r in fit.rounds] == filled
    assert sum(r.simulator_calls for r in fit.rounds) == 0.93 * calls


def test_added_rounds_are_gone_through_again_after_an_interruption(
    run: tuple[abi.ABIPosterior, Path], tmp_path: Path
) -> None:
    posterior, folder = run
    begun = tmp_path / "begun"
    shutil.copytree(folder, begun)
    (begun / "posterior.safetensors").unlink()
    rounds = sorted(begun.glob("round_*.safetensors"))
    assert len(rounds) == len(posterior.rounds) > 3
    for path in rounds[3:]:  # as many as were planned are done, and it is not at its end
        path.unlink()
    again = abi.resume(begun, PRIOR, simulate, progress=False)
    assert [r.simulator_calls for r in again.rounds] == [
        r.simulator_calls for r in posterior.rounds
    ]
    assert torch.equal(again.sample((20,)), posterior.sample((20,)))
