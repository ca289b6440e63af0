"""Compiled loop of the multimodal Gaussian."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ...streams.ziggurat import draw_normal, open_stream


@njit(nogil=True, cache=True)
def simulate_points(theta: Any, seed: Any, first_row: Any, out: Any) -> None:
    """Fill ``out`` (n, 2 * points) at ``theta`` (n, 5), point by point."""
    for i in range(theta.shape[0]):
        stream = open_stream(seed, first_row + np.uint64(i))
        first_sd, second_sd = theta[i, 2] ** 2, theta[i, 3] ** 2
        correlation = np.tanh(theta[i, 4])
        rest = np.sqrt(1.0 - correlation**2)
        for j in range(0, out.shape[1], 2):
            first, stream = draw_normal(stream)
            second, stream = draw_normal(stream)
            out[i, j] = theta[i, 0] + first_sd * first
            out[i, j + 1] = theta[i, 1] + second_sd * (correlation * first + rest * second)
