"""The multimodal Gaussian: four bivariate points, five parameters, four posterior modes.

======== ================================== ============ =================
symbol   meaning                            unit         prior
======== ================================== ============ =================
theta_1  mean of the first coordinate       that of x    U(-3, 3)
theta_2  mean of the second coordinate      that of x    U(-3, 3)
theta_3  signed root of the first sd        root of x's  U(-3, 3)
theta_4  signed root of the second sd       root of x's  U(-3, 3)
theta_5  inverse tanh of the correlation    none         U(-3, 3)
======== ================================== ============ =================

    X_j ~ N((theta_1, theta_2), Sigma), j = 1..4, Sigma = [[s1^2, r s1 s2], [r s1 s2, s2^2]],
    s1 = theta_3^2, s2 = theta_4^2, r = tanh(theta_5)

Only theta_3^2 and theta_4^2 enter, so the posterior is symmetric in both signs.

Source: Papamakarios, Sterratt & Murray (2019); Lu & Wong (2025), Section 4.1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...base import as_draws, as_observation
from ...exact.tempering import tempered_smc
from ...random import child_seed
from ..declared import Constant, Observation, run_compiled, uniform_box

_BOUND = 3.0
# One draw at the true parameters, written down: no change to the streams can move it.
_OBSERVATION = (
    2.00507164, -2.17706895, 1.29018545, -3.18452501,
    -0.24577902, -2.0948441, 1.20877695, -2.35611868,
)  # fmt: skip


@dataclass(frozen=True)
class MultimodalGaussian:
    """Four draws of a bivariate Gaussian whose mean and covariance are the parameters.

    x (n, 8) lists the points one after the other: (X_11, X_12, X_21, ..., X_42). The default
    observation is one draw at ``true_theta``, the value of Papamakarios et al. (2019).
    """

    num_points: int = 4

    theta_dim = 5
    item_dim = 2  # x is a list of points: their order carries nothing
    parameter_names = ("theta_1", "theta_2", "theta_3", "theta_4", "theta_5")
    prior = uniform_box([-_BOUND] * 5, [_BOUND] * 5)
    """U(-3, 3) for each of the five parameters."""
    true_theta = Constant(0.7, -2.9, -1.0, -0.9, 0.6)
    """The parameters behind the default observation, (5,)."""
    observation = Observation(2019, _OBSERVATION)
    """The default observation, (x_dim,): fixed for four points, simulated otherwise."""

    @property
    def x_dim(self) -> int:
        """Two values a point."""
        return 2 * self.num_points

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 5) -> x (n, 8), float32."""
        from .kernels import simulate_points

        return run_compiled(simulate_points, self, theta, seed, first_row)

    def log_likelihood(self, theta: NDArray[np.float64], x_o: Tensor) -> NDArray[np.float64]:
        """``log p(x_o | theta)`` for theta (n, 5) and x_o (8,): (n,), -inf where a scale is 0."""
        points = as_observation(x_o, self.x_dim).double().numpy().reshape(-1, 2)
        mean, scale, correlation = _moments(theta)
        possible = np.all(scale > 0.0, axis=1, keepdims=True)
        scale = np.where(possible, scale, 1.0)
        z = (points[None] - mean[:, None]) / scale[:, None]
        rest = 1.0 - correlation**2
        cross = (z**2).sum(axis=-1) - 2.0 * correlation[:, None] * z[..., 0] * z[..., 1]
        log_det = np.log(scale).sum(axis=-1) + 0.5 * np.log(rest) + np.log(2.0 * np.pi)
        density = -0.5 * cross.sum(axis=-1) / rest - len(points) * log_det
        return np.where(possible[:, 0], density, -np.inf)

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, 5) from the exact posterior at ``x_o`` (8,).

        Tempered SMC with Metropolis moves on the half space theta_3, theta_4 > 0, where the
        posterior has one mode; both signs are then drawn at random, which is exact by the
        symmetry of the model, and spares the sampler the jumps between the four modes.
        """
        x_o = as_observation(x_o, self.x_dim)
        num_samples, seed = as_draws(num_samples, seed)
        lower = np.array([-_BOUND, -_BOUND, 0.0, 0.0, -_BOUND])
        upper = np.full(self.theta_dim, _BOUND)
        samples = tempered_smc(
            lambda theta: self.log_likelihood(theta, x_o),
            lower,
            upper,
            num_samples,
            seed=child_seed(seed, 0),
        )
        generator = np.random.default_rng(child_seed(seed, 1))
        samples[:, 2:4] *= generator.choice((-1.0, 1.0), size=(num_samples, 2))
        return torch.from_numpy(samples).float()


SLCP = MultimodalGaussian
"""The same model under its name in Lueckmann et al. (2021), simple likelihood complex posterior."""


def _moments(
    theta: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Mean (n, 2), standard deviations (n, 2) and correlation (n,)."""
    return theta[:, :2], theta[:, 2:4] ** 2, np.tanh(theta[:, 4])
