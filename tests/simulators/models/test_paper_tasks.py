"""The queue and the two Gaussian models: their laws, and references against other ways."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

import simulators
from simulators import MG1, GaussianLinear, MultimodalGaussian

NUM = 10_000


def weighted_moments(
    draws: np.ndarray, log_weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean (d,), variance (d,) and effective size of weighted draws (n, d)."""
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    mean = weights @ draws
    return mean, weights @ (draws - mean) ** 2, float(1.0 / (weights**2).sum())


def assert_moments_agree(
    samples: torch.Tensor, weighted: tuple[np.ndarray, np.ndarray, float], size: float
) -> None:
    """Means within 4.5 standard errors, ``size`` independent draws being behind the samples."""
    mean, variance, effective = weighted
    assert effective > 1_000.0
    found = samples.double().numpy()
    error = np.sqrt(variance * (1.0 / effective + 1.0 / size))
    assert np.abs((found.mean(axis=0) - mean) / error).max() < 4.5
    # Standard deviations within 5 errors at a kurtosis of 3.
    assert found.std(axis=0) == pytest.approx(
        np.sqrt(variance), rel=5.0 * math.sqrt(1.0 / effective + 1.0 / size)
    )


# -------------------------------------------------------------------------------- M/G/1 queue


def slow_queue(theta: np.ndarray, num: int, generator: np.random.Generator) -> np.ndarray:
    """The definition of the queue, customer by customer, (num, 50)."""
    shortest, width, rate = theta
    arrival = np.zeros(num)
    departure = np.zeros(num)
    gaps = []
    for _ in range(50):
        arrival = arrival + generator.exponential(1.0 / rate, num)
        service = generator.uniform(shortest, shortest + width, num)
        gap = np.maximum(arrival - departure, 0.0) + service
        departure = departure + gap
        gaps.append(gap)
    return np.stack(gaps, axis=1)


@pytest.mark.parametrize("theta", [(4.0, 3.0, 0.15), (1.0, 5.0, 0.3), (0.5, 0.2, 0.02)])
def test_the_queue_has_the_law_of_its_definition(theta: tuple[float, float, float]) -> None:
    slow = slow_queue(np.array(theta), NUM, np.random.default_rng(0))
    fast = MG1()(torch.tensor([theta]).repeat(NUM, 1), seed=1).double().numpy()
    for j in (0, 1, 10, 49):
        assert stats.ks_2samp(slow[:, j], fast[:, j]).pvalue > 1e-4
    assert stats.ks_2samp(slow.sum(axis=1), fast.sum(axis=1)).pvalue > 1e-4
    assert stats.ks_2samp(slow[:, 8] * slow[:, 9], fast[:, 8] * fast[:, 9]).pvalue > 1e-4


@pytest.mark.parametrize("prior_kind", ["width", "truncated"])
def test_the_queue_reference_agrees_with_importance_sampling_for_one_customer(
    prior_kind: str,
) -> None:
    task = MG1(1, prior_kind)  # type: ignore[arg-type]
    y = 8.0
    prior = simulators.sample_prior(task.prior, 1_000_000, 0).double().numpy()
    shortest, width, rate = prior.T
    # Y = U + V with U uniform and V exponential.
    below = -np.expm1(-rate * np.maximum(y - shortest, 0.0))
    above = -np.expm1(-rate * np.maximum(y - shortest - width, 0.0))
    with np.errstate(divide="ignore"):
        log_likelihood = np.log(below - above) - np.log(width)
    samples = task.reference_posterior(torch.tensor([y]), 2_000, seed=0)
    # Draws of a chain; 200 sweeps apart, at most one in four is lost to correlation.
    assert_moments_agree(samples, weighted_moments(prior, log_likelihood), 500.0)


def test_the_queue_reference_has_the_published_posterior_of_the_intermediate_data() -> None:
    task = MG1()
    samples = task.reference_posterior(task.observation, 2_000, seed=0)
    # Shestopaloff & Neal (2014), Table 4: (3.96, 2.99, 0.177), printed to these digits.
    assert samples.mean(dim=0).tolist() == pytest.approx([3.96, 2.98, 0.178], abs=0.012)
    assert samples.std(dim=0).tolist() == pytest.approx([0.077, 0.109, 0.026], rel=0.1)
    other = task.reference_posterior(task.observation, 2_000, seed=1)
    for j in range(3):
        assert stats.ks_2samp(samples[::4, j], other[::4, j]).pvalue > 1e-4


