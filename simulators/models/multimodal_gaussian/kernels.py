"""Compiled loops of the multimodal Gaussian and of the distractors beside it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ...streams.ziggurat import (
    draw_exponential,
    draw_normal,
    draw_uniform,
    open_stream,
)


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


@njit(nogil=True, cache=True)
def draw_student_mixture(centres: Any, roots: Any, seed: Any, first_row: Any, out: Any) -> None:
    """Fill ``out`` (n, p) with draws of k Student laws of two degrees, equally likely.

    Centres (k, p) and lower triangular roots (k, p, p). A chi-square of two degrees over two is a
    standard exponential.
    """
    z = np.empty(out.shape[1])
    for i in range(out.shape[0]):
        stream = open_stream(seed, first_row + np.uint64(i))
        u, stream = draw_uniform(stream)
        part = int(u * centres.shape[0])
        for j in range(out.shape[1]):
            z[j], stream = draw_normal(stream)
        spread, stream = draw_exponential(stream)
        z /= np.sqrt(spread)
        for j in range(out.shape[1]):
            total = centres[part, j]
            for k in range(j + 1):
                total += roots[part, j, k] * z[k]
            out[i, j] = total
