"""Two moons, mixtures, uniform priors and the GLM: their laws and their exact posteriors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from importance_sampling import assert_moments_of_importance_sampling
from scipy import stats

import simulators
from simulators import BernoulliGLM, GaussianLinearUniform, GaussianMixture, TwoMoons
from simulators.models.bernoulli_glm import design_matrix, prior_precision

NUM = 10_000


def grid_posterior(
    log_density: object, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Two axes (1001,) and the normalised posterior (1001, 1001) on a box of two dimensions."""
    axes = [np.linspace(low[j], high[j], 1_001) for j in (0, 1)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    value = log_density(points).reshape(1_001, 1_001)  # type: ignore[operator]
    mass = np.exp(value - value.max())
    return axes[0], axes[1], mass / mass.sum()


def assert_marginals_agree(samples: np.ndarray, first: np.ndarray, second: np.ndarray,
                           mass: np.ndarray) -> None:  # fmt: skip
    for j, axis in enumerate((first, second)):
        cumulative = mass.sum(axis=1 - j).cumsum()
        distance = stats.kstest(
            samples[:, j], lambda t, a=axis, c=cumulative: np.interp(t, a, c)
        ).statistic
        # Kolmogorov: P(D > 2.3 / sqrt(n)) = 5e-5; a thousandth is the grid's own error.
        assert distance < 2.3 / len(samples) ** 0.5 + 1e-3


# ---------------------------------------------------------------------------------- two moons


def test_two_moons_is_a_half_circle_with_a_normal_radius() -> None:
    theta = torch.tensor([[0.3, -0.5]])
    x = TwoMoons()(theta.repeat(NUM, 1), seed=0).double().numpy()
    p = x - np.array([-abs(0.3 - 0.5), -0.3 - 0.5]) / math.sqrt(2.0) - np.array([0.25, 0.0])
    radius, angle = np.hypot(*p.T), np.arctan2(p[:, 1], p[:, 0])
    assert stats.kstest((radius - 0.1) / 0.01, "norm").pvalue > 1e-4
    assert stats.kstest(angle / math.pi + 0.5, "uniform").pvalue > 1e-4
    assert abs(np.corrcoef(radius, angle)[0, 1]) < 4.5 / NUM**0.5


def test_two_moons_likelihood_integrates_to_one() -> None:
    theta = np.array([[0.2, 0.4]])
    axis = np.linspace(-0.15, 0.15, 901)
    centre = np.array([0.25 - 0.6 / math.sqrt(2.0), 0.2 / math.sqrt(2.0)])
    task = TwoMoons()
    total = sum(
        math.exp(task.log_likelihood(theta, torch.from_numpy(centre + np.array([a, b])))[0])
        for a in axis[::9]
        for b in axis[::9]
    )
    # Cells of a third of the crescent's width; the sum over them is good to a percent.
    assert total * (axis[9] - axis[0]) ** 2 == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    "x_o", [(0.0, 0.0), (-0.7, 0.5), (0.3, -0.9), (0.33, 0.05), (-0.6, -0.45), (0.9, 0.1)]
)
def test_two_moons_reference_is_the_posterior_of_a_grid(x_o: tuple[float, float]) -> None:
    task, observation = TwoMoons(), torch.tensor(x_o)
    samples = task.reference_posterior(observation, NUM, seed=0).double().numpy()
    margin = 0.2 * samples.std(axis=0)
    grid = grid_posterior(
        lambda theta: task.log_likelihood(theta, observation),
        np.maximum(samples.min(axis=0) - margin, -1.0),
        np.minimum(samples.max(axis=0) + margin, 1.0),
    )
    assert_marginals_agree(samples, *grid)


def test_two_moons_says_that_an_observation_is_out_of_reach() -> None:
    with pytest.raises(ValueError, match="can arise from the model"):
        TwoMoons().reference_posterior(torch.tensor([-5.0, 0.0]), 10)


# --------------------------------------------------------------------------- Gaussian mixture


def test_mixture_draws_have_the_law_of_the_mixture() -> None:
    x = GaussianMixture()(torch.tensor([[1.0, -2.0]]).repeat(NUM, 1), seed=0).double().numpy()
    for j, mean in enumerate((1.0, -2.0)):
        z = x[:, j] - mean
        assert (
            stats.kstest(z, lambda t: 0.5 * (stats.norm.cdf(t) + stats.norm.cdf(t / 0.1))).pvalue
            > 1e-4
        )
    # Both coordinates share their component: their squares correlate, they do not.
    z = x - [1.0, -2.0]
    assert abs(np.corrcoef(z.T)[0, 1]) < 4.5 / NUM**0.5
    assert np.corrcoef(z[:, 0] ** 2, z[:, 1] ** 2)[0, 1] > 0.1


