"""An epidemic seen through ten samples of people: the SIR model with binomial counts.

======== ============================== ======= =========================
symbol   meaning                        unit    prior
======== ============================== ======= =========================
beta     contacts that pass it on       1 / day log N(log 0.4, 0.5^2)
gamma    recovery                       1 / day log N(log 0.125, 0.2^2)
======== ============================== ======= =========================

    dS/dt = -beta S I / N,   dI/dt = beta S I / N - gamma I,   dR/dt = gamma I
    x_t ~ Binomial(1000, I(t) / N),  t = 0, 17, ..., 153 days

from one infected person among N = 1,000,000 and nobody recovered. Many epidemics are over, or not
yet seen, on most of the ten days: counts of 0 are common.

The likelihood is known and the parameters are two, so the exact posterior is drawn whatever its
shape: with counts of 0 alone it is nearly the prior, cut where an epidemic would have shown.

Source: Kermack & McKendrick (1927); Lueckmann et al. (2021), "Benchmarking simulation-based
inference", Appendix T.9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...base import as_draws, as_observation
from ...exact.normal_scale import on_normal_scale
from ...exact.partition import sample_box
from ..declared import Constant, Observation, log_normal_theta, log_normals, run_compiled

Array = NDArray[np.float64]

_PEOPLE, _INFECTED = 1_000_000.0, 1.0
_TESTED = 1_000
_NUM_POINTS, _INTERVAL = 10, 17.0
_CENTRE, _SD = (math.log(0.4), math.log(0.125)), (0.5, 0.2)
_theta_of = log_normal_theta(_CENTRE, _SD)
_BOX = 8.0  # prior sds: beyond lies 1e-15 of the prior
_GRID = (48, 48)


@dataclass(frozen=True)
class SIR:
    """An epidemic: infected people among a thousand tested, on ten days 17 days apart.

    The default observation is one draw at ``true_theta``, the prior's median.
    """

    theta_dim = 2
    x_dim = _NUM_POINTS
    parameter_names = ("beta", "gamma")
    prior = log_normals(_CENTRE, _SD)
    """Log-normal rates around 0.4 and 0.125 a day."""
    true_theta = Constant(0.4, 0.125)
    """The parameters behind the default observation, (2,)."""
    observation = Observation(seed=1927)
    """The default observation, (10,)."""

    @property
    def times(self) -> Tensor:
        """The days of the tests, (10,)."""
        return torch.arange(_NUM_POINTS) * _INTERVAL

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 2) -> x (n, 10), float32."""
        from .kernels import draw_counts

        def loops(rows: Array, seed: np.uint64, first_row: np.uint64, out: Array) -> None:
            draw_counts(np.exp(_log_infected(rows)), _TESTED, seed, first_row, out)

        return run_compiled(loops, self, theta, seed, first_row)

    def infected(self, theta: Tensor) -> Tensor:
        """The infected share of the people on the ten days, (n, 10), for theta (n, 2)."""
        rows = torch.as_tensor(theta).double().numpy()
        return torch.from_numpy(np.exp(_log_infected(rows)))

    def log_likelihood(self, theta: Array, x_o: Tensor) -> Array:
        """``log p(x_o | theta)`` for theta (n, 2) and x_o (10,), up to a constant: (n,)."""
        counts = self._counts(x_o)
        log_share = _log_infected(theta)
        with np.errstate(all="ignore"):
            others = np.log1p(-np.exp(log_share))
            total = (counts * log_share + (_TESTED - counts) * others).sum(axis=1)
        return np.where(np.isfinite(total), total, -np.inf)

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, 2) from the exact posterior at ``x_o`` (10,).

        The scale on which the prior is a standard normal is cut into cells where the density varies
        little; they propose to one chain a draw (:mod:`simulators.exact.partition`).
        """
        counts = torch.from_numpy(self._counts(x_o))
        num_samples, seed = as_draws(num_samples, seed)
        log_density = on_normal_scale(lambda theta: self.log_likelihood(theta, counts), _theta_of)
        upper = np.full(self.theta_dim, _BOX)
        z = sample_box(log_density, -upper, upper, num_samples, grid=_GRID, seed=seed)
        return torch.from_numpy(_theta_of(z)).float()

    def _counts(self, x_o: Tensor) -> Array:
        counts = as_observation(x_o, self.x_dim).double().numpy()
        if not ((counts >= 0.0) & (counts <= _TESTED) & (counts == np.round(counts))).all():
            raise ValueError(
                f"`x_o` must hold counts, whole numbers between 0 and {_TESTED}; "
                f"got values from {counts.min():g} to {counts.max():g}."
            )
        return counts


def _log_infected(theta: Array) -> Array:
    """Logarithm of the infected share on the ten days, (n, 10)."""
    from .kernels import solve

    beta, gamma = theta[:, 0], theta[:, 1]
    # The susceptible are prey that are never born, the infected live on them.
    rates = np.stack([np.zeros_like(beta), beta, gamma, beta], axis=1)
    start = (1.0 - _INFECTED / _PEOPLE, _INFECTED / _PEOPLE)
    return solve(rates, start, _NUM_POINTS, _INTERVAL)[:, 1]
