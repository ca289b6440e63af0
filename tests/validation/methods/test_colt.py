"""CoLT, the score-rank test and local HPD: levels, power, and where they point."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from one_look import SD, TASK, exact, prior, wrong_for_positive_x
from torch import Tensor
from torch.distributions import Normal

from simulators import sample_joint
from simulators.random import isolated_rng
from validation import (
    ColtTraining,
    TrainedColt,
    Training,
    WholeTest,
    as_posterior,
    colt,
    colt_identity,
    local_hpd,
    localize,
    score_rank,
    validate,
)
from validation.methods.localization import framed_draws
from validation.methods.score_ranks import _in_frame
from validation.perturbations import nptbench
from validation.posteriors import draws
from validation.posteriors.draws import JointDraws
from validation.scores.ball_ranks import soft_ranks
from validation.scores.divergences import sinkhorn_to_uniform, wasserstein_to_uniform
from validation.scores.frames import frame_of

BALLS = ColtTraining(hidden=(16,), epochs=10, learning_rate=1e-2, draws_per_epoch=10)
QUICK = Training(hidden=(8,), max_epochs=8, learning_rate=1e-2, batch_size=50)
RUNS: dict[str, Callable[..., Any]] = {
    "colt": partial(colt, num_samples=20, training=BALLS),
    "colt_identity": partial(colt, embedding="identity", num_samples=20, training=BALLS),
    "score_rank": partial(score_rank, num_samples=20, training=QUICK, num_nulls=199),
    "local_hpd": partial(local_hpd, num_samples=20, training=QUICK, num_nulls=19, num_x_o=3),
}


@pytest.mark.parametrize("name", RUNS)
def test_tests_hold_their_level(name: str) -> None:
    rejected = 0
    for seed in range(100):
        theta, x = sample_joint(TASK, 60, seed)
        rejected += RUNS[name](exact, theta, x, seed=seed).reject()
    # Binomial(100, 0.05): P(more than 13) = 0.0005.
    assert rejected <= 13


@pytest.mark.parametrize("embedding", ["full", "residual", "identity"])
@pytest.mark.parametrize("divergence", ["wasserstein", "sinkhorn"])
def test_colt_sees_the_prior_that_rank_tests_pass(embedding: str, divergence: str) -> None:
    theta, x = sample_joint(TASK, 400, 0)
    epochs = 30 if divergence == "sinkhorn" else 150
    training = ColtTraining((64, 64), 1e-3, epochs, divergence=divergence)
    result = colt(prior, theta, x, embedding=embedding, num_samples=100, training=training)
    assert result.reject(0.001)


def test_a_residual_embedding_starts_as_the_identity() -> None:
    theta, x = sample_joint(TASK, 100, 3)
    untrained = ColtTraining((8,), learning_rate=1e-30, epochs=1)  # no weight feels that
    ranks = {
        embedding: colt(
            exact, theta, x, embedding=embedding, num_samples=50, training=untrained
        ).details["ranks"]
        for embedding in ("full", "residual", "identity")
    }
    assert torch.equal(ranks["residual"], ranks["identity"])
    assert not torch.equal(ranks["full"], ranks["identity"])


def test_whitening_makes_an_inflated_covariance_visible_and_is_optional() -> None:
    theta, x = sample_joint(TASK, 400, 1)
    q = lambda num, x: x / 2 + 1.5 * SD * torch.randn(num, *x.shape)  # noqa: E731
    for whiten in (True, False):
        training = ColtTraining(hidden=(16,), epochs=20, whiten=whiten)
        assert colt(q, theta, x, embedding="identity", training=training).reject(0.01)


def test_localize_points_to_the_ball_where_the_posterior_has_too_much_mass() -> None:
    theta, x = sample_joint(TASK, 600, 2)
    training = ColtTraining(hidden=(64, 64), epochs=200, learning_rate=1e-3)
    result = colt(
        wrong_for_positive_x, theta, x, embedding="identity", num_samples=100, training=training
    )
    found = localize(result, torch.tensor([2.0, 0.0]))
    assert found.point.shape == (2,)
    inside = found.distances <= found.radius
    # The radius is the q_mass-quantile of the 100 draws' distances.
    assert abs(float(inside.float().mean()) - found.q_mass) <= 0.02
    assert abs(found.p_mass - found.q_mass) == pytest.approx(result.statistic, abs=1e-6)
    again = localize(result, torch.tensor([2.0, 0.0]))
    assert torch.equal(found.samples, again.samples)
    with pytest.raises(ValueError, match="'score_rank' has no localization"):
        localize(score_rank(exact, theta, x, training=QUICK), x[0])


def test_local_score_ranks_tell_good_observations_from_bad() -> None:
    theta, x = sample_joint(TASK, 1_000, 3)
    x_o = torch.tensor([[1.5, 0.0], [-1.5, 0.0]])
    # Ten neighbours reach 0.3 deviations of x_1; the border between right and wrong is 1.1 away.
    details = score_rank(wrong_for_positive_x, theta, x, x_o=x_o, num_neighbours=10).details
    assert details["p_values_adjusted"][0] < 0.01 < 0.05 < details["p_values_adjusted"][1]


def test_score_ranks_see_a_wrong_width_in_the_frame_of_the_candidates() -> None:
    """One q is too wide by a half at every x, alike everywhere in units of its own moments."""
    wide = nptbench("covariance").at(0.5)
    power = {}
    for whiten in (False, True):
        trial = WholeTest("score_rank", {"whiten": whiten, "num_samples": 50})
        p_values = trial.p_values(wide, 200, 12, seed=3)
        power[whiten] = sum(p <= 0.05 for p in p_values)
    assert power[True] >= power[False] + 4


def test_the_frame_of_the_candidates_takes_away_place_and_scale_and_treats_all_alike() -> None:
    generator = torch.Generator().manual_seed(0)
    theta, samples = (torch.randn(*shape, generator=generator) for shape in ((30, 2), (40, 30, 2)))
    x = torch.randn(30, 1, generator=generator)
    seen = _in_frame(JointDraws(theta, x, samples))
    assert seen.theta.shape == (30, 3)
    assert seen.samples.shape == (40, 30, 3)

    def moved(values: Tensor) -> Tensor:
        return values * torch.tensor([3.0, 0.2]) + 5 * x.sin()

    again = _in_frame(JointDraws(moved(theta), x, moved(samples)))
    assert torch.allclose(again.samples, seen.samples, atol=1e-3)
    # The truth and a draw change places: so do their columns, and nothing else changes.
    swapped = torch.cat([theta[None], samples[1:]])
    other = _in_frame(JointDraws(samples[0], x, swapped))
    assert torch.allclose(other.theta, seen.samples[0], atol=1e-4)
    assert torch.allclose(other.samples[1:], seen.samples[1:], atol=1e-4)


def test_few_candidates_are_scaled_parameter_by_parameter() -> None:
    """The corners of a cube lie equally far from its centre: all of them are in the core."""
    corners = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * 3)
    generator = torch.Generator().manual_seed(0)
    scale, place = torch.rand(20, 3, generator=generator), torch.randn(20, 3, generator=generator)
    samples = place + scale * corners[:, None]
    frame = frame_of(samples, correlated=False)
    assert torch.allclose(frame.mean, place, atol=1e-5)
    assert torch.allclose(frame.factor, torch.diag_embed(samples.std(dim=0)), atol=1e-5)


def test_local_coverage_sees_overconfidence_and_leaves_the_levels_alone() -> None:
    theta, x = sample_joint(TASK, 600, 4)
    q, here = as_posterior(lambda x: Normal(x / 2, 0.4)), torch.zeros(2)
    result = local_hpd(q, theta, x, here, num_samples=100, num_nulls=39, training=QUICK)
    assert result.reject(0.05)
    # Overconfident: the truth lies further out than q's draws, its rank is low too often.
    assert bool((result.details["coverage"][0] > result.details["levels"])[:6].all())
    with pytest.raises(ValueError, match=r"2 finite values an observation; got shape \(3,\)"):
        local_hpd(exact, theta, x, torch.zeros(3), num_samples=20)


def test_divergences_vanish_for_uniform_ranks_only() -> None:
    uniform = (torch.arange(100) + 0.5) / 100
    for measure in (wasserstein_to_uniform, sinkhorn_to_uniform):
        assert float(measure(uniform)) == pytest.approx(0.0, abs=1e-6)
        assert float(measure(uniform.square())) > 1e-3


def test_wasserstein_to_uniform_has_its_closed_form() -> None:
    # Against u^2: integral of (u - u^2)^2 = 1/30.
    squared = ((torch.arange(10_000) + 0.5) / 10_000).square()
    assert float(wasserstein_to_uniform(squared)) == pytest.approx(1 / 30, rel=1e-3)


def test_soft_ranks_are_hard_forward_and_differentiable_backward() -> None:
    distances = torch.tensor([[1.0], [0.5], [2.0], [0.9]], requires_grad=True)
    ranks = soft_ranks(distances, 0.1)
    assert float(ranks.detach()) == pytest.approx(2 / 3)
    ranks.sum().backward()
    assert float(distances.grad[0]) > 0.0


def test_a_frame_whitens_and_restores_even_a_degenerate_posterior() -> None:
    generator = torch.Generator().manual_seed(0)
    # Of a uniform law, whose tails are short, all draws are in the core: its moments are theirs.
    samples = torch.rand(500, 4, 3, generator=generator) * torch.tensor([1.0, 1e3, 0.0]) + 5.0
    frame = frame_of(samples)
    white = frame.whitened(samples)
    assert bool(torch.isfinite(white).all())
    for place in range(4):
        # Less the ridge.
        assert torch.allclose(white[:, place, :2].T.cov(), torch.eye(2), atol=2e-3)
    # float32 at a scale of 1e3.
    assert torch.allclose(frame.restored(white[0]), samples[0], atol=1e-2)


@pytest.mark.parametrize("share", [0.1, 0.3])
def test_a_frame_is_that_of_the_core_whatever_lies_far_from_it(share: float) -> None:
    generator = torch.Generator().manual_seed(1)
    factor = torch.tensor([[2.0, 0.0], [1.5, 0.5]])
    core = torch.randn(400, 20, 2, generator=generator) @ factor.T
    far = core.clone()
    far[: round(share * 400)] += torch.tensor([30.0, -30.0])
    alone, beside = frame_of(core[round(share * 400) :]), frame_of(far)
    assert torch.allclose(beside.mean, alone.mean, atol=0.2)
    # All of q's spread is 30: the core's is found to a fifth, whether its tails are in it or not.
    assert torch.allclose(beside.factor, alone.factor, rtol=0.2, atol=0.1)


def test_a_frame_follows_scale_and_place() -> None:
    samples = torch.randn(60, 5, 3, generator=torch.Generator().manual_seed(2)) ** 3
    moved = samples * torch.tensor([100.0, 0.01, 3.0]) + 7.0
    first, second = frame_of(samples).whitened(samples), frame_of(moved).whitened(moved)
    assert torch.allclose(first.abs(), second.abs(), atol=1e-2)


def test_colt_sees_a_mode_that_is_in_the_moments_of_q() -> None:
    """A fifth of q's mass lies in a mode too many; ten parameters, 100 pairs to test."""
    failure = nptbench("additional_mode", 10, 10).at(0.2)
    training = ColtTraining(hidden=(32,), learning_rate=1e-4, epochs=100)
    test = TrainedColt("identity", num_samples=100, training=training)
    p_values = test.p_values(failure, 100, 10, seed=0)
    # Moments of all of q: 3 of 10.
    assert sum(p <= 0.05 for p in p_values) >= 8


