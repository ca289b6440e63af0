"""The Bernoulli GLM: spikes of a neuron that filters a white-noise stimulus.

=========== ================================ ========= ====================
symbol      meaning                          unit      prior
=========== ================================ ========= ====================
beta        offset                           log odds  N(0, 2)
f_1 ... f_9 filter, lags 0 to 8              log odds  N(0, (F' F)^-1)
=========== ================================ ========= ====================

    z_t ~ Bernoulli(1 / (1 + exp(-V_t . theta))),  t = 1 ... 100,  theta = (beta, f)
    V_t = (1, e_t, e_{t-1}, ..., e_{t-8}),  e the frozen stimulus, zero before its start
    F_{j,j} = 1 + sqrt((j - 1) / 9), F_{j,j-1} = -2, F_{j,j-2} = 1: the filter is smooth

The ten numbers V'z, the count of spikes and the spike-triggered sum of the stimulus, are
sufficient: ``log p = theta . V'z - sum_t log(1 + exp(V_t . theta))`` plus a constant. The
default observes them; ``summary="raw"`` observes the hundred spikes themselves.

The stimulus is the one of the benchmark's own implementation, numpy's frozen legacy stream at seed
42, so its observations and reference posteriors fit this task too.

Source: Lueckmann et al. (2017); Goncalves et al. (2020); Lueckmann et al. (2021), "Benchmarking
simulation-based inference", Appendix T.5 and T.6.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import Distribution, MultivariateNormal

from ..arguments import choice, settle
from ..base import as_draws, as_observation
from .declared import Observation, prepared

Array = NDArray[np.float64]

_NUM_BINS = 100
_NUM_LAGS = 9
_STIMULUS_SEED = 42
_OBSERVATION_SEED = 2021


@dataclass(frozen=True)
class BernoulliGLM:
    """Spike counts of a generalised linear model with ten parameters and a smooth filter.

    The default observation is one draw at ``true_theta``, a draw from the prior.

    Args:
        summary: ``"sufficient"``: x (n, 10) is V'z. ``"raw"``: x (n, 100) is z, 0 or 1.
    """

    summary: Literal["sufficient", "raw"] = "sufficient"

    theta_dim = _NUM_LAGS + 1
    parameter_names = ("offset", *(f"filter_{j + 1}" for j in range(_NUM_LAGS)))
    observation = Observation(_OBSERVATION_SEED)
    """The default observation, (x_dim,)."""

    def __post_init__(self) -> None:
        settle(self, summary=choice("sufficient", "raw"))

    @property
    def x_dim(self) -> int:
        """Ten sufficient statistics, or a hundred spikes."""
        return self.theta_dim if self.summary == "sufficient" else _NUM_BINS

    @property
    def prior(self) -> Distribution:
        """Gaussian, offset and filter independent, the filter's second differences small."""
        precision = torch.tensor(prior_precision(), dtype=torch.float32)
        mean = torch.zeros(self.theta_dim, dtype=torch.float32)
        return MultivariateNormal(mean, precision_matrix=precision)

    @property
    def true_theta(self) -> Tensor:
        """The parameters behind the default observation, (10,)."""
        noise = np.random.default_rng(_OBSERVATION_SEED).standard_normal(self.theta_dim)
        return torch.from_numpy(
            np.linalg.solve(np.linalg.cholesky(prior_precision()).T, noise)
        ).float()

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 10) -> x (n, x_dim), float32."""
        from ..streams.xoshiro import row_uniforms

        rows, seed = prepared(theta, self.theta_dim, seed)
        chance = row_uniforms(seed, len(rows), _NUM_BINS, first_row)
        # u < 1 / (1 + exp(-psi)), without the overflow. einsum, not a matrix product: that would
        # round a row differently by how many others stand beside it.
        psi = np.einsum("nd,td->nt", rows, design_matrix())
        spikes = (np.log(chance / (1.0 - chance)) < psi).astype(np.float64)
        spikes[np.isnan(psi)] = np.nan
        if self.summary == "raw":
            return torch.from_numpy(spikes.astype(np.float32))
        return torch.from_numpy(np.einsum("nt,td->nd", spikes, design_matrix())).float()

    def log_likelihood(self, theta: Array, x_o: Tensor) -> Array:
        """``log p(x_o | theta)`` for theta (n, 10), up to a constant: (n,)."""
        return _log_likelihood(theta, self._statistics(x_o))

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, 10) independently from the exact posterior at ``x_o``.

        The log posterior is concave; a multivariate t, placed at its mode and then fitted, has
        heavier tails and proposes to one chain a draw (:mod:`simulators.exact.independence`).
        """
        from ..exact.independence import independence_chains, student_proposal

        statistics = self._statistics(x_o)
        num_samples, seed = as_draws(num_samples, seed)

        def log_density(theta: Array) -> Array:
            log_prior = -0.5 * np.einsum("nd,de,ne->n", theta, prior_precision(), theta)
            return np.asarray(_log_likelihood(theta, statistics) + log_prior)

        mode, covariance = _laplace(statistics)
        generator = np.random.default_rng(seed)
        propose = student_proposal(log_density, mode, covariance, generator)
        return torch.from_numpy(independence_chains(propose, num_samples, generator)).float()

    def _statistics(self, x_o: Tensor) -> Array:
        values = as_observation(x_o, self.x_dim).double().numpy()
        if self.summary == "sufficient":
            return values
        if not np.isin(values, (0.0, 1.0)).all():
            raise ValueError("`x_o` must hold zeros and ones, one a bin, for summary='raw'.")
        return np.asarray(values @ design_matrix())


