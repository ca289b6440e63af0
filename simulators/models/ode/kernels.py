"""Compiled solver of the Lotka-Volterra equations on the log scale, at the accuracy asked for.

With a and b the logarithms of prey and predators,

    da/dt = alpha - beta e^b,   db/dt = delta e^a - gamma,

so that populations stay positive, a crash is a straight line, and errors are relative. An epidemic
is the same pair of equations: the susceptible are prey that are never born, alpha = 0, and eaten as
fast as they feed, beta = delta.

A step of the classical Runge-Kutta method is compared with two of half its length. A fifteenth of
the difference is the error of the latter: it is added to them, which gains an order, and it sets
the length of the next step. Each row has steps of its own, so it depends on its own rates alone.

Source: Hairer, Norsett & Wanner (1993), "Solving ordinary differential equations I", Section II.4.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from ...streams.binomial import draw_binomial
from ...streams.ziggurat import open_stream

_TOLERANCE = 1e-8  # of a step, on the log scale
_FIRST_STEP = 0.01
_SHORTEST = 1e-12
_MAX_STEPS = 100_000  # a row in all


@njit(inline="always")
def runge_kutta_step(
    a: float, b: float, alpha: float, beta: float, gamma: float, delta: float, h: float
) -> tuple[float, float]:
    """The log populations (a, b) a time h later, by one classical Runge-Kutta step."""
    p1, q1 = alpha - beta * math.exp(b), delta * math.exp(a) - gamma
    p2 = alpha - beta * math.exp(b + 0.5 * h * q1)
    q2 = delta * math.exp(a + 0.5 * h * p1) - gamma
    p3 = alpha - beta * math.exp(b + 0.5 * h * q2)
    q3 = delta * math.exp(a + 0.5 * h * p2) - gamma
    p4 = alpha - beta * math.exp(b + h * q3)
    q4 = delta * math.exp(a + h * p3) - gamma
    a += h / 6.0 * (p1 + 2.0 * p2 + 2.0 * p3 + p4)
    b += h / 6.0 * (q1 + 2.0 * q2 + 2.0 * q3 + q4)
    return a, b


@njit
def _solve_row(rates: Any, interval: float, out: Any) -> None:
    """Fill out (2, points); from where the steps fail, or run out, with NaN."""
    alpha, beta, gamma, delta = rates[0], rates[1], rates[2], rates[3]
    a, b = math.log(rates[4]), math.log(rates[5])
    out[:] = np.nan
    out[0, 0], out[1, 0] = a, b
    h, left, point = _FIRST_STEP, interval, 1
    for _ in range(_MAX_STEPS):
        if point == out.shape[1]:
            return
        step = min(h, left)
        if step < _SHORTEST:
            return
        a1, b1 = runge_kutta_step(a, b, alpha, beta, gamma, delta, step)
        a2, b2 = runge_kutta_step(a, b, alpha, beta, gamma, delta, 0.5 * step)
        a2, b2 = runge_kutta_step(a2, b2, alpha, beta, gamma, delta, 0.5 * step)
        da, db = (a2 - a1) / 15.0, (b2 - b1) / 15.0
        error = max(abs(da), abs(db))
        if not math.isfinite(error):
            h = 0.1 * step
            continue
        change = 0.9 * (_TOLERANCE / max(error, 1e-5 * _TOLERANCE)) ** 0.2
        if error <= _TOLERANCE:
            a, b, left = a2 + da, b2 + db, left - step
            if left <= 0.0:
                out[0, point], out[1, point] = a, b
                left, point = interval, point + 1
                # A step that was cut short to meet the time says little of the next one.
                h = max(h, step * change)
                continue
        h = step * min(max(change, 0.2), 5.0)


@njit(nogil=True, cache=True)
def _solve(rates: Any, interval: float, out: Any) -> None:
    for i in range(rates.shape[0]):
        _solve_row(rates[i], interval, out[i])


def solve(
    rates: NDArray[np.float64], start: tuple[float, float], points: int, interval: float
) -> NDArray[np.float64]:
    """Log populations (n, 2, points), at times 0, interval, 2 interval, ...

    Args:
        rates: alpha, beta, gamma, delta, (n, 4).
        start: the populations at time 0.
        points: how many times.
        interval: time from one to the next.
    """
    out = np.empty((len(rates), 2, points))
    rows = np.concatenate([rates, np.broadcast_to(start, (len(rates), 2))], axis=1)
    _solve(np.ascontiguousarray(rows), interval, out)
    return out


@njit(nogil=True, cache=True)
def draw_counts(chances: Any, trials: int, seed: Any, first_row: Any, out: Any) -> None:
    """Fill out (n, points) with binomial counts of ``chances`` (n, points)."""
    for i in range(out.shape[0]):
        stream = open_stream(seed, first_row + np.uint64(i))
        for j in range(out.shape[1]):
            out[i, j], stream = draw_binomial(trials, chances[i, j], stream)
