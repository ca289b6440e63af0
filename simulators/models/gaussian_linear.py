"""The conjugate Gaussian model: every quantity of its posterior is known in closed form.

=========== ============================ ===== ==================
symbol      meaning                      unit  prior
=========== ============================ ===== ==================
theta_1..d  location of x                none  N(0, prior_variance)
=========== ============================ ===== ==================

    theta ~ N(0, v I),  x | theta ~ N(theta, s I)
    theta | x ~ N(v / (v + s) x, v s / (v + s) I)

:meth:`GaussianLinear.warmup` is the one-dimensional case of Lu & Wong (2025), Appendix C.1:
v = 20, s = 1, x_o = 6.24, posterior N(5.94, 0.95). The default is the ten-dimensional task of
Lueckmann et al. (2021), "Benchmarking simulation-based inference": v = s = 0.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent, Normal

from ..arguments import POSITIVE, count, settle
from ..base import as_draws, as_observation
from ..random import child_seed, torch_generator
from .location import GaussianLocation


@dataclass(frozen=True)
class GaussianLinear(GaussianLocation):
    """Gaussian location model with a Gaussian prior.

    Args:
        theta_dim: number of parameters d; x has the same dimension.
        prior_variance: v, the prior variance of each parameter.
        noise_variance: s, the variance of each coordinate of x around its parameter.
        default_observation: the default x_o (d values); a draw at theta = 0 when omitted.
    """

    theta_dim: int = 10
    prior_variance: float = 0.1
    noise_variance: float = 0.1
    default_observation: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        settle(self, theta_dim=count(), prior_variance=POSITIVE, noise_variance=POSITIVE)
        given = self.default_observation
        if given is not None and len(given) != self.theta_dim:
            raise ValueError(
                f"`default_observation` must hold {self.theta_dim} values; got {len(given)}."
            )

    @classmethod
    def warmup(cls) -> GaussianLinear:
        """The univariate model of Appendix C.1: theta ~ N(0, 20), x ~ N(theta, 1), x_o = 6.24."""
        return cls(1, 20.0, 1.0, (6.24,))

    @property
    def prior(self) -> Distribution:
        """N(0, prior_variance I)."""
        scale = torch.full((self.theta_dim,), math.sqrt(self.prior_variance))
        return Independent(Normal(torch.zeros(self.theta_dim), scale), 1)

    @property
    def true_theta(self) -> Tensor:
        """The parameters behind the simulated default observation, (d,): the origin."""
        return torch.zeros(self.theta_dim)

    @property
    def observation(self) -> Tensor:
        """The default observation, (d,)."""
        if self.default_observation is not None:
            return torch.tensor(self.default_observation)
        return self(self.true_theta[None], seed=2021)[0]

    def posterior_moments(self, x_o: Tensor) -> tuple[Tensor, float]:
        """Mean (d,) and variance (of each coordinate) of the exact posterior at ``x_o``."""
        total = self.prior_variance + self.noise_variance
        x_o = as_observation(x_o, self.x_dim)
        return x_o * self.prior_variance / total, self.prior_variance * self.noise_variance / total

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, d) from the exact posterior at ``x_o`` (d,), in closed form."""
        mean, variance = self.posterior_moments(x_o)
        num_samples, seed = as_draws(num_samples, seed)
        generator = torch_generator(child_seed(seed, 2))
        noise = torch.randn(num_samples, self.theta_dim, generator=generator)
        return mean + math.sqrt(variance) * noise