@cache
def design_matrix() -> Array:
    """V (100, 10): a column of ones, then the stimulus at lags 0 to 8."""
    legacy = np.random.RandomState(_STIMULUS_SEED)
    stimulus = legacy.standard_normal(_NUM_BINS).astype(np.float32).astype(np.float64)
    lagged = [np.concatenate([np.zeros(lag), stimulus])[:_NUM_BINS] for lag in range(_NUM_LAGS)]
    matrix = np.stack([np.ones(_NUM_BINS), *lagged], axis=1)
    matrix.flags.writeable = False
    return matrix


@cache
def prior_precision() -> Array:
    """Precision (10, 10) of the prior: 1/2 for the offset, F'F for the filter."""
    difference = np.eye(_NUM_LAGS) - np.eye(_NUM_LAGS, k=-1)
    F = difference @ difference + np.diag(np.sqrt(np.arange(_NUM_LAGS) / _NUM_LAGS))
    precision = np.zeros((_NUM_LAGS + 1, _NUM_LAGS + 1))
    precision[0, 0] = 0.5
    precision[1:, 1:] = F.T @ F
    precision.flags.writeable = False
    return precision


def _log_likelihood(theta: Array, statistics: Array) -> Array:
    psi = theta @ design_matrix().T
    return np.asarray(theta @ statistics - np.logaddexp(0.0, psi).sum(axis=1))


def _laplace(statistics: Array) -> tuple[Array, Array]:
    """The posterior's mode (10,) and inverse curvature there (10, 10), by damped Newton."""
    V, precision = design_matrix(), prior_precision()

    def objective(theta: Array) -> float:
        penalty = 0.5 * theta @ precision @ theta
        return float(_log_likelihood(theta[None], statistics)[0] - penalty)

    theta = np.zeros(len(statistics))
    for _ in range(200):
        chance = 1.0 / (1.0 + np.exp(-np.clip(V @ theta, -700.0, 700.0)))
        gradient = statistics - V.T @ chance - precision @ theta
        curvature = (V.T * (chance * (1.0 - chance))) @ V + precision
        step = np.linalg.solve(curvature, gradient)
        if gradient @ step < 1e-12:
            break
        size, value = 1.0, objective(theta)
        while objective(theta + size * step) < value + 1e-4 * size * (gradient @ step):
            size *= 0.5
            if size < 1e-10:
                break
        theta = theta + size * step
    return theta, np.asarray(np.linalg.inv(curvature))