@pytest.mark.parametrize("name", ["colt", "colt_identity", "score_rank"])
def test_one_draw_ties_and_constant_columns_give_valid_p_values(name: str) -> None:
    theta, x = torch.zeros(60, 2), torch.zeros(60, 1)
    for num_samples in (1, 5):
        keywords = {"num_train_draws": 1} if name == "score_rank" else {}
        result = RUNS[name](
            lambda num, x: torch.zeros(num, len(x), 2),
            theta,
            x,
            **({"num_samples": num_samples} | keywords),
        )
        assert 1e-4 < result.p_value <= 1.0


def test_validate_shares_draws_and_adjusts_p_values() -> None:
    calls = []

    def counted(num_samples: int, x: Tensor) -> Tensor:
        calls.append(len(x))
        return prior(num_samples, x)

    theta, x = sample_joint(TASK, 600, 6)
    names = ["sbc", "tarp", "c2st", "conformal_c2st", "score_rank"]
    report = validate(counted, theta, x, names, seed=1)
    assert calls == [600]
    assert [result.method for result in report.results] == names
    assert {"c2st", "conformal_c2st", "score_rank"} <= set(report.rejected)
    assert all(
        adjusted >= result.p_value
        for adjusted, result in zip(report.adjusted, report.results, strict=True)
    )
    assert "not from a paper" in str(report.to_dict())


