"""Compiled loops of the rational-quadratic spline and of its gradient.

In zuko a spline of 8 bins is some ninety operations on small tensors, forth and back, and the
calls cost more than the arithmetic. Here each value is one pass over its own parameters. The
constants are zuko's, so that weights trained here and there are the same.

Source: Durkan et al. (2019), equations 4 to 8; zuko's MonotonicRQSTransform.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_BOUND = np.float32(5.0)
_SLOPE = np.float32(-math.log(1e-3))  # the size of the largest log slope
_ONE, _TWO = np.float32(1.0), np.float32(2.0)


@njit(nogil=True, cache=True, inline="always")
def _shares(raw: Any, shares: Any) -> None:
    """The softmax of the softly limited ``raw`` (K,)."""
    largest = np.float32(-np.inf)
    for k in range(len(raw)):
        shares[k] = raw[k] / (_ONE + _TWO * abs(raw[k]) / _SLOPE)
        largest = max(largest, shares[k])
    total = np.float32(0.0)
    for k in range(len(raw)):
        shares[k] = math.exp(shares[k] - largest)
        total += shares[k]
    for k in range(len(raw)):
        shares[k] /= total


@njit(nogil=True, cache=True, inline="always")
def _slope_at(raw: Any, knot: int) -> Any:
    """The derivative at a knot; 1 at both ends, where the identity goes on."""
    if knot == 0 or knot > len(raw):
        return _ONE
    value = raw[knot - 1]
    return np.float32(math.exp(value / (_ONE + abs(value) / _SLOPE)))


@njit(nogil=True, cache=True, inline="always")
def _bin(x: Any, widths: Any, heights: Any) -> tuple[int, Any, Any, Any, Any]:
    """The bin that holds x: its number, lower edge, width and height, and where in it x lies."""
    left, low, k = -_BOUND, -_BOUND, 0
    while k < len(widths) - 1 and x > left + _TWO * _BOUND * widths[k]:
        left += _TWO * _BOUND * widths[k]
        low += _TWO * _BOUND * heights[k]
        k += 1
    width = _TWO * _BOUND * widths[k]
    return k, low, width, _TWO * _BOUND * heights[k], (x - left) / width


@njit(nogil=True, cache=True, inline="always")
def _ratio(s: Any, z: Any, first: Any, second: Any) -> tuple[Any, Any, Any]:
    """Numerator and denominator of equation 4, and the numerator of its derivative, equation 5."""
    u = z * (_ONE - z)
    above = s * z**2 + first * u
    below = s + (first + second - _TWO * s) * u
    return above, below, _TWO * s * u + first * (_ONE - z) ** 2 + second * z**2


@njit(nogil=True, cache=True)
def spline(x: Any, raw: Any, y: Any, log_slope: Any) -> None:
    """Fill ``y`` and ``log_slope`` (n,) at ``x`` (n,).

    ``raw``: unconstrained widths (n, K), heights (n, K) and derivatives (n, K - 1).
    """
    raw_widths, raw_heights, raw_slopes = raw
    bins = raw_widths.shape[1]
    widths, heights = np.empty(bins, np.float32), np.empty(bins, np.float32)
    for i in range(len(x)):
        if not abs(x[i]) < _BOUND:
            y[i], log_slope[i] = x[i], np.float32(0.0)
            continue
        _shares(raw_widths[i], widths)
        _shares(raw_heights[i], heights)
        k, low, width, height, z = _bin(x[i], widths, heights)
        first, second = _slope_at(raw_slopes[i], k), _slope_at(raw_slopes[i], k + 1)
        above, below, rise = _ratio(height / width, z, first, second)
        y[i] = low + height * above / below
        log_slope[i] = _TWO * math.log(height / width / below) + math.log(rise)


@njit(nogil=True, cache=True, inline="always")
def _limit_gradient(raw: Any, factor: Any) -> Any:
    """Of raw / (1 + factor |raw| / slope)."""
    return _ONE / (_ONE + factor * abs(raw) / _SLOPE) ** 2


@njit(nogil=True, cache=True, inline="always")
def _shares_gradient(
    raw: Any, shares: Any, chosen: int, of_edge: Any, of_size: Any, out: Any
) -> None:
    """Through the edge of the chosen bin, a sum of the shares before it, and its own size."""
    mean = shares[chosen] * of_size
    for k in range(chosen):
        mean += shares[k] * of_edge
    for k in range(len(raw)):
        value = of_size if k == chosen else (of_edge if k < chosen else np.float32(0.0))
        rate = _TWO * _BOUND * shares[k] * _limit_gradient(raw[k], _TWO)
        out[k] = rate * (value - mean)


@njit(nogil=True, cache=True)
def spline_gradient(x: Any, raw: Any, of_y: Any, of_log: Any, of_x: Any, of_raw: Any) -> None:
    """Fill ``of_x`` (n,) and ``of_raw``, shaped as ``raw``, from the gradients of both outputs.

    The chain rule backwards through :func:`spline`; ``of_raw`` comes as zeros.
    """
    raw_widths, raw_heights, raw_slopes = raw
    of_widths, of_heights, of_slopes = of_raw
    bins = raw_widths.shape[1]
    widths, heights = np.empty(bins, np.float32), np.empty(bins, np.float32)
    for i in range(len(x)):
        if not abs(x[i]) < _BOUND:
            of_x[i] = of_y[i]
            continue
        _shares(raw_widths[i], widths)
        _shares(raw_heights[i], heights)
        k, _, width, height, z = _bin(x[i], widths, heights)
        first, second = _slope_at(raw_slopes[i], k), _slope_at(raw_slopes[i], k + 1)
        s, u = height / width, z * (_ONE - z)
        above, below, rise = _ratio(s, z, first, second)

        of_above = of_y[i] * height / below
        of_below = -(of_above * above + _TWO * of_log[i]) / below
        of_rise = of_log[i] / rise
        of_u = of_above * first + of_below * (first + second - _TWO * s) + of_rise * _TWO * s
        of_z = _TWO * (of_above * s * z + of_rise * (second * z - first * (_ONE - z)))
        of_z += of_u * (_ONE - _TWO * z)
        of_s = of_above * z**2 + of_below * (_ONE - _TWO * u) + of_rise * _TWO * u
        of_s += _TWO * of_log[i] / s
        of_x[i] = of_z / width

        of_width = -(of_s * s + of_z * z) / width
        of_height = of_y[i] * above / below + of_s / width
        _shares_gradient(raw_widths[i], widths, k, -of_z / width, of_width, of_widths[i])
        _shares_gradient(raw_heights[i], heights, k, of_y[i], of_height, of_heights[i])
        if k > 0:
            of_first = (of_above + of_below) * u + of_rise * (_ONE - z) ** 2
            of_slopes[i, k - 1] = of_first * first * _limit_gradient(raw_slopes[i, k - 1], _ONE)
        if k < bins - 1:
            of_second = of_below * u + of_rise * z**2
            of_slopes[i, k] = of_second * second * _limit_gradient(raw_slopes[i, k], _ONE)
