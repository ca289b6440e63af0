"""Compiled Runge-Kutta steps of the Lotka-Volterra equations on the log scale."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray


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
                p1, q1 = alpha - beta * math.exp(b), delta * math.exp(a) - gamma
                p2 = alpha - beta * math.exp(b + 0.5 * h * q1)
                q2 = delta * math.exp(a + 0.5 * h * p1) - gamma
                p3 = alpha - beta * math.exp(b + 0.5 * h * q2)
                q3 = delta * math.exp(a + 0.5 * h * p2) - gamma
                p4 = alpha - beta * math.exp(b + h * q3)
                q4 = delta * math.exp(a + h * p3) - gamma
                a += h / 6.0 * (p1 + 2.0 * p2 + 2.0 * p3 + p4)
                b += h / 6.0 * (q1 + 2.0 * q2 + 2.0 * q3 + q4)
            out[i, 0, year], out[i, 1, year] = a, b


def solve(theta: NDArray[np.float64], years: int, steps: int) -> NDArray[np.float64]:
    """Log populations (n, 2, years) for theta (n, 8), ``steps`` a year."""
    out = np.empty((len(theta), 2, years))
    _solve(theta, steps, out)
    return out
