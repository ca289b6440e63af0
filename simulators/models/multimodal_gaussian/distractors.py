"""The multimodal Gaussian among distractors: eight of a hundred values tell of the parameters.

The other 92 are one draw from a mixture that knows nothing of theta,

    (d_1, ..., d_92) ~ 1/20 sum_k t_2(m_k, L_k L_k'),
    m_k ~ N(0, 15^2 I), L_k / 3 a lower triangle of N(0, 1) with exp N(0, 1) added to its diagonal,

twenty Student laws of two degrees of freedom, and all hundred values are in a fixed random order.
The posterior is therefore that of the eight. A simulation's largest distractors are in the
thousands: two degrees have no variance.

Mixture and order are drawn by the benchmark's own recipe, from numpy's frozen legacy stream at seed
42, so its observations and reference posteriors fit this task too.

Source: Lueckmann et al. (2021), "Benchmarking simulation-based inference", Appendix T.4; Greenberg,
Nonnenmacher & Macke (2019) for distractors.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...base import as_observation
from ...random import child_seed
from ..declared import Constant, Observation, prepared
from .model import MultimodalGaussian

Array = NDArray[np.float64]

_INFORMATIVE = MultimodalGaussian()
_NUM_DISTRACTORS, _NUM_PARTS = 92, 20
_LOCATION, _SCALE = 15.0, 3.0
_RECIPE_SEED = 42


@dataclass(frozen=True)
class SLCPDistractors:
    """The eight values of SLCP and 92 of noise, x (n, 100), in a fixed random order.

    The default observation is one draw at ``true_theta``, that of SLCP.
    """

    theta_dim = _INFORMATIVE.theta_dim
    x_dim = _INFORMATIVE.x_dim + _NUM_DISTRACTORS
    parameter_names = _INFORMATIVE.parameter_names
    prior = _INFORMATIVE.prior
    """U(-3, 3) for each of the five parameters."""
    true_theta = Constant(*MultimodalGaussian.true_theta.tolist())
    """The parameters behind the default observation, (5,)."""
    observation = Observation(seed=2021)
    """The default observation, (100,)."""

    @property
    def informative(self) -> Tensor:
        """Which columns hold the eight values (X_11, X_12, ..., X_42), (8,)."""
        order = _recipe()[2]
        return torch.from_numpy(np.argsort(order)[: _INFORMATIVE.x_dim])

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 5) -> x (n, 100), float32."""
        from .kernels import draw_student_mixture

        rows, seed = prepared(theta, self.theta_dim, seed)
        points = _INFORMATIVE(theta, child_seed(seed, 0), first_row=first_row)
        centres, roots, order = _recipe()
        noise = np.empty((len(rows), _NUM_DISTRACTORS), dtype=np.float32)
        noise_seed = np.uint64(child_seed(seed, 1))
        draw_student_mixture(centres, roots, noise_seed, np.uint64(first_row), noise)
        return torch.from_numpy(np.concatenate([points.numpy(), noise], axis=1)[:, order])

    def log_likelihood(self, theta: Array, x_o: Tensor) -> Array:
        """``log p(x_o | theta)`` for theta (n, 5) and x_o (100,), up to a constant: (n,)."""
        return _INFORMATIVE.log_likelihood(theta, self._points(x_o))

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, 5) from the exact posterior at ``x_o`` (100,): that of the eight."""
        return _INFORMATIVE.reference_posterior(self._points(x_o), num_samples, seed)

    def _points(self, x_o: Tensor) -> Tensor:
        return as_observation(x_o, self.x_dim)[self.informative]


@cache
def _recipe() -> tuple[Array, Array, NDArray[np.int64]]:
    """Centres (20, 92) and roots (20, 92, 92) of the mixture, and the order of the 100 values."""
    legacy = np.random.RandomState(_RECIPE_SEED)
    dim = _NUM_DISTRACTORS
    centres = _LOCATION * legacy.standard_normal((_NUM_PARTS, dim))
    roots = np.empty((_NUM_PARTS, dim, dim))
    for part in range(_NUM_PARTS):
        roots[part] = np.tril(legacy.standard_normal((dim, dim)))
        roots[part] += np.diag(np.exp(legacy.standard_normal(dim)))
    return centres, _SCALE * roots, legacy.permutation(dim + _INFORMATIVE.x_dim)
