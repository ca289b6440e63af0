"""Two moons: a posterior of two crescents, each thin in one direction.

======== ============ ===== =========
symbol   meaning      unit  prior
======== ============ ===== =========
theta_1  location     none  U(-1, 1)
theta_2  location     none  U(-1, 1)
======== ============ ===== =========

    a ~ U(-pi/2, pi/2), r ~ N(0.1, 0.01^2), p = (r cos a + 1/4, r sin a)
    x = p + (-|theta_1 + theta_2| / sqrt 2, (-theta_1 + theta_2) / sqrt 2)

The two coordinates added to p are those of theta turned by 45 degrees, a map that keeps areas and
forgets one sign. So, given x, draw p, solve for theta with either sign, and keep it if the prior's
box holds it: theta is then an exact draw from the posterior.

Source: Greenberg, Nonnenmacher & Macke (2019); Lueckmann et al. (2021), "Benchmarking
simulation-based inference", Appendix T.8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..base import as_draws, as_observation
from ..random import child_seed
from .declared import Constant, prepared, uniform_box

_BOUND = 1.0
_RADIUS, _WIDTH, _OFFSET = 0.1, 0.01, 0.25
_ROOT = math.sqrt(0.5)
_BATCH = 100_000
_RARE = 0.01
_GRID = (128, 128)


@dataclass(frozen=True)
class TwoMoons:
    """A noisy half circle, moved by the parameters; its posterior is two crescents.

    The default observation is (0, 0); ``true_theta``, one of the two most likely answers to it, is
    (0.25, 0.25).
    """

    theta_dim = 2
    x_dim = 2
    parameter_names = ("theta_1", "theta_2")
    prior = uniform_box([-_BOUND] * 2, [_BOUND] * 2)
    """U(-1, 1) for both parameters."""
    true_theta = Constant(0.25, 0.25)
    """Parameters in the middle of one crescent at the default observation, (2,)."""
    observation = Constant(0.0, 0.0)
    """The default observation, (2,): the origin."""

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 2) -> x (n, 2), float32."""
        from ..streams.xoshiro import row_normals, row_uniforms

        rows, seed = prepared(theta, self.theta_dim, seed)
        noise = row_normals(child_seed(seed, 0), len(rows), 1, first_row)[:, 0]
        turn = row_uniforms(child_seed(seed, 1), len(rows), 1, first_row)[:, 0]
        shift = _ROOT * np.stack([-np.abs(rows.sum(axis=1)), rows[:, 1] - rows[:, 0]], axis=1)
        return torch.from_numpy(_crescent(turn, noise) + shift).float()

    def log_likelihood(self, theta: NDArray[np.float64], x_o: Tensor) -> NDArray[np.float64]:
        """``log p(x_o | theta)`` for theta (n, 2) and x_o (2,): (n,)."""
        x = as_observation(x_o, self.x_dim).double().numpy()
        first = x[0] + _ROOT * np.abs(theta.sum(axis=1)) - _OFFSET
        second = x[1] - _ROOT * (theta[:, 1] - theta[:, 0])
        radius = np.hypot(first, second)
        # A radius below zero points backwards; at ten standard deviations it does not occur.
        z = (radius - _RADIUS) / _WIDTH
        with np.errstate(divide="ignore"):
            density = -0.5 * z**2 - np.log(_WIDTH * math.sqrt(2.0 * math.pi) * math.pi * radius)
        return np.asarray(np.where(first > 0.0, density, -np.inf))

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, 2) independently from the exact posterior at ``x_o`` (2,).

        Where the prior's box cuts nearly all of the solutions off, the box itself is sampled
        (:func:`simulators.exact.partition.sample_box`).

        Raises:
            ValueError: if no parameter in the box can give ``x_o``.
        """
        from ..exact.partition import sample_box

        x_o = as_observation(x_o, self.x_dim)
        num_samples, seed = as_draws(num_samples, seed)
        x = x_o.double().numpy()
        generator = np.random.default_rng(child_seed(seed, 0))
        kept = [_solve(x, _BATCH, generator)]
        if len(kept[0]) < _RARE * _BATCH:
            bound = np.full(self.theta_dim, _BOUND)
            samples = sample_box(
                lambda theta: self.log_likelihood(theta, x_o),
                -bound, bound, num_samples, grid=_GRID, seed=child_seed(seed, 1),
            )  # fmt: skip
            return torch.from_numpy(samples).float()
        while sum(map(len, kept)) < num_samples:
            kept.append(_solve(x, _BATCH, generator))
        return torch.from_numpy(np.concatenate(kept)[:num_samples]).float()


def _crescent(turn: NDArray[np.float64], noise: NDArray[np.float64]) -> NDArray[np.float64]:
    """The point p (n, 2) of uniforms on (0, 1) and standard normals."""
    angle = math.pi * (turn - 0.5)
    radius = _RADIUS + _WIDTH * noise
    return np.stack([radius * np.cos(angle) + _OFFSET, radius * np.sin(angle)], axis=1)


def _solve(
    x: NDArray[np.float64], count: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Those theta of ``count`` draws of p that give x and lie in the prior's box."""
    p = _crescent(generator.uniform(size=count), generator.standard_normal(count))
    sum_part = generator.choice((-1.0, 1.0), size=count) * (p[:, 0] - x[0])
    difference = x[1] - p[:, 1]
    theta = _ROOT * np.stack([sum_part - difference, sum_part + difference], axis=1)
    return np.asarray(theta[(p[:, 0] >= x[0]) & (np.abs(theta) < _BOUND).all(axis=1)])
