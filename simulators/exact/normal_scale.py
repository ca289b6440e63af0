"""The scale on which a prior is a standard normal: there, exact samplers look for the posterior."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def on_normal_scale(
    log_likelihood: Callable[[Array], Array], theta_of: Callable[[Array], Array]
) -> Callable[[Array], Array]:
    """The posterior's log density at z (n, d), up to a constant.

    Args:
        log_likelihood: theta (n, d) -> (n,).
        theta_of: z (n, d) -> theta (n, d), which has its prior where z is a standard normal.
    """

    def log_density(z: Array) -> Array:
        return np.asarray(log_likelihood(theta_of(z)) - 0.5 * (z**2).sum(axis=1))

    return log_density
