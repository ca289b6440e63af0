"""Independence Metropolis: independent exact draws where a good proposal is known.

A chain that proposes from q whatever its state, and accepts with the ratio of the weights
w = target / q, forgets its start at a known rate. Begin one chain at a draw from q and one at a
draw from the target, and give both the same candidates and the same uniforms: where the chain of
larger weight accepts, the other does too, and they have met; until then that weight stays. With
E_q w = 1, a chain of weight w accepts with probability a(w) = E_q min(1, w' / w), so that after k
steps the law of the first is within

    E_q (1 + w) (1 - a(w))^k

of the target in total variation. Many chains run side by side, each giving one draw, so the draws
are independent. The bound is measured on the proposals, and the number of steps is twice what
brings it below 1e-4.

Source: Mengersen & Tweedie (1996), "Rates of convergence of the Hastings and Metropolis
algorithms", Theorem 2.1, which has the largest weight in place of the mean over weights; Cappe et
al. (2004), "Population Monte Carlo", for the fitted proposal.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Proposal = Callable[[np.random.Generator, int], tuple[Array, Array]]

_BIAS = 1e-4
_NUM_PILOT = 20_000
_MAX_STEPS = 20_000
_DEGREES = 10.0
_NUM_FITS = 4


def independence_chains(
    propose: Proposal, num_samples: int, generator: np.random.Generator
) -> Array:
    """Draw (num_samples, d) from the target, one from each of as many chains.

    Args:
        propose: generator, n -> draws (n, d) and log target - log q (n,), up to one constant.
        num_samples: draws wanted.
        generator: the source of randomness.

    Raises:
        ValueError: if the proposal is so poor that the chains would not forget their start.
    """
    steps = _num_steps(propose(generator, _NUM_PILOT)[1])
    state, weight = propose(generator, num_samples)
    for _ in range(steps):
        candidate, proposed = propose(generator, num_samples)
        with np.errstate(invalid="ignore"):  # -inf minus -inf: both impossible, stay
            accept = np.log(generator.uniform(size=num_samples)) < proposed - weight
        state = np.where(accept[:, None], candidate, state)
        weight = np.where(accept, proposed, weight)
    return state


def student_proposal(
    log_density: Callable[[Array], Array],
    mean: Array,
    covariance: Array,
    generator: np.random.Generator,
) -> Proposal:
    """A multivariate t close to a density of one peak, for :func:`independence_chains`.

    It starts at the mean (d,) and covariance (d, d) given, and a few times takes on those of its
    own weighted draws.
    """
    propose = _student(log_density, mean, covariance)
    for _ in range(_NUM_FITS):
        draws, log_weights = propose(generator, _NUM_PILOT)
        weights = np.exp(log_weights - log_weights.max())
        weights /= weights.sum()
        mean = weights @ draws
        centred = draws - mean
        propose = _student(log_density, mean, (weights[:, None] * centred).T @ centred)
    return propose


def _student(log_density: Callable[[Array], Array], mean: Array, covariance: Array) -> Proposal:
    root = np.linalg.cholesky(covariance * (_DEGREES - 2.0) / _DEGREES)

    def propose(generator: np.random.Generator, count: int) -> tuple[Array, Array]:
        normal = generator.standard_normal((count, len(mean)))
        z = normal * np.sqrt(_DEGREES / generator.chisquare(_DEGREES, size=(count, 1)))
        draws = mean + z @ root.T
        log_q = -0.5 * (_DEGREES + len(mean)) * np.log1p((z**2).sum(axis=1) / _DEGREES)
        return draws, log_density(draws) - log_q

    return propose


def _num_steps(log_weights: Array) -> int:
    """Twice the steps that bring the bound below its goal, for weights of draws from q."""
    peak = log_weights.max()
    weights = np.sort(np.exp(log_weights - peak)) if np.isfinite(peak) else np.zeros(1)
    weights = weights[weights > 0.0] * (len(log_weights) / max(weights.sum(), 1e-300))
    larger = np.arange(len(weights))[::-1]
    stay = 1.0 - (np.cumsum(weights) / weights + larger) / len(log_weights)

    def bound(steps: int) -> float:
        return float(((1.0 + weights) * stay**steps).sum() / len(log_weights))

    most = _MAX_STEPS // 2
    if not len(weights) or bound(most) > _BIAS:
        raise ValueError(
            "`x_o` has no posterior that the exact sampler could cover (it would accept "
            f"{1.0 - stay.max(initial=1.0):.2g} of the draws); check that it can arise from the "
            "model."
        )
    return 2 * bisect_left(range(most), True, lo=1, key=lambda steps: bound(steps) <= _BIAS)