def test_draws_of_a_frame_are_not_made_at_pairs_that_colt_has_no_memory_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(draws, "_MOST_AT_ONCE", 30 * 70 * 2)  # of 30 pairs: K, and the frame's 50
    asked = []

    def counted(num_samples: int, x: Tensor) -> Tensor:
        asked.append((num_samples, len(x)))
        return exact(num_samples, x)

    theta, x = sample_joint(TASK, 60, seed=0)
    run = partial(validate, as_posterior(counted), num_samples=20, controls=True)
    report = run(theta, x, ["sbc", "colt_identity"])
    assert set(asked) == {(20, 60), (70, 30)}
    found = report.results[1]
    assert found.details["num_train"] + found.details["num_test"] == 30
    assert set(report.controls) == {"prior", "wide"}


def test_validate_names_the_tests_it_could_not_run_and_refuses_unknown_ones() -> None:
    theta, x = sample_joint(TASK, 12, 7)
    report = validate(exact, theta, x, "all", num_samples=20)
    assert "at least 20 pairs" in report.skipped["c2st"]
    assert {result.method for result in report.results} >= {"sbc", "tarp", "hpd"}
    with pytest.raises(ValueError, match=r"out of panel, sbc, .*; got \['magic'\]"):
        validate(exact, theta, x, ["sbc", "magic"])
    with pytest.raises(ValueError, match="at least 20 pairs"):
        validate(exact, theta, x, ["c2st"])


