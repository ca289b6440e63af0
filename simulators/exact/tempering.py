"""Tempered sequential Monte Carlo: exact draws from a posterior on a box.

Particles start uniform on the box and pass through the bridge ``p_b(theta) ~ L(theta)^b`` for
b from 0 to 1. Each step raises b until the effective sample size falls to a fraction of the
particles, resamples, and moves every particle by random-walk Metropolis with the particles' own
covariance until the particles have forgotten where they were copied from.

Source: Del Moral, Doucet & Jasra (2006); the adaptive schedule is that of Jasra et al. (2011).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_ESS_FRACTION = 0.5
_MIN_PARTICLES = 4_000
_MIN_CHAINS = 100  # fewer tell too little of the covariance they move by
_MAX_MOVES = 400
_FORGOTTEN = 0.05
_FINAL_SWEEPS = 3


def tempered_smc(
    log_likelihood: Callable[[Array], Array],
    lower: Array,
    upper: Array,
    num_samples: int,
    *,
    log_prior: Callable[[Array], Array] | None = None,
    seed: int = 0,
) -> Array:
    """Draw (num_samples, d) from ``L(theta) prior(theta)`` on the box [lower, upper].

    Args:
        log_likelihood: theta (n, d) -> (n,); -inf where the likelihood vanishes.
        lower: lower corner of the box, (d,).
        upper: upper corner of the box, (d,).
        num_samples: draws wanted.
        log_prior: theta (n, d) -> (n,), a density on the box; uniform when omitted.
        seed: seed of the particles.
    """
    generator = np.random.default_rng(seed)
    count = max(num_samples, _MIN_PARTICLES)
    log_prior = log_prior or (lambda theta: np.zeros(len(theta)))
    # A non-uniform prior is a bridge of its own: it enters the target with the likelihood.
    target = _Target(lambda theta: log_likelihood(theta) + log_prior(theta), lower, upper)

    theta = generator.uniform(lower, upper, size=(count, len(lower)))
    value = target(theta)
    temper = 0.0
    while temper < 1.0:
        step = _next_step(value, 1.0 - temper)
        weights = _weights(step * value)
        temper = min(1.0, temper + step)
        chosen = _systematic(weights, generator)
        theta, value = theta[chosen], value[chosen]
        sweeps = _FINAL_SWEEPS if temper >= 1.0 else 1
        for _ in range(sweeps):
            theta, value = _move(theta, value, temper, target, generator)
    return theta[generator.permutation(count)[:num_samples]]


def resampled_and_moved(
    propose: Callable[[np.random.Generator, int], tuple[Array, Array]],
    log_density: Callable[[Array], Array],
    num_samples: int,
    generator: np.random.Generator,
) -> Array:
    """Draw (num_samples, d) where a fair proposal is known: its weighted draws, moved on.

    One step of the sampler above, from the proposal to the target at once, with its last sweeps.

    Args:
        propose: generator, n -> draws (n, d) and log target - log q (n,), up to one constant.
        log_density: of the target, (n, d) -> (n,), up to a constant.
        num_samples: draws wanted.
        generator: the source of randomness.
    """
    draws, log_weights = propose(generator, _MIN_PARTICLES)
    weights = _weights(np.where(np.isnan(log_weights), -np.inf, log_weights))
    count = max(num_samples, _MIN_CHAINS)
    theta = draws[generator.choice(len(draws), size=count, p=weights)]
    everywhere = np.full(theta.shape[1], np.inf)
    target = _Target(log_density, -everywhere, everywhere)
    value = target(theta)
    for _ in range(_FINAL_SWEEPS):
        theta, value = _move(theta, value, 1.0, target, generator)
    return theta[:num_samples]


class _Target:
    """The log density, -inf outside the box and wherever it is not a number."""

    def __init__(self, log_density: Callable[[Array], Array], lower: Array, upper: Array):
        self._log_density, self._lower, self._upper = log_density, lower, upper

    def __call__(self, theta: Array) -> Array:
        inside = ((theta > self._lower) & (theta < self._upper)).all(axis=1)
        out = np.full(len(theta), -np.inf)
        if inside.any():
            value = self._log_density(theta[inside])
            out[inside] = np.where(np.isnan(value), -np.inf, value)
        return out


def _weights(log_weights: Array) -> Array:
    shifted = np.exp(log_weights - log_weights.max())
    return np.asarray(shifted / shifted.sum())


def _next_step(value: Array, remaining: float) -> float:
    """The step in temperature that brings the effective sample size to its fraction."""

    def effective(step: float) -> float:
        return float(1.0 / (_weights(step * value) ** 2).sum())

    if not np.isfinite(value).any():
        raise ValueError(
            "`x_o` has zero likelihood at every one of the prior draws tried; "
            "check that the observation can arise from the model."
        )
    goal = _ESS_FRACTION * np.isfinite(value).sum()
    if effective(remaining) >= goal:
        return remaining
    low, high = 0.0, remaining
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if effective(middle) > goal else (low, middle)
    return high


def _systematic(weights: Array, generator: np.random.Generator) -> NDArray[np.int64]:
    count = len(weights)
    points = (np.arange(count) + generator.uniform()) / count
    cumulative = np.cumsum(weights)
    return np.searchsorted(cumulative / cumulative[-1], points).clip(max=count - 1)


def _move(
    theta: Array, value: Array, temper: float, target: _Target, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Metropolis moves until the correlation with the starting points is below 0.05."""
    start = theta.copy()
    spread = start.std(axis=0) + 1e-12
    root = np.linalg.cholesky(
        np.cov(start.T).reshape(len(spread), -1) + 1e-12 * np.eye(len(spread))
    )
    scale = 2.38 / np.sqrt(theta.shape[1])
    for sweep in range(_MAX_MOVES):
        proposal = theta + scale * generator.standard_normal(theta.shape) @ root.T
        proposed = target(proposal)
        accept = np.log(generator.uniform(size=len(theta))) < temper * (proposed - value)
        theta = np.where(accept[:, None], proposal, theta)
        value = np.where(accept, proposed, value)
        # Robbins-Monro on the scale towards the acceptance rate that is best for random walks.
        scale *= np.exp((accept.mean() - 0.234) / np.sqrt(1.0 + sweep))
        if sweep >= 4 and _correlation(start, theta) < _FORGOTTEN:
            break
    return theta, value


def _correlation(before: Array, after: Array) -> float:
    """The largest absolute correlation, over coordinates, between two states."""
    a, b = before - before.mean(axis=0), after - after.mean(axis=0)
    norms = np.sqrt((a**2).sum(axis=0) * (b**2).sum(axis=0)) + 1e-300
    return float(np.abs((a * b).sum(axis=0) / norms).max())
