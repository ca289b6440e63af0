"""Draws of a reference beside importance sampling, which knows nothing of how they were made."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest


def assert_moments_of_importance_sampling(
    draws: np.ndarray,
    log_posterior: Callable[[np.ndarray], np.ndarray],
    num_points: int,
    least_size: float,
) -> None:
    """Means and sds of draws (n, d) of a density known up to a constant, within their errors.

    Args:
        draws: of the reference.
        log_posterior: theta (n, d) -> (n,).
        num_points: draws of the proposal, normal at the moments of ``draws``, twice their variance.
        least_size: that their effective sample size must have, or they tell nothing.
    """
    root = np.linalg.cholesky(2.0 * np.cov(draws.T))
    z = np.random.default_rng(1).standard_normal((num_points, draws.shape[1]))
    points = draws.mean(axis=0) + z @ root.T
    log_weights = log_posterior(points) + 0.5 * (z**2).sum(axis=1)
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    size = 1.0 / (weights**2).sum()
    assert size > least_size
    mean = weights @ points
    sd = np.sqrt(weights @ (points - mean) ** 2)
    error = math.sqrt(1.0 / size + 1.0 / len(draws))
    assert np.abs((draws.mean(axis=0) - mean) / (sd * error)).max() < 4.5
    assert draws.std(axis=0) == pytest.approx(sd, rel=5.0 * error)
