"""Lynx and hares of the Hudson Bay, 1900-1920: real counts as a model for inference.

========= ================================= ======================== ====================
symbol    meaning                           unit                     prior
========= ================================= ======================== ====================
alpha     birth of hares                    1 / year                 N(1, 0.5^2), > 0
beta      hares lost to each lynx           1 / (year * kilolynx)    N(0.05, 0.05^2), > 0
gamma     death of lynx                     1 / year                 N(1, 0.5^2), > 0
delta     lynx gained from each hare        1 / (year * kilohare)    N(0.05, 0.05^2), > 0
hare_0    hares in 1900                     thousands of pelts       log N(log 10, 1)
lynx_0    lynx in 1900                      thousands of pelts       log N(log 10, 1)
sigma_h   noise of the hare counts          log of pelts             log N(-1, 1)
sigma_l   noise of the lynx counts          log of pelts             log N(-1, 1)
========= ================================= ======================== ====================

    du/dt = alpha u - beta u v,   dv/dt = -gamma v + delta u v,   (u, v)(1900) = (hare_0, lynx_0)
    log hare_t ~ N(log u(t), sigma_h^2),  log lynx_t ~ N(log v(t), sigma_l^2),  t = 1900 ... 1920

x (n, 42) holds the logarithms of the 21 hare counts, then of the 21 lynx counts. The populations
are solved for on the log scale, which keeps them positive, by the classical Runge-Kutta method at
forty steps a year. Rates far beyond the prior outrun that and give rows that are not finite, which
the runner counts as failures.

The noise is Gaussian given the populations, so that the likelihood is known and the posterior can
be drawn exactly; ABI and its rivals are not shown it.

Data: the Hudson's Bay Company's pelt counts, after Howard (2009), "Modeling Basics". Model and
priors: Carpenter (2018), "Predator-prey population dynamics: the Lotka-Volterra model in Stan".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.distributions import constraints

from ...arguments import count, settle
from ...base import as_draws, as_observation, as_rows
from ...exact.independence import student_proposal
from ...exact.normal_scale import on_normal_scale
from ...exact.peak import highest_peak
from ...exact.tempering import resampled_and_moved
from ...random import stream_seed

YEARS = tuple(range(1900, 1921))
HARES = (
    30.0, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22.0, 25.4, 27.1,
    40.3, 57.0, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2, 24.7,
)  # fmt: skip
LYNX = (
    4.0, 6.1, 9.8, 35.2, 59.4, 41.7, 19.0, 13.0, 8.3, 9.1, 7.4,
    8.0, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
)  # fmt: skip
_RATE_MEAN = (1.0, 0.05, 1.0, 0.05)
_RATE_SD = (0.5, 0.05, 0.5, 0.05)
_LOG_CENTRE = (math.log(10.0), math.log(10.0), -1.0, -1.0)
_LEAST = 1e-6  # a rate that float32 tells from none


class LynxHarePrior:
    """Normals above zero for the rates, log-normals for starts and noise."""

    support = constraints.independent(constraints.positive, 1)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw (*sample_shape, 8)."""
        return self.from_uniform(torch.rand(*sample_shape, 8))

    def from_uniform(self, u: Tensor) -> Tensor:
        """The prior's quantiles at u (..., 8) in (0, 1)."""
        mean, sd = torch.tensor(_RATE_MEAN), torch.tensor(_RATE_SD)
        below = torch.special.ndtr(-mean / sd)
        rates = mean + sd * torch.special.ndtri(below + (1.0 - below) * u[..., :4])
        rest = torch.exp(torch.tensor(_LOG_CENTRE) + torch.special.ndtri(u[..., 4:]))
        return torch.cat([rates.clamp_min(_LEAST), rest], dim=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log density of (..., 8)."""
        mean, sd = torch.tensor(_RATE_MEAN), torch.tensor(_RATE_SD)
        rates, rest = value[..., :4], value[..., 4:].clamp_min(1e-30).log()
        z = torch.cat([(rates - mean) / sd, rest - torch.tensor(_LOG_CENTRE)], dim=-1)
        density = -0.5 * (z**2).sum(dim=-1) - 4.0 * math.log(2.0 * math.pi)
        density = density - (sd * torch.special.ndtr(mean / sd)).log().sum() - rest.sum(dim=-1)
        return torch.where((value > 0.0).all(dim=-1), density, torch.tensor(-math.inf))


@dataclass(frozen=True)
class LynxHare:
    """Lynx and hare pelts of 21 years, as a Lotka-Volterra system with log-normal noise.

    The default observation is the published counts.

    Args:
        steps_per_year: of the Runge-Kutta method.
    """

    steps_per_year: int = 40

    theta_dim = 8
    x_dim = 2 * len(YEARS)
    num_series = 2
    parameter_names = (
        "alpha", "beta", "gamma", "delta", "hare_0", "lynx_0", "sigma_h", "sigma_l",
    )  # fmt: skip
    prior = LynxHarePrior()
    """The prior of Carpenter (2018)."""

    def __post_init__(self) -> None:
        settle(self, steps_per_year=count())

    @property
    def times(self) -> Tensor:
        """The years, (21,)."""
        return torch.tensor(YEARS)

    @property
    def observation(self) -> Tensor:
        """The published counts, (42,): log hares, then log lynx, in thousands of pelts."""
        return torch.tensor(HARES + LYNX).log()

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 8) -> x (n, 42), float32."""
        from ...streams.xoshiro import row_normals

        rows = as_rows(theta, self.theta_dim)
        seed = stream_seed(seed)
        noise = torch.from_numpy(row_normals(seed, len(rows), self.x_dim, first_row))
        sigma = rows[:, 6:8].double().repeat_interleave(len(YEARS), dim=1)
        return (self.populations(rows).reshape(-1, self.x_dim) + sigma * noise).float()

    def populations(self, theta: Tensor) -> Tensor:
        """Log hares and log lynx at the 21 years, (n, 2, 21), for theta (n, 8)."""
        from .kernels import solve

        rows = np.ascontiguousarray(torch.as_tensor(theta).double().numpy())
        return torch.from_numpy(solve(rows, len(YEARS), self.steps_per_year))

    def failure_reason(self, theta_row: Tensor, x_row: Tensor) -> str | None:
        """Why the simulation ``x_row`` (42,) at ``theta_row`` (8,) failed; None if it did not."""
        if bool(torch.isfinite(x_row).all()):
            return None
        return f"the rates outrun {self.steps_per_year} steps a year: {theta_row.tolist()}"

    def log_likelihood(self, theta: NDArray[np.float64], x_o: Tensor) -> NDArray[np.float64]:
        """``log p(x_o | theta)`` for theta (n, 8) and x_o (42,): (n,), -inf where unsolvable."""
        observed = as_observation(x_o, self.x_dim).double().numpy().reshape(1, 2, -1)
        path = self.populations(torch.from_numpy(theta)).numpy()
        sigma = theta[:, 6:8]
        with np.errstate(all="ignore"):
            squares = ((observed - path) ** 2).sum(axis=2) / sigma**2
            density = -0.5 * squares - len(YEARS) * np.log(sigma * math.sqrt(2.0 * math.pi))
            total = density.sum(axis=1)
        return np.where(np.isfinite(total), total, -np.inf)

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, 8) from the exact posterior at ``x_o`` (42,).

        Metropolis chains, one a draw, on the scale where the prior is a standard normal, from
        weighted draws of a Student proposal around the highest mode found.
        """
        x_o = as_observation(x_o, self.x_dim)
        num_samples, seed = as_draws(num_samples, seed)
        prior = self.prior

        def theta_of(z: NDArray[np.float64]) -> NDArray[np.float64]:
            return prior.from_uniform(torch.special.ndtr(torch.from_numpy(z))).numpy()

        log_density = on_normal_scale(lambda theta: self.log_likelihood(theta, x_o), theta_of)
        generator = np.random.default_rng(seed)
        mode, covariance = highest_peak(log_density, self.theta_dim, generator)
        propose = student_proposal(log_density, mode, covariance, generator)
        z = resampled_and_moved(propose, log_density, num_samples, generator)
        return torch.from_numpy(theta_of(z)).float()
