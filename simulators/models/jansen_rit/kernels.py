"""Compiled integrator of the Jansen-Rit model: Strang splitting, the linear part exact.

The model is three oscillators x'' = -2 k x' - k^2 x + F + noise, driven by each other through F
alone. Over a step h the linear part has an exact solution,

    (x, v) -> E (x, v) + N(0, S),   E = e^{-k h} [[1 + k h, h], [-k^2 h, 1 - k h]],

with, for noise of strength s on v and p = e^{-2 k h},

    S_xx = s^2 / (4 k^3) (1 - p (1 + 2 k h + 2 k^2 h^2))
    S_xv = s^2 / 2 h^2 p
    S_vv = s^2 / (4 k) (1 - p (1 - 2 k h + 2 k^2 h^2)),

and the drive moves v by h F(x) with x at rest. A step is half a drive, the linear part, half a
drive: exact in the noise, of second order in the drive, and it keeps the stationary law where an
Euler-Maruyama step of this size would distort it.

Source: Ableidinger, Buckwar & Hinterleitner (2017); Buckwar, Tamborrino & Tubikanec (2020), Sec. 4.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ...streams.ziggurat import draw_normal, open_stream

# Of Jansen & Rit (1995): gains in mV, rates in 1/s, the sigmoid's maximum, threshold and slope.
_A, _B = 3.25, 22.0
_RATE_A, _RATE_B = 100.0, 50.0
_V_MAX, _V_0, _SLOPE = 5.0, 6.0, 0.56
# Noise on the pyramidal and the inhibitory population; that on the excitatory one is sigma.
_NOISE_PYRAMIDAL, _NOISE_INHIBITORY = 0.01, 1.0


@njit(inline="always")
def _sigmoid(potential: float) -> float:
    return _V_MAX / (1.0 + np.exp(_SLOPE * (_V_0 - potential)))


@njit
def linear_step(rate: float, noise: float, h: float) -> Any:
    """E_xx, E_xv, E_vx, E_vv and the lower triangle L_xx, L_vx, L_vv of the root of S."""
    decay = np.exp(-rate * h)
    turn = rate * h
    p = decay * decay
    s_xx = noise * noise / (4.0 * rate**3) * (1.0 - p * (1.0 + 2.0 * turn + 2.0 * turn * turn))
    s_xv = 0.5 * noise * noise * h * h * p
    s_vv = noise * noise / (4.0 * rate) * (1.0 - p * (1.0 - 2.0 * turn + 2.0 * turn * turn))
    l_xx = np.sqrt(s_xx)
    l_vx = s_xv / l_xx
    l_vv = np.sqrt(max(s_vv - l_vx * l_vx, 0.0))
    return (
        decay * (1.0 + turn), decay * h, -decay * rate * turn, decay * (1.0 - turn),
        l_xx, l_vx, l_vv,
    )  # fmt: skip


@njit(inline="always")
def _flow(x: float, v: float, step: Any, stream: Any) -> Any:
    first, stream = draw_normal(stream)
    second, stream = draw_normal(stream)
    new_x = step[0] * x + step[1] * v + step[4] * first
    new_v = step[2] * x + step[3] * v + step[5] * first + step[6] * second
    return new_x, new_v, stream


@njit
def _simulate_row(theta: Any, stream: Any, h: float, burn_in: int, every: int, out: Any) -> None:
    """Fill ``out`` (samples,) with the potential, every ``every`` steps after ``burn_in``."""
    connections, mu, sigma = theta[0], theta[1], theta[2]
    gain = 10.0 ** (theta[3] / 10.0)
    step_0 = linear_step(_RATE_A, _NOISE_PYRAMIDAL, h)
    step_1 = linear_step(_RATE_A, sigma, h)
    step_2 = linear_step(_RATE_B, _NOISE_INHIBITORY, h)
    x0, stream = draw_normal(stream)
    x1, stream = draw_normal(stream)
    x2, stream = draw_normal(stream)
    v0, stream = draw_normal(stream)
    v1, stream = draw_normal(stream)
    v2, stream = draw_normal(stream)
    half = 0.5 * h
    for k in range(burn_in + every * (out.shape[0] - 1) + 1):
        if k >= burn_in and (k - burn_in) % every == 0:
            out[(k - burn_in) // every] = gain * (x1 - x2)
        # The drive leaves x as it is, so the half after a step and the half before the next are
        # taken at the same x and make one whole drive; the record holds x alone.
        drive = h if k > 0 else half
        v0 += drive * _A * _RATE_A * _sigmoid(x1 - x2)
        v1 += drive * _A * _RATE_A * (mu + 0.8 * connections * _sigmoid(connections * x0))
        v2 += drive * _B * _RATE_B * 0.25 * connections * _sigmoid(0.25 * connections * x0)
        x0, v0, stream = _flow(x0, v0, step_0, stream)
        x1, v1, stream = _flow(x1, v1, step_1, stream)
        x2, v2, stream = _flow(x2, v2, step_2, stream)


@njit(nogil=True, cache=True)
def simulate_potentials(
    theta: Any, h: float, burn_in: int, every: int, seed: Any, first_row: Any, out: Any
) -> None:
    """Fill ``out`` (n, samples) at ``theta`` (n, 4): C, mu, sigma, gain."""
    for i in range(theta.shape[0]):
        stream = open_stream(seed, first_row + np.uint64(i))
        _simulate_row(theta[i], stream, h, burn_in, every, out[i])
