"""Compiled loop of so many Runge-Kutta steps a year, the same for every row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ..ode.kernels import runge_kutta_step


@njit(nogil=True, cache=True)
def _solve(theta: Any, steps: Any, out: Any) -> None:
    """Fill out (n, 2, years) with log populations; NaN or infinite where the steps fail."""
    h = 1.0 / steps
    for i in range(theta.shape[0]):
        alpha, beta, gamma, delta = theta[i, 0], theta[i, 1], theta[i, 2], theta[i, 3]
        a, b = math.log(theta[i, 4]), math.log(theta[i, 5])
        out[i, 0, 0], out[i, 1, 0] = a, b
        for year in range(1, out.shape[2]):
            for _ in range(steps):
                a, b = runge_kutta_step(a, b, alpha, beta, gamma, delta, h)
            out[i, 0, year], out[i, 1, year] = a, b


def solve(theta: NDArray[np.float64], years: int, steps: int) -> NDArray[np.float64]:
    """Log populations (n, 2, years) for theta (n, 8), ``steps`` a year."""
    out = np.empty((len(theta), 2, years))
    _solve(theta, steps, out)
    return out
