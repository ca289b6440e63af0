"""The cosine model and its exact posterior, against formulas and importance sampling."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

import simulators
from simulators import Cosine
from simulators.models.cosine.posterior import log_posterior

NUM = 4_000


def circular(phi: torch.Tensor) -> np.ndarray:
    """Cosine and sine of a phase, which know no seam, (n, 2)."""
    return torch.stack([phi.cos(), phi.sin()], dim=1).double().numpy()


def features(samples: torch.Tensor) -> np.ndarray:
    return np.concatenate([samples[:, [0, 2, 3]].double(), circular(samples[:, 1])], axis=1)


def test_values_have_the_mean_and_spread_of_the_formula() -> None:
    theta = torch.tensor([[0.037, 2.0, -0.5, 0.8]])
    x = Cosine()(theta.repeat(20_000, 1), seed=0).double().numpy()
    t = np.arange(1, 101)
    mean = math.exp(0.8) * np.cos(2 * np.pi * 0.037 * t + 2.0)
    z = (x - mean) / math.exp(-0.5)
    assert stats.kstest(z.ravel()[::7], "norm").pvalue > 1e-4
    # The largest of 100 means of standard deviation 20,000^-1/2; 5 of them are never reached.
    assert np.abs(z.mean(axis=0)).max() < 5.0 / 20_000**0.5
    assert np.abs(np.corrcoef(z[:, :10].T) - np.eye(10)).max() < 5.0 / 20_000**0.5


def test_a_long_series_keeps_its_phase() -> None:
    theta = torch.tensor([[0.1, 1.0, -30.0, 0.0]])
    x = Cosine(5_000)(theta, seed=0)[0].double().numpy()
    t = np.arange(1, 5_001)
    assert np.abs(x - np.cos(2 * np.pi * float(theta[0, 0]) * t + 1.0)).max() < 1e-6


def test_the_prior_density_is_that_of_the_prior() -> None:
    prior = Cosine().prior
    theta = simulators.sample_prior(prior, 1_000, 0)
    uniform = -math.log(0.1 * 2.0 * math.pi)
    expected = uniform + torch.distributions.Normal(0.0, 1.0).log_prob(theta[:, 2:]).sum(dim=1)
    assert torch.allclose(prior.log_prob(theta), expected, atol=1e-5)  # type: ignore[attr-defined]
    outside = torch.tensor([[0.11, 1.0, 0.0, 0.0], [0.05, -0.1, 0.0, 0.0]])
    assert torch.isinf(prior.log_prob(outside)).all()  # type: ignore[attr-defined]


@pytest.mark.parametrize("num_steps", [1, 2, 5, 20])
def test_the_reference_agrees_with_importance_sampling_from_the_prior(num_steps: int) -> None:
    task = Cosine(num_steps)
    x_o = task(torch.tensor([[0.06, 5.9, 0.3, 0.4]]), seed=1)[0]
    prior = simulators.sample_prior(task.prior, 1_000_000, 2)
    likelihood = log_posterior(x_o.double().numpy(), prior.double().numpy())
    likelihood += 0.5 * (prior[:, 2:].double().numpy() ** 2).sum(axis=1)  # the prior is the draw
    weights = np.exp(likelihood - likelihood.max())
    weights /= weights.sum()
    size = 1.0 / (weights**2).sum()
    assert size > 500.0

    weighted, exact = features(prior), features(task.reference_posterior(x_o, NUM, seed=3))
    mean = weights @ weighted
    variance = weights @ (weighted - mean) ** 2
    z = (exact.mean(axis=0) - mean) / np.sqrt(variance * (1.0 / size + 1.0 / NUM))
    assert np.abs(z).max() < 4.5
    # Variances: 5 standard deviations, allowing for a kurtosis of up to 10.
    ratio = exact.var(axis=0) / variance
    assert np.abs(ratio - 1.0).max() < 5.0 * math.sqrt(9.0 * (1.0 / size + 1.0 / NUM))


def test_the_reference_agrees_with_quadrature_at_the_default_observation() -> None:
    task = Cosine()
    y = task.observation.double().numpy()
    samples = task.reference_posterior(task.observation, NUM, seed=0).double().numpy()
    # A grid around the only peak; elsewhere the density is below e^-20 of it.
    axes = [np.linspace(*limits, 33) for limits in zip(
        samples.min(axis=0) - 0.4 * samples.std(axis=0),
        samples.max(axis=0) + 0.4 * samples.std(axis=0), strict=True)]  # fmt: skip
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 4)
    value = np.concatenate([log_posterior(y, part) for part in np.array_split(grid, 50)])
    mass = np.exp(value - value.max()).reshape(33, 33, 33, 33)
    for j, axis in enumerate(axes):
        marginal = mass.sum(axis=tuple(k for k in range(4) if k != j))
        marginal /= marginal.sum()
        mean = (marginal * axis).sum()
        sd = math.sqrt((marginal * (axis - mean) ** 2).sum())
        assert abs(samples[:, j].mean() - mean) < 4.5 * sd / NUM**0.5
        assert samples[:, j].std() / sd == pytest.approx(1.0, abs=5.0 / (2.0 * NUM) ** 0.5)


@pytest.mark.parametrize(
    "theta",
    [
        [0.05, 1.0, -3.0, 3.0],  # a frequency known to two millionths
        [0.0005, 1.0, -2.0, 2.0],  # a twentieth of a period: a curved ridge
        [0.07, 6.2, 1.5, -2.0],  # nearly no signal: frequencies all over the prior
        [0.0999, 0.01, 0.0, 1.0],  # at the edge of the prior and at the seam of the phase
    ],
)
def test_two_seeds_agree_for_any_observation(theta: list[float]) -> None:
    task = Cosine()
    x_o = task(torch.tensor([theta]), seed=4)[0]
    first, second = (task.reference_posterior(x_o, NUM, seed=seed) for seed in (1, 2))
    for left, right in zip(features(first).T, features(second).T, strict=True):
        assert stats.ks_2samp(left, right).pvalue > 1e-4
    assert not torch.isin(first[:, 0].unique(), second[:, 0].unique()).all()


def test_the_reference_is_calibrated_over_the_prior() -> None:
    # Ranks of true parameters among exact posterior draws are uniform.
    task = Cosine(12)
    theta, x = simulators.sample_joint(task, 50, seed=6)
    ranks = np.stack(
        [
            (task.reference_posterior(x_o, 99, seed=i) < true).sum(dim=0).numpy()
            for i, (true, x_o) in enumerate(zip(theta, x, strict=True))
        ]
    )
    for j in range(4):
        assert stats.kstest((ranks[:, j] + 0.5) / 100.0, "uniform").pvalue > 1e-4


def test_a_silent_series_has_a_posterior_too() -> None:
    samples = Cosine(6).reference_posterior(torch.zeros(6), 200, seed=0)
    assert torch.isfinite(samples).all()
    assert samples[:, 2].max() < 0.0
