"""Exact posteriors against known answers and against importance sampling."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from simulators import MG1, GaussianLinear, MultimodalGaussian


@pytest.mark.parametrize("prior_kind", ["width", "truncated"])
def test_the_queues_posterior_is_the_published_one(prior_kind: str) -> None:
    """On the Intermediate data both priors agree: theta_1 + width is far below 10."""
    task = MG1(prior_kind=prior_kind)  # type: ignore[arg-type]
    draws = task.reference_posterior(task.observation, 8_000)
    mean, sd = torch.tensor([3.966, 2.984, 0.179]), torch.tensor([0.077, 0.109, 0.026])
    # 8,000 nearly independent draws know a mean to 0.011 sd and a sd to 0.8%; the published
    # figures have three digits.
    assert ((draws.mean(dim=0) - mean).abs() < 4 * sd / 8_000**0.5 + 0.0015).all()
    torch.testing.assert_close(draws.std(dim=0), sd, rtol=0.04, atol=5e-4)


@pytest.mark.parametrize("theta", [(1.0, 0.5, 0.3), (0.5, 8.0, 0.05), (8.0, 1.0, 0.12)])
def test_the_queues_chains_agree_on_other_observations(theta: tuple[float, ...]) -> None:
    task = MG1()
    x_o = task(torch.tensor([theta]), seed=3)[0]
    draws = task.reference_posterior(x_o, 8_000, seed=1).double()
    chains = draws.reshape(2_000, 4, 3)
    between = chains.mean(dim=0).var(dim=0) * 2_000
    within = chains.var(dim=0).mean(dim=0)
    r_hat = ((1999 / 2000 * within + between / 2_000) / within).sqrt()
    assert (r_hat < 1.02).all()
    assert (draws[:, 0] < x_o.min()).all()
    assert (draws[:, 2] < 1 / 3).all()


def test_the_queues_posterior_is_calibrated() -> None:
    """Ranks of the true parameters among exact draws are uniform (Talts et al. 2018)."""
    task = MG1(num_customers=8)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theta = task.prior.sample((150,))
    x = task(theta, seed=1)
    ranks = np.array(
        [
            (task.reference_posterior(x_o, 99, seed=i) < truth).sum(dim=0).tolist()
            for i, (truth, x_o) in enumerate(zip(theta, x, strict=True))
        ]
    )
    generator = np.random.default_rng(2)
    for column in ranks.T:
        smooth = (column + generator.uniform(size=len(column))) / 100
        assert stats.kstest(smooth, "uniform").pvalue > 0.001


@pytest.mark.parametrize("seed", [0, 1])
def test_the_multimodal_gaussian_agrees_with_importance_sampling(seed: int) -> None:
    task = MultimodalGaussian()
    x_o = task.observation if seed == 0 else task(task.true_theta[None] * 0.8, seed)[0]
    draws = task.reference_posterior(x_o, 10_000, seed).double()
    generator = np.random.default_rng(seed)
    proposal = generator.uniform(-3, 3, size=(2_000_000, 5))
    log_weight = task.log_likelihood(proposal, x_o)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    effective = 1.0 / (weight**2).sum()
    values = np.abs(proposal)  # the signs of theta_3, theta_4 are symmetric by construction
    mean = (weight[:, None] * values).sum(axis=0)
    sd = np.sqrt((weight[:, None] * (values - mean) ** 2).sum(axis=0))
    # Particles share ancestors: count a tenth of them as independent.
    error = sd * math.sqrt(1 / effective + 1 / 1_000)
    assert (np.abs(draws.abs().mean(dim=0).numpy() - mean) < 4 * error).all()


def test_the_signs_of_the_scales_are_fair() -> None:
    task = MultimodalGaussian()
    draws = task.reference_posterior(task.observation, 10_000)
    quadrant = 2 * (draws[:, 2] > 0).long() + (draws[:, 3] > 0).long()
    shares = quadrant.bincount(minlength=4) / len(draws)
    torch.testing.assert_close(shares, torch.full((4,), 0.25), atol=0.02, rtol=0.0)


def test_the_warm_up_is_that_of_appendix_c1() -> None:
    task = GaussianLinear.warmup()
    mean, variance = task.posterior_moments(task.observation)
    assert float(mean) == pytest.approx(5.943, abs=1e-3)
    assert variance == pytest.approx(0.952, abs=1e-3)
    draws = task.reference_posterior(task.observation, 40_000)
    assert float(draws.mean()) == pytest.approx(5.943, abs=4 * 0.976 / 200)
    assert float(draws.var()) == pytest.approx(0.952, abs=4 * 0.952 * math.sqrt(2 / 40_000))


def test_impossible_observations_are_refused() -> None:
    with pytest.raises(ValueError, match="`x_o` must hold positive interdeparture times"):
        MG1(num_customers=3).reference_posterior(torch.tensor([1.0, -1.0, 2.0]), 10)
    with pytest.raises(ValueError, match=r"`x_o` must have as many values .* simulations of 8"):
        MultimodalGaussian().reference_posterior(torch.zeros(3), 10)
    with pytest.raises(ValueError, match="2 of its 3 values are NaN"):
        MG1(num_customers=3).reference_posterior(torch.tensor([1.0, torch.nan, torch.inf]), 10)