@pytest.mark.parametrize("x_o", [(2.0, -4.0), (9.9, 0.0), (-10.2, 10.1), (13.0, 0.0)])
def test_mixture_reference_is_the_posterior_of_a_grid(x_o: tuple[float, float]) -> None:
    x = np.array(x_o, dtype=np.float32).astype(np.float64)

    def log_density(theta: np.ndarray) -> np.ndarray:
        squares = ((theta - x) ** 2).sum(axis=1)
        return np.logaddexp(-0.5 * squares, -2.0 * math.log(0.1) - 0.5 * squares / 0.01)

    samples = GaussianMixture().reference_posterior(torch.tensor(x_o), NUM, seed=0).double().numpy()
    low, high = np.maximum(x - 6.0, -10.0), np.minimum(x + 6.0, 10.0)
    assert_marginals_agree(samples, *grid_posterior(log_density, low, high))


# --------------------------------------------------------------------- Gaussian linear uniform


def test_linear_uniform_is_a_cut_normal_in_every_coordinate() -> None:
    task = GaussianLinearUniform()
    x = task(task.true_theta.repeat(NUM, 1), seed=0)
    z = ((x - task.true_theta) / math.sqrt(0.1)).double().numpy()
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4
    x_o = torch.linspace(-2.0, 2.0, 10)
    samples = task.reference_posterior(x_o, NUM, seed=0).double().numpy()
    sd = math.sqrt(0.1)
    for j, mean in enumerate(x_o.tolist()):
        law = stats.truncnorm((-1.0 - mean) / sd, (1.0 - mean) / sd, mean, sd)
        assert stats.kstest(samples[:, j], law.cdf).pvalue > 1e-4
    assert np.abs(np.corrcoef(samples.T) - np.eye(10)).max() < 5.0 / NUM**0.5


# ------------------------------------------------------------------------------ Bernoulli GLM


def test_glm_spikes_with_the_logistic_probability() -> None:
    task = BernoulliGLM("raw")
    theta = task.true_theta
    spikes = task(theta.repeat(NUM, 1), seed=0).double().numpy()
    chance = 1.0 / (1.0 + np.exp(-design_matrix() @ theta.double().numpy()))
    sd = np.sqrt(chance * (1.0 - chance) / NUM) + 1e-9
    assert np.abs((spikes.mean(axis=0) - chance) / sd).max() < 5.0


def test_glm_design_holds_the_lagged_stimulus_and_x_its_sums_over_spikes() -> None:
    V = design_matrix()
    assert (V[:, 0] == 1.0).all()
    for lag in range(1, 9):
        assert (V[lag:, 1 + lag] == V[:-lag, 1]).all()
        assert (V[:lag, 1 + lag] == 0.0).all()
    theta = simulators.sample_prior(BernoulliGLM().prior, 20, 0)
    spikes = BernoulliGLM("raw")(theta, seed=3).double().numpy()
    assert np.allclose(BernoulliGLM()(theta, seed=3).numpy(), spikes @ V, atol=1e-4)


def test_glm_prior_is_smooth_and_has_the_stated_covariance() -> None:
    theta = simulators.sample_prior(BernoulliGLM().prior, 200_000, 0).double().numpy()
    covariance = np.linalg.inv(prior_precision())
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    assert np.abs((np.cov(theta.T) - covariance) / scale).max() < 5.0 * (2.0 / 200_000) ** 0.5
    assert covariance[0, 0] == pytest.approx(2.0)


def glm_log_posterior(theta: np.ndarray, statistics: torch.Tensor) -> np.ndarray:
    prior = -0.5 * np.einsum("nd,de,ne->n", theta, prior_precision(), theta)
    return BernoulliGLM().log_likelihood(theta, statistics) + prior


def test_glm_reference_has_the_moments_of_importance_sampling() -> None:
    task = BernoulliGLM()
    x_o = task.observation
    samples = task.reference_posterior(x_o, NUM, seed=0).double().numpy()
    assert_moments_of_importance_sampling(
        samples, lambda theta: glm_log_posterior(theta, x_o), 150_000, least_size=2_000.0
    )


def test_glm_reference_agrees_with_itself_over_seeds() -> None:
    task = BernoulliGLM()
    _, x = simulators.sample_joint(task, 1, seed=8)
    first, second = (task.reference_posterior(x[0], 4_000, seed=seed) for seed in (1, 2))
    for j in range(10):
        assert stats.ks_2samp(first[:, j], second[:, j]).pvalue > 1e-4


def test_glm_raw_spikes_and_their_statistics_have_one_posterior() -> None:
    raw, sufficient = BernoulliGLM("raw"), BernoulliGLM()
    left = raw.reference_posterior(raw.observation, 500, seed=1)
    right = sufficient.reference_posterior(sufficient.observation, 500, seed=1)
    assert torch.allclose(left, right, atol=1e-3)
    with pytest.raises(ValueError, match="zeros and ones"):
        raw.reference_posterior(raw.observation + 0.5, 10)


@pytest.mark.parametrize("value", [0.0, 50.0, -500.0])
def test_glm_reference_exists_for_statistics_no_spikes_could_give(value: float) -> None:
    samples = BernoulliGLM().reference_posterior(torch.full((10,), value), 500, seed=0)
    assert torch.isfinite(samples).all()
