"""The exact samplers behind the references, on densities whose laws are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from simulators.exact.independence import independence_chains, student_proposal
from simulators.exact.partition import sample_box
from simulators.exact.truncated_normal import log_probability, sample_truncated

NUM = 20_000


# Fixed seeds; each p-value of an exact sampler falls below 1e-4 one time in 10,000.
def test_chains_reach_the_target_from_a_proposal_of_another_shape() -> None:
    target = stats.beta(3, 5)

    def propose(generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        draws = generator.uniform(size=(count, 1))
        return draws, target.logpdf(draws[:, 0]) + 17.0  # any constant

    draws = independence_chains(propose, NUM, np.random.default_rng(0))[:, 0]
    assert stats.kstest(draws, target.cdf).pvalue > 1e-4


def test_a_hopeless_proposal_is_refused_instead_of_trusted() -> None:
    def propose(generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        draws = generator.uniform(size=(count, 1))
        return draws, -1e8 * draws[:, 0]

    with pytest.raises(ValueError, match="no posterior that the exact sampler could cover"):
        independence_chains(propose, 10, np.random.default_rng(0))


def test_chains_wait_for_a_heavy_weight_as_long_as_its_mass_asks() -> None:
    # Candidate 1 comes once in 1,000 but holds a tenth of the target; weights 0.9 / 0.999 and 100.
    def propose(generator: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        draws = (generator.uniform(size=(count, 1)) < 1e-3).astype(float)
        return draws, np.log(np.where(draws[:, 0] > 0.0, 100.0, 0.9 / 0.999))

    draws = independence_chains(propose, NUM, np.random.default_rng(0))
    assert stats.binomtest(int(draws.sum()), NUM, 0.1).pvalue > 1e-4


def test_the_fitted_proposal_reaches_a_skewed_density_from_a_poor_start() -> None:
    # The log of a Gamma(4) variable, and a Gaussian whose mean depends on it.
    def log_density(theta: np.ndarray) -> np.ndarray:
        first, second = theta.T
        return 4.0 * first - np.exp(np.minimum(first, 50.0)) - 0.5 * (second - first) ** 2

    generator = np.random.default_rng(1)
    propose = student_proposal(log_density, np.array([0.0, 2.0]), 3.0 * np.eye(2), generator)
    draws = independence_chains(propose, NUM, generator)
    assert stats.kstest(np.exp(draws[:, 0]), stats.gamma(4).cdf).pvalue > 1e-4
    assert stats.kstest(draws[:, 1] - draws[:, 0], "norm").pvalue > 1e-4


def test_a_box_finds_narrow_peaks_of_very_different_width_and_their_weights() -> None:
    centres, scales = np.array([[0.2, 0.7], [0.9, 0.1]]), np.array([3e-2, 2e-3])
    weights = np.array([0.3, 0.7])

    def log_density(theta: np.ndarray) -> np.ndarray:
        squares = ((theta[:, None] - centres) ** 2).sum(axis=2)
        parts = np.log(weights) - 2.0 * np.log(scales) - 0.5 * squares / scales**2
        return np.logaddexp(parts[:, 0], parts[:, 1])

    draws = sample_box(log_density, np.zeros(2), np.ones(2), NUM, grid=(32, 32), seed=2)
    narrow = np.abs(draws[:, 0] - 0.9) < 1e-2
    assert stats.binomtest(int(narrow.sum()), NUM, 0.7).pvalue > 1e-4
    for side in (0, 1):
        z = (draws[narrow, side] - centres[1, side]) / scales[1]
        assert stats.kstest(z, "norm").pvalue > 1e-4
        z = (draws[~narrow, side] - centres[0, side]) / scales[0]
        assert stats.kstest(z, "norm").pvalue > 1e-4


def test_a_box_follows_a_curved_ridge_and_a_hard_edge() -> None:
    def log_density(theta: np.ndarray) -> np.ndarray:
        a, b = theta.T
        with np.errstate(divide="ignore"):
            return np.where(a > 0.3, -0.5 * ((b - a**2) / 1e-3) ** 2, -np.inf)

    draws = sample_box(log_density, np.zeros(2), np.ones(2), NUM, grid=(8, 8), seed=3)
    # The first coordinate is uniform on (0.3, 1), but for the last thousandth before b = 1.
    inner = draws[draws[:, 0] < 0.99]
    assert draws[:, 0].min() > 0.3
    assert stats.kstest(inner[:, 0], stats.uniform(0.3, 0.69).cdf).pvalue > 1e-4
    assert stats.kstest((inner[:, 1] - inner[:, 0] ** 2) / 1e-3, "norm").pvalue > 1e-4


@pytest.mark.parametrize("mean", [-30.0, -1.5, 0.0, 0.4, 2.0, 12.0, 1_000.0])
def test_truncated_normals_follow_their_law_wherever_the_interval_lies(mean: float) -> None:
    sd, low, high = 0.7, -1.0, 2.0
    draws = sample_truncated(np.full(NUM, mean), sd, low, high, np.random.default_rng(4))
    assert draws.min() >= low
    assert draws.max() <= high
    if abs(mean) < 100.0:
        law = stats.truncnorm((low - mean) / sd, (high - mean) / sd, mean, sd)
        assert stats.kstest(draws, law.cdf).pvalue > 1e-4
        between = stats.norm(mean, sd).logcdf(np.array([low, high]))
        tail = stats.norm(mean, sd).logsf(np.array([high, low]))
        logs = min(between, tail, key=lambda pair: pair[1])
        expected = logs[1] + math.log(-math.expm1(logs[0] - logs[1]))
        assert log_probability(np.array([mean]), sd, low, high)[0] == pytest.approx(expected)
    else:  # so far out the cut law is an exponential of rate (mean - high) / sd^2
        gaps = (high - draws) * (mean - high) / sd**2
        assert gaps.mean() == pytest.approx(1.0, abs=4.5 / NUM**0.5)
