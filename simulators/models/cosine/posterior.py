"""The exact posterior of the cosine model: the noise integrated out, the rest cut up.

Write s = log sigma, a = log A, z_t = cos(2 pi omega t + phi) and q for the residual sum of squares,

    q = sum_t (Y_t - A z_t)^2 = sum Y^2 - 2 A sum Y z + A^2 sum z^2,
    sum Y z = Re(e^{i phi} sum_t Y_t e^{2 pi i omega t}),
    sum z^2 = n / 2 + Re(e^{2 i phi} sum_t e^{4 pi i omega t}) / 2.

The noise enters through q alone, so it is integrated out by a function of one variable,

    h(q) = int sigma^-n exp(-q / (2 sigma^2)) N(s; 0, 1) ds,

tabulated once as a cubic spline of log q. What is left, h(q) N(a; 0, 1) on (omega, phi, a), is
drawn exactly on a box by :func:`sample_box`; phi is measured at the middle of the series, where it
hardly depends on omega, and the box covers the circle once, so nothing has to jump across its seam.

Given the rest, s is drawn by rejection. Around the mode s0 of its conditional, the prior is
exp(-s0 s - (s - s0)^2 / 2) up to a constant, and the first factor keeps the precision
w = exp(-2 s) a Gamma((n + s0) / 2, q / 2); the second, at most 1, is the chance to accept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...exact.partition import sample_box
from ...random import child_seed

Array = NDArray[np.float64]

_MAX_OMEGA = 0.1
_LOG_AMPLITUDE = 9.0
# First cells along omega, a quarter of 1 / n, which is how wide a peak of the periodogram is at
# least; along phi; and the width of those along log A.
_CELLS_PER_CYCLE, _PHASES, _STEP = 4.0, 32, 0.75
# Below this share of sum Y^2 the residuals are rounding errors of the observation itself.
_RESOLUTION = 1e-12


def sample_posterior(y: Array, num_samples: int, seed: int) -> Array:
    """Draw (num_samples, 4), columns omega, phi, log sigma, log A, given the series ``y`` (n,)."""
    # Beyond nine prior sds, and nine units from the size of the data, nothing is left of log A.
    size = max(np.log(np.abs(y).max() + 1e-300), -float(len(y)))
    low, high = min(size, 0.0) - _LOG_AMPLITUDE, max(size, 0.0) + _LOG_AMPLITUDE
    lower = np.array([0.0, 0.0, low])
    upper = np.array([_MAX_OMEGA, 2.0 * np.pi, high])
    log_noise_integral = _log_noise_integral(y, high)

    def log_density(rest: Array) -> Array:
        q = _residual(y, rest)
        return np.asarray(log_noise_integral(q) - 0.5 * rest[:, 2] ** 2)

    frequencies = max(16, int(np.ceil(_CELLS_PER_CYCLE * _MAX_OMEGA * len(y))))
    grid = (frequencies, _PHASES, int(np.ceil((high - low) / _STEP)))
    rest = sample_box(log_density, lower, upper, num_samples, grid=grid, seed=child_seed(seed, 0))
    generator = np.random.default_rng(child_seed(seed, 1))
    log_sigma = _draw_log_sigma(len(y), np.maximum(_residual(y, rest), _least(y)), generator)
    phi = _phase_at_zero(y, rest)
    return np.stack([rest[:, 0], phi, log_sigma, rest[:, 2]], axis=1)


def log_posterior(y: Array, theta: Array) -> Array:
    """Log posterior density of theta (n, 4), omega, phi, log sigma, log A, up to a constant."""
    time = np.arange(1, len(y) + 1)
    signal = np.exp(theta[:, 3:]) * np.cos(2.0 * np.pi * theta[:, :1] * time + theta[:, 1:2])
    q = ((y - signal) ** 2).sum(axis=1)
    s = theta[:, 2]
    return np.asarray(
        -len(y) * s - 0.5 * q * np.exp(-2.0 * s) - 0.5 * s**2 - 0.5 * theta[:, 3] ** 2
    )


def _phase_at_zero(y: Array, rest: Array) -> Array:
    middle = 0.5 * (len(y) + 1)
    return np.asarray((rest[:, 1] - 2.0 * np.pi * rest[:, 0] * middle) % (2.0 * np.pi))


def _residual(y: Array, rest: Array) -> Array:
    """The residual sum of squares q at (omega, phase in the middle, log A), (n, 3)."""
    # A cut has few distinct frequencies, and only they cost n operations each.
    omega, where = np.unique(rest[:, 0], return_inverse=True)
    turn = np.exp(2j * np.pi * omega)
    first = np.zeros_like(turn)
    second = np.zeros_like(turn)
    for value in y[::-1]:  # Horner: sum_t Y_t turn^t and sum_t turn^(2 t)
        first = (first + value) * turn
        second = (second + 1.0) * turn**2
    shift = np.exp(1j * _phase_at_zero(y, rest))
    amplitude = np.exp(rest[:, 2])
    linear = (shift * first[where]).real
    square = 0.5 * (len(y) + (shift**2 * second[where]).real)
    return np.asarray((y**2).sum() - 2.0 * amplitude * linear + amplitude**2 * square)


def _least(y: Array) -> float:
    # Below this h no longer changes: at the mode, s near -n, the factor with q is 1 to 1e-8.
    return float(max(_RESOLUTION * (y**2).sum(), np.exp(-2.0 * len(y) - 20.0)))


def _log_noise_integral(y: Array, log_amplitude: float) -> Callable[[Array], Array]:
    """Log h as a function of q."""
    from scipy.interpolate import CubicSpline

    low = np.log(_least(y))
    high = np.log((np.sqrt((y**2).sum()) + np.sqrt(len(y)) * np.exp(log_amplitude)) ** 2)
    knots = np.linspace(low - 0.1, high + 0.1, max(2_000, int(20.0 * (high - low))))
    q = np.exp(knots)
    mode = _mode(len(y), q)
    # At the mode the second derivative of the logarithm is -(2 (n + mode) + 1).
    spread = 1.0 / np.sqrt(2.0 * (len(y) + mode) + 1.0)
    s = mode[:, None] + spread[:, None] * np.linspace(-12.0, 12.0, 241)
    with np.errstate(over="ignore"):
        value = -len(y) * s - 0.5 * q[:, None] * np.exp(-2.0 * s) - 0.5 * s**2
    peak = value.max(axis=1)
    table = peak + np.log(np.exp(value - peak[:, None]).sum(axis=1) * spread)
    spline = CubicSpline(knots, table)
    least = _least(y)
    return lambda q: np.asarray(spline(np.log(np.maximum(q, least))))


def _mode(count: int, q: Array) -> Array:
    """The mode s0 of s given q: the root of q exp(-2 s) = n + s, by Newton from the left."""
    s = np.minimum(0.5 * np.log(q / count), 0.0) - 0.5
    s = np.maximum(s, -float(count) + 1e-9)
    for _ in range(200):
        weight = q * np.exp(-2.0 * s)
        s = s + (weight - count - s) / (2.0 * weight + 1.0)
    return s


def _draw_log_sigma(count: int, q: Array, generator: np.random.Generator) -> Array:
    """S given the residual q (n,): density exp(-count s - q exp(-2 s) / 2 - s^2 / 2).

    By rejection: a gamma law of exp(-2 s), the prior's exponent being straight at the mode; for q
    that hardly count, the normal law that is left without them.
    """
    mode = _mode(count, q)
    out = np.empty_like(q)
    small = np.flatnonzero(q < np.exp(-2.0 * count))
    while len(small):
        s = generator.standard_normal(len(small)) - count
        accept = np.log(generator.uniform(size=len(small))) < -0.5 * q[small] * np.exp(-2.0 * s)
        out[small[accept]] = s[accept]
        small = small[~accept]
    left = np.flatnonzero(q >= np.exp(-2.0 * count))
    while len(left):
        at = mode[left]
        precision = generator.gamma(0.5 * (count + at)) / (0.5 * q[left])
        s = -0.5 * np.log(precision)
        accept = np.log(generator.uniform(size=len(left))) < -0.5 * (s - at) ** 2
        out[left[accept]] = s[accept]
        left = left[~accept]
    return out
