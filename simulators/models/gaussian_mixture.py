"""The Gaussian mixture: one mean, two scales, a posterior with a spike on a broad base.

======== ======================= ===== ===========
symbol   meaning                 unit  prior
======== ======================= ===== ===========
theta_1  mean of x_1             none  U(-10, 10)
theta_2  mean of x_2             none  U(-10, 10)
======== ======================= ===== ===========

    x | theta ~ 1/2 N(theta, I) + 1/2 N(theta, 0.01 I)
    theta | x ~ sum_k p_k N(x, s_k^2 I) cut to [-10, 10]^2,  p_k ~ 1/2 P(N(x, s_k^2 I) in the box)

Source: Sisson, Fan & Tanaka (2007); Lueckmann et al. (2021), "Benchmarking simulation-based
inference", Appendix T.7.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..base import as_draws, as_observation
from ..random import child_seed
from .declared import Constant, Observation, prepared, uniform_box

_BOUND = 10.0
_SCALES = (1.0, 0.1)


@dataclass(frozen=True)
class GaussianMixture:
    """One draw from a Gaussian around theta whose sd is 1 or 0.1, each with probability 1/2.

    The default observation is one draw at ``true_theta``, (2, -4).
    """

    theta_dim = 2
    x_dim = 2
    parameter_names = ("theta_1", "theta_2")
    prior = uniform_box([-_BOUND] * 2, [_BOUND] * 2)
    """U(-10, 10) for both parameters."""
    true_theta = Constant(2.0, -4.0)
    """The parameters behind the default observation, (2,)."""
    observation = Observation(seed=2007)
    """The default observation, (2,)."""

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 2) -> x (n, 2), float32."""
        from ..streams.xoshiro import row_normals, row_uniforms

        rows, seed = prepared(theta, self.theta_dim, seed)
        noise = row_normals(child_seed(seed, 0), len(rows), self.x_dim, first_row)
        broad = row_uniforms(child_seed(seed, 1), len(rows), 1, first_row) < 0.5
        x = rows + np.where(broad, _SCALES[0], _SCALES[1]) * noise
        return torch.from_numpy(x).float()

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, 2) from the exact posterior at ``x_o`` (2,), in closed form."""
        from ..exact.truncated_normal import log_probability, sample_truncated

        x_o = as_observation(x_o, self.x_dim)
        num_samples, seed = as_draws(num_samples, seed)
        mean = x_o.double().numpy()
        narrower = [log_probability(mean, scale, -_BOUND, _BOUND).sum() for scale in _SCALES]
        generator = np.random.default_rng(seed)
        share = 1.0 / (1.0 + np.exp(np.minimum(narrower[1] - narrower[0], 700.0)))
        broad = generator.uniform(size=(num_samples, 1)) < share
        means = np.broadcast_to(mean, (num_samples, self.theta_dim))
        wide, narrow = (
            sample_truncated(means, scale, -_BOUND, _BOUND, generator) for scale in _SCALES
        )
        return torch.from_numpy(np.where(broad, wide, narrow)).float()