def test_a_queue_with_an_impossible_observation_is_refused_by_its_minimum() -> None:
    with pytest.raises(ValueError, match="minimum is -1"):
        MG1(3).reference_posterior(torch.tensor([1.0, -1.0, 2.0]), 10)


# ------------------------------------------------------------------------ multimodal Gaussian


def test_points_have_the_mean_covariance_and_normality_of_the_model() -> None:
    task = MultimodalGaussian()
    theta = torch.tensor([[0.7, -2.9, -1.0, -0.9, 0.6]])
    points = task(theta.repeat(NUM, 1), seed=0).double().numpy().reshape(NUM, 4, 2)
    r = math.tanh(0.6)
    root = np.linalg.cholesky(np.array([[1.0, r * 0.81], [r * 0.81, 0.81**2]]))
    z = (points - [0.7, -2.9]) @ np.linalg.inv(root).T
    for j in range(4):
        for side in (0, 1):
            assert stats.kstest(z[:, j, side], "norm").pvalue > 1e-4
    correlation = np.corrcoef(z.reshape(NUM, 8).T)
    assert np.abs(correlation - np.eye(8)).max() < 5.0 / NUM**0.5


def test_the_multimodal_reference_agrees_with_importance_sampling() -> None:
    task = MultimodalGaussian(2)
    # Two points far apart: a posterior broad enough for the prior to be a usable proposal.
    x_o = torch.tensor([1.5, -2.0, -0.5, 0.3])
    prior = simulators.sample_prior(task.prior, 1_000_000, 0).double().numpy()
    weighted = weighted_moments(np.abs(prior), task.log_likelihood(prior, x_o))
    samples = task.reference_posterior(x_o, 4_000, seed=0)
    # Particles share ancestors; half of them count.
    assert_moments_agree(samples.abs(), weighted, 2_000.0)
    for j in (2, 3):  # the signs are free
        assert stats.binomtest(int((samples[:, j] > 0).sum()), 4_000).pvalue > 1e-4


def test_a_scale_of_zero_has_no_likelihood_and_no_warning() -> None:
    task = MultimodalGaussian()
    theta = np.array([[0.7, -2.9, 0.0, -0.9, 0.6], [0.7, -2.9, -1.0, -0.9, 0.6]])
    assert np.isfinite(task.log_likelihood(theta, task.observation)).tolist() == [False, True]


def test_two_seeds_of_the_multimodal_reference_agree() -> None:
    task = MultimodalGaussian()
    first, second = (task.reference_posterior(task.observation, 2_000, seed=s) for s in (1, 2))
    for j in range(5):
        # Particles share ancestors: every fourth one.
        assert stats.ks_2samp(first[::4, j], second[::4, j]).pvalue > 1e-4


# --------------------------------------------------------------------------- Gaussian linear


def test_the_linear_model_adds_noise_of_its_variance() -> None:
    task = GaussianLinear(3, 2.0, 0.5)
    theta = torch.tensor([[1.0, -2.0, 0.0]])
    z = ((task(theta.repeat(NUM, 1), seed=0) - theta) / math.sqrt(0.5)).double().numpy()
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4
    assert np.abs(np.corrcoef(z.T) - np.eye(3)).max() < 5.0 / NUM**0.5


def test_the_warm_up_has_the_papers_posterior_and_the_draws_follow_it() -> None:
    task = GaussianLinear.warmup()
    mean, variance = task.posterior_moments(task.observation)
    assert float(mean) == pytest.approx(5.94, abs=0.005)
    assert variance == pytest.approx(0.95, abs=0.005)
    samples = task.reference_posterior(task.observation, NUM, seed=0)[:, 0].double().numpy()
    assert stats.kstest(samples, stats.norm(float(mean), math.sqrt(variance)).cdf).pvalue > 1e-4


def test_the_linear_reference_agrees_with_importance_sampling() -> None:
    task = GaussianLinear(2, 1.0, 0.7)
    x_o = torch.tensor([0.8, -1.5])
    prior = simulators.sample_prior(task.prior, 400_000, 0).double().numpy()
    log_likelihood = -0.5 * ((prior - x_o.numpy()) ** 2).sum(axis=1) / 0.7
    samples = task.reference_posterior(x_o, NUM, seed=0)
    assert_moments_agree(samples, weighted_moments(prior, log_likelihood), float(NUM))
