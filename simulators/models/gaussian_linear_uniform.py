"""The Gaussian location model with a uniform prior: a posterior cut off by the prior's box.

=========== ================= ===== =========
symbol      meaning           unit  prior
=========== ================= ===== =========
theta_1..d  location of x     none  U(-1, 1)
=========== ================= ===== =========

    x | theta ~ N(theta, 0.1 I)
    theta | x ~ N(x, 0.1 I) cut to [-1, 1]^d, coordinate by coordinate

Source: Lueckmann et al. (2021), "Benchmarking simulation-based inference", Appendix T.2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Distribution

from ..arguments import POSITIVE, count, settle
from ..base import as_draws, as_observation
from .declared import Observation, uniform_box
from .location import GaussianLocation

_BOUND = 1.0


@dataclass(frozen=True)
class GaussianLinearUniform(GaussianLocation):
    """Gaussian location model with a uniform prior on a box.

    The default observation is one draw at ``true_theta``, which lies near the prior's edge in
    some coordinates, where the cut shows.

    Args:
        theta_dim: number of parameters d; x has the same dimension.
        noise_variance: the variance of each coordinate of x around its parameter.
    """

    theta_dim: int = 10
    noise_variance: float = 0.1

    observation = Observation(seed=2021)
    """The default observation, (d,)."""

    def __post_init__(self) -> None:
        settle(self, theta_dim=count(), noise_variance=POSITIVE)

    @property
    def prior(self) -> Distribution:
        """U(-1, 1) for each parameter."""
        return uniform_box([-_BOUND] * self.theta_dim, [_BOUND] * self.theta_dim)

    @property
    def true_theta(self) -> Tensor:
        """The parameters behind the default observation, (d,): evenly from -0.9 to 0.9."""
        return torch.linspace(-0.9, 0.9, self.theta_dim)

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, d) from the exact posterior at ``x_o`` (d,), in closed form."""
        from ..exact.truncated_normal import sample_truncated

        x_o = as_observation(x_o, self.x_dim)
        num_samples, seed = as_draws(num_samples, seed)
        mean = np.broadcast_to(x_o.double().numpy(), (num_samples, self.theta_dim))
        generator = np.random.default_rng(seed)
        scale = math.sqrt(self.noise_variance)
        draws = sample_truncated(mean, scale, -_BOUND, _BOUND, generator)
        return torch.from_numpy(draws).float()
