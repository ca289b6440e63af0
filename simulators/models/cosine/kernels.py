"""Compiled loop of the cosine model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ...streams.ziggurat import draw_normal, open_stream


@njit(nogil=True, cache=True)
def simulate_waves(theta: Any, seed: Any, first_row: Any, out: Any) -> None:
    """Fill ``out`` (n, steps) at ``theta`` (n, 4): omega, phi, log sigma, log A.

    The wave turns by the same angle each step, so one rotation replaces one cosine; after a
    hundred steps the rounding error is some 1e-14.
    """
    for i in range(theta.shape[0]):
        stream = open_stream(seed, first_row + np.uint64(i))
        angle = 2.0 * np.pi * theta[i, 0]
        turn_x, turn_y = np.cos(angle), np.sin(angle)
        sigma, amplitude = np.exp(theta[i, 2]), np.exp(theta[i, 3])
        wave_x, wave_y = np.cos(theta[i, 1]), np.sin(theta[i, 1])
        for j in range(out.shape[1]):
            turned = wave_x * turn_x - wave_y * turn_y
            wave_y = wave_x * turn_y + wave_y * turn_x
            wave_x = turned
            noise, stream = draw_normal(stream)
            out[i, j] = amplitude * wave_x + sigma * noise