def test_validate_takes_stored_samples_and_observations() -> None:
    theta, x = sample_joint(TASK, 60, 8)
    with isolated_rng(0):
        q = as_posterior((theta, x, exact(120, x)), layout="samples_first")
    report = validate(q, theta, x, ["sbc", "colt_identity", "lc2st"], num_samples=100)
    assert len(report.results) == 3
    report = validate(exact, theta, x, ["score_rank", "local_hpd"], x_o=torch.zeros(2))
    assert torch.equal(report.results[1].details["x_o"], torch.zeros(1, 2))


def two_bits(num_samples: int, x: Tensor) -> Tensor:
    return torch.randint(0, 2, (num_samples, len(x), 2)).float()


def test_draws_of_a_discrete_theta_that_are_the_truth_stay_ties() -> None:
    """Rounded apart once whitened, p = q was rejected up to 0.85 of the time."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2_000, 2, generator=generator)
    theta = torch.randint(0, 2, (2_000, 2), generator=generator).float()
    draws, _ = framed_draws(as_posterior(two_bits), theta, x, 100, BALLS, 0)
    share = (draws.samples == draws.theta).all(dim=-1).float().mean()
    assert abs(float(share) - 0.25) < 5 * (0.25 * 0.75 / 200_000) ** 0.5
    for run in (colt, colt_identity):
        assert not run(two_bits, theta, x, num_samples=100, training=BALLS, seed=1).reject(0.01)
