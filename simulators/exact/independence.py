"""Independence Metropolis: independent exact draws where a good proposal is known.

A chain that proposes from q whatever its state, and accepts with the ratio of the weights
w = target / q, forgets its start at a known rate: after k steps its law is within (1 - 1/M)^k of
the target in total variation, M = sup w / E_q w. Many chains run side by side, each giving one
draw, so the draws are independent. M is measured on the proposals, and the number of steps is
twice what brings the bound below 1e-4.

Source: Mengersen & Tweedie (1996), "Rates of convergence of the Hastings and Metropolis
algorithms", Theorem 2.1; Cappe et al. (2004), "Population Monte Carlo", for the fitted proposal.
"""

from __future__ import annotations

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
    peak = log_weights.max()
    mean = np.exp(log_weights - peak).mean() if np.isfinite(peak) else 0.0
    steps = 2.0 * np.log(_BIAS) / np.log1p(-min(mean, 0.999)) if mean > 0.0 else np.inf
    if steps > _MAX_STEPS:
        raise ValueError(
            "`x_o` has no posterior that the exact sampler could cover (it would accept "
            f"{mean:.2g} of the draws); check that it can arise from the model."
        )
    return int(np.ceil(steps))
