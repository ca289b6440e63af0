"""ARS draws the exact conditional law, shows its bias, and keeps its budget."""

from __future__ import annotations

import math

import pytest
import torch
from scipy import stats
from torch import Tensor

from abi.rounds.rejection import acceptance_tolerance, approximate_rejection
from simulators import GaussianLinear, simulate
from simulators.random import child_seed, torch_generator

MODEL = GaussianLinear(1, 1.0, 1.0)


def propose(count: int, key: int) -> Tensor:
    return torch.randn(count, 1, generator=torch_generator(child_seed(1, key)))


def run(tolerance: float, retries: int, calls: int, proposals: int | None = None, seed: int = 2):
    return approximate_rejection(
        propose,
        lambda theta, key: simulate(MODEL, theta, seed=child_seed(seed, key)),
        lambda x: x[:, 0].abs(),
        tolerance,
        max_retries=retries,
        num_calls=calls,
        num_proposals=proposals,
    )


def test_accepted_pairs_follow_the_exact_conditional_law() -> None:
    """theta ~ N(0, 1) unchanged, and X | theta ~ N(theta, 1) cut to [-0.5, 0.5]."""
    pairs = run(tolerance=0.5, retries=4_000, calls=200_000, proposals=2_000)
    assert pairs.num_dropped == 0
    theta, x = pairs.theta[:, 0].double().numpy(), pairs.x[:, 0].double().numpy()
    low, high = stats.norm.cdf(-0.5, loc=theta), stats.norm.cdf(0.5, loc=theta)
    uniform = (stats.norm.cdf(x, loc=theta) - low) / (high - low)
    assert stats.kstest(uniform, "uniform").pvalue > 0.01
    assert stats.kstest(theta, "norm").pvalue > 0.01
    # Rank correlation between what should be independent.
    assert stats.spearmanr(theta, uniform).pvalue > 0.01


@pytest.mark.parametrize("retries", [1, 3, 10])
def test_a_small_retry_budget_weighs_theta_by_its_chance_of_acceptance(retries: int) -> None:
    """Dropping leaves theta with weight 1 - (1 - P_theta(A))^R (Theorem 2.2), and says so."""
    pairs = run(tolerance=0.5, retries=retries, calls=60_000, proposals=5_000)
    grid = torch.linspace(-6, 6, 4001).double().numpy()
    accept = stats.norm.cdf(0.5, loc=grid) - stats.norm.cdf(-0.5, loc=grid)
    kept = 1.0 - (1.0 - accept) ** retries
    density = stats.norm.pdf(grid)
    kept_share = float((kept * density).sum() / density.sum())
    variance = float((kept * density * grid**2).sum() / (kept * density).sum())
    share = len(pairs.theta) / pairs.num_proposed
    error = math.sqrt(kept_share * (1 - kept_share) / pairs.num_proposed)
    assert share == pytest.approx(kept_share, abs=4 * error)
    assert pairs.dropped_fraction == pytest.approx(1.0 - share)
    # The bias: theta is narrower than its law N(0, 1). sd of a variance is about v sqrt(2 / n).
    error = variance * math.sqrt(2.0 / len(pairs.theta))
    assert float(pairs.theta.var()) == pytest.approx(variance, abs=4 * error)
    assert variance < 0.97


@pytest.mark.parametrize("calls", [100, 137, 5_000])
@pytest.mark.parametrize("retries", [1, 7, 100])
def test_the_budget_of_calls_is_never_exceeded(calls: int, retries: int) -> None:
    counted = []

    def counting(theta: Tensor, key: int):  # type: ignore[no-untyped-def]
        counted.append(len(theta))
        return simulate(MODEL, theta, seed=child_seed(2, key))

    pairs = approximate_rejection(
        propose, counting, lambda x: x[:, 0].abs(), 0.3, max_retries=retries, num_calls=calls
    )
    assert sum(counted) == pairs.num_calls <= calls
    assert calls - pairs.num_calls < retries  # what is left could not have paid for one theta


def test_the_budget_does_not_decide_which_theta_survive() -> None:
    """Every theta begun gets its R calls: the kept share is that of an unlimited budget."""
    kept_share = []
    for calls in (300, 30_000):
        pairs = [run(0.5, 20, calls, seed=seed) for seed in range(30 if calls == 300 else 1)]
        kept = sum(len(p.theta) for p in pairs)
        proposed = sum(p.num_proposed for p in pairs)
        kept_share.append((kept / proposed, proposed))
    (small, n_small), (large, n_large) = kept_share
    error = math.sqrt(large * (1 - large) * (1 / n_small + 1 / n_large))
    assert small == pytest.approx(large, abs=4 * error)


def test_an_infinite_tolerance_takes_one_call_a_pair() -> None:
    pairs = run(math.inf, 10, 500)
    assert len(pairs.theta) == pairs.num_calls == pairs.num_proposed == 500


def test_failed_simulations_cost_their_call_and_are_counted() -> None:
    def fragile(theta: Tensor) -> Tensor:
        x = theta.clone()
        x[theta[:, 0] > 1.0] = torch.nan
        return x

    pairs = approximate_rejection(
        propose,
        lambda theta, key: simulate(fragile, theta, seed=key),
        lambda x: torch.zeros(len(x)),
        math.inf,
        max_retries=5,
        num_calls=1_000,
    )
    assert pairs.num_calls == 1_000
    assert len(pairs.failures) == pairs.num_dropped > 50
    assert (pairs.theta <= 1.0).all()


def test_pairs_belong_together() -> None:
    pairs = approximate_rejection(
        propose,
        lambda theta, key: simulate(lambda t: t + 0.01 * torch.rand(len(t), 1), theta, seed=key),
        lambda x: torch.rand(len(x), generator=torch_generator(len(x))),
        0.4,
        max_retries=6,
        num_calls=3_000,
    )
    assert (pairs.x - pairs.theta).abs().max() < 0.011


def test_the_tolerance_is_the_alpha_quantile_of_the_scores_within_the_last() -> None:
    scores = torch.arange(1.0, 101.0)
    assert acceptance_tolerance(scores, math.inf, 0.1, 2) == 10.0
    assert acceptance_tolerance(scores, 50.0, 0.1, 2) == 5.0
    assert acceptance_tolerance(scores, 50.0, 0.1, 20) == 20.0
    assert acceptance_tolerance(scores, 50.0, 0.1, 1_000) == 50.0
    for previous in (0.5, 1.0):  # none within, or one: all are candidates
        assert acceptance_tolerance(scores, previous, 0.1, 2) == 10.0
    assert acceptance_tolerance(scores, 2.0, 0.1, 2) == 2.0
