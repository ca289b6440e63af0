"""Predators and prey by their differential equation, seen ten times in log-normal noise.

======== ======================= ======================= ======================
symbol   meaning                 unit                    prior
======== ======================= ======================= ======================
alpha    birth of prey           1 / time                log N(-0.125, 0.5^2)
beta     predation               1 / (predator * time)   log N(-3, 0.5^2)
gamma    death of predators      1 / time                log N(-0.125, 0.5^2)
delta    birth of predators      1 / (prey * time)       log N(-3, 0.5^2)
======== ======================= ======================= ======================

    dX/dt = alpha X - beta X Y,   dY/dt = -gamma Y + delta X Y,   (X, Y)(0) = (30, 1)
    x_t ~ log N(log X(t), 0.1^2),  y_t ~ log N(log Y(t), 0.1^2),  t = 0, 2.1, ..., 18.9

with populations cut to [1e-10, 1e4] before the noise. The jump process of the same rates, one event
at a time, is :mod:`simulators.models.lotka_volterra`.

Source: Lueckmann et al. (2021), "Benchmarking simulation-based inference", Appendix T.10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...base import as_draws, as_observation
from ...exact.independence import independence_chains, student_proposal
from ...exact.normal_scale import on_normal_scale
from ...exact.peak import highest_peak
from ..declared import Constant, Observation, log_normal_theta, log_normals, prepared

Array = NDArray[np.float64]

_START = (30.0, 1.0)
_NUM_POINTS, _INTERVAL = 10, 2.1
_NOISE = 0.1
_LOG_LEAST, _LOG_MOST = math.log(1e-10), math.log(1e4)
_CENTRE, _SD = (-0.125, -3.0, -0.125, -3.0), (0.5, 0.5, 0.5, 0.5)
_theta_of = log_normal_theta(_CENTRE, _SD)


@dataclass(frozen=True)
class LotkaVolterraODE:
    """Prey and predators at ten times: their differential equation, observed with 10% noise.

    x (n, 20) holds the ten prey, then the ten predators. The default observation is one draw at
    ``true_theta``, the prior's median.
    """

    theta_dim = 4
    x_dim = 2 * _NUM_POINTS
    num_series = 2
    parameter_names = ("alpha", "beta", "gamma", "delta")
    prior = log_normals(_CENTRE, _SD)
    """Log-normal rates around 0.88 and 0.05."""
    true_theta = Constant(*(math.exp(centre) for centre in _CENTRE))
    """The parameters behind the default observation, (4,)."""
    observation = Observation(seed=1925)
    """The default observation, (20,)."""

    @property
    def times(self) -> Tensor:
        """When the populations are seen, (10,)."""
        return torch.arange(_NUM_POINTS) * _INTERVAL

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 4) -> x (n, 20), float32."""
        from ...streams.xoshiro import row_normals

        rows, seed = prepared(theta, self.theta_dim, seed)
        noise = row_normals(seed, len(rows), self.x_dim, first_row)
        return torch.from_numpy(np.exp(_log_populations(rows) + _NOISE * noise)).float()

    def populations(self, theta: Tensor) -> Tensor:
        """Prey, then predators at the ten times, cut as above, (n, 20), for theta (n, 4)."""
        return torch.from_numpy(np.exp(_log_populations(torch.as_tensor(theta).double().numpy())))

    def log_likelihood(self, theta: Array, x_o: Tensor) -> Array:
        """``log p(x_o | theta)`` for theta (n, 4) and x_o (20,), up to a constant: (n,)."""
        observed = self._log_observed(x_o)
        with np.errstate(all="ignore"):
            squares = ((observed - _log_populations(theta)) ** 2).sum(axis=1)
        return np.where(np.isfinite(squares), -0.5 * squares / _NOISE**2, -np.inf)

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, 4) independently from the exact posterior at ``x_o`` (20,).

        On the scale where the prior is a standard normal, a multivariate t, placed at the highest
        mode found and then fitted, proposes to one chain a draw
        (:mod:`simulators.exact.independence`).
        """
        observed = torch.from_numpy(np.exp(self._log_observed(x_o)))
        num_samples, seed = as_draws(num_samples, seed)
        log_density = on_normal_scale(lambda theta: self.log_likelihood(theta, observed), _theta_of)
        generator = np.random.default_rng(seed)
        mode, covariance = highest_peak(log_density, self.theta_dim, generator)
        propose = student_proposal(log_density, mode, covariance, generator)
        z = independence_chains(propose, num_samples, generator)
        return torch.from_numpy(_theta_of(z)).float()

    def _log_observed(self, x_o: Tensor) -> Array:
        values = as_observation(x_o, self.x_dim).double().numpy()
        if values.min() <= 0.0:
            raise ValueError(f"`x_o` must hold positive values; its minimum is {values.min():g}.")
        return np.asarray(np.log(values))


def _log_populations(theta: Array) -> Array:
    """Logarithms of prey, then predators, cut to what the noise is put on, (n, 20)."""
    from .kernels import solve

    path = solve(theta, _START, _NUM_POINTS, _INTERVAL).reshape(-1, 2 * _NUM_POINTS)
    return np.asarray(np.clip(path, _LOG_LEAST, _LOG_MOST))
