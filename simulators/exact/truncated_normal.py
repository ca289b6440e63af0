"""Normals cut to an interval, exact however far out the interval lies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def log_probability(mean: Array, sd: float, lower: float, upper: float) -> Array:
    """``log P(lower < N(mean, sd^2) < upper)`` for each mean."""
    _, low, high = _reflected(mean, sd, lower, upper)
    return _log_between(low, high)


def sample_truncated(
    mean: Array, sd: float, lower: float, upper: float, generator: np.random.Generator
) -> Array:
    """Draw N(mean, sd^2) cut to (lower, upper) for each mean, by the inverse in log space.

    The interval is mirrored to the left of the mean where it is far out on the right, so that its
    probabilities keep their digits; their logarithms never underflow.
    """
    from scipy.special import log_ndtr, ndtri_exp

    sign, low, high = _reflected(mean, sd, lower, upper)
    u = generator.uniform(size=mean.shape)
    # log(Phi(low) + u (Phi(high) - Phi(low)))
    log_low, log_mass = log_ndtr(low), _log_between(low, high)
    z = ndtri_exp(np.logaddexp(log_low, np.log(u) + log_mass))
    return np.clip(mean + sd * sign * np.clip(z, low, high), lower, upper)


def _reflected(mean: Array, sd: float, lower: float, upper: float) -> tuple[Array, Array, Array]:
    """Sign and standardised ends of the interval, mirrored so that it leans to the left."""
    low, high = (lower - mean) / sd, (upper - mean) / sd
    sign = np.where(low + high > 0.0, -1.0, 1.0)
    return sign, np.where(sign < 0.0, -high, low), np.where(sign < 0.0, -low, high)


def _log_between(low: Array, high: Array) -> Array:
    from scipy.special import log_ndtr

    return np.asarray(log_ndtr(high) + np.log(-np.expm1(log_ndtr(low) - log_ndtr(high))))
