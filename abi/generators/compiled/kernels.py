"""Compiled loops of the flows' transforms of one value: affine maps and rational-quadratic splines.

In zuko a spline of 8 bins is some ninety operations on small tensors, forth and back, and the
calls cost more than the arithmetic. Here each value is one pass over its own parameters. The
constants are zuko's, so that weights trained here and there are the same.

A spline of K bins has 3 K - 1 parameters: K widths, K heights, K - 1 slopes. Each is limited softly
and exponentiated; what is written e_k here are these exponentials.

Source: Durkan et al. (2019), equations 4 to 8; zuko's MonotonicRQSTransform.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from ...training.compiling import compiled
from ...training.elementary import exponentiate

_BOUND = np.float32(5.0)
_SIDE = np.float32(10.0)
_SLOPE = np.float32(-1.0 / math.log(1e-3))  # over 1, the size of the largest log slope
_SHARE = np.float32(2.0) * _SLOPE
_ZERO, _ONE, _TWO, _FOUR = np.float32(0.0), np.float32(1.0), np.float32(2.0), np.float32(4.0)
_inlined = njit(nogil=True, cache=True, error_model="numpy", inline="always")


@compiled
def sizes(raw: Any, bins: int, e: Any) -> None:
    """Fill ``e`` with exponentials of the limited widths, heights and slopes, (n, d (3 K - 1))."""
    each = 3 * bins - 1
    raw, rows, flat = raw.reshape(-1, each), e.reshape(-1, each), e.reshape(-1)
    for i in range(len(raw)):
        for k in range(2 * bins):
            rows[i, k] = raw[i, k] / (_ONE + _SHARE * abs(raw[i, k]))
        for k in range(2 * bins, each):
            rows[i, k] = raw[i, k] / (_ONE + _SLOPE * abs(raw[i, k]))
    exponentiate(flat)


@_inlined
def _totals(e: Any, r: int, bins: int) -> tuple[Any, Any]:
    """The sums of widths and of heights."""
    width, height = _ZERO, _ZERO
    for k in range(bins):
        width += e[r, k]
        height += e[r, bins + k]
    return width, height


@_inlined
def _bin(at: Any, e: Any, r: int, edges: int, others: int, bins: int) -> tuple[int, Any, Any]:
    """The bin that holds ``at`` in sums from ``edges`` on, and the sums of both before it."""
    before, other, k = _ZERO, _ZERO, 0
    while k < bins - 1 and at > before + e[r, edges + k]:
        before += e[r, edges + k]
        other += e[r, others + k]
        k += 1
    return k, before, other


@_inlined
def _slopes(e: Any, r: int, bins: int, k: int) -> tuple[Any, Any]:
    """The derivatives at both knots of a bin; 1 at the ends, where the identity goes on."""
    first = _ONE if k == 0 else e[r, 2 * bins + k - 1]
    second = _ONE if k == bins - 1 else e[r, 2 * bins + k]
    return first, second


@_inlined
def _ratio(s: Any, z: Any, first: Any, second: Any) -> tuple[Any, Any, Any]:
    """Numerator and denominator of equation 4, and the numerator of its derivative, equation 5."""
    u = z * (_ONE - z)
    above = s * z * z + first * u
    below = s + (first + second - _TWO * s) * u
    return above, below, _TWO * s * u + first * (_ONE - z) * (_ONE - z) + second * z * z


@compiled
def spline(x: Any, e: Any, bins: int, y: Any, log_slope: Any) -> None:
    """Fill ``y`` (n, d) at ``x`` (n, d), and add log slopes to the sums ``log_slope`` (n,)."""
    rows = e.reshape(-1, 3 * bins - 1)
    for i in range(len(x)):
        for j in range(x.shape[1]):
            at_x, r = x[i, j], i * x.shape[1] + j
            if not abs(at_x) < _BOUND:
                y[i, j] = at_x
                continue
            all_width, all_height = _totals(rows, r, bins)
            at = (at_x + _BOUND) * all_width / _SIDE
            k, left, low = _bin(at, rows, r, 0, bins, bins)
            width, height = rows[r, k], rows[r, bins + k] * _SIDE / all_height
            s = height * all_width / (width * _SIDE)
            first, second = _slopes(rows, r, bins, k)
            above, below, rise = _ratio(s, (at - left) / width, first, second)
            y[i, j] = low * _SIDE / all_height - _BOUND + height * above / below
            log_slope[i] += math.log((s / below) * (s / below) * rise)


@compiled
def spline_inverse(y: Any, e: Any, bins: int, x: Any, log_slope: Any) -> None:
    """Fill ``x`` (n, d), of which the splines ``e`` (n, d (3 K - 1)) give ``y`` (n, d).

    Log slopes of the splines there are added to the sums ``log_slope`` (n,).
    """
    rows = e.reshape(-1, 3 * bins - 1)
    for i in range(len(y)):
        for j in range(y.shape[1]):
            at_y, r = y[i, j], i * y.shape[1] + j
            if not abs(at_y) < _BOUND:
                x[i, j] = at_y
                continue
            all_width, all_height = _totals(rows, r, bins)
            at = (at_y + _BOUND) * all_height / _SIDE
            k, low, left = _bin(at, rows, r, bins, 0, bins)
            width, height = rows[r, k], rows[r, bins + k]
            s = height * all_width / (all_height * width)
            first, second = _slopes(rows, r, bins, k)
            share = (at - low) / height
            bent = share * (first + second - _TWO * s)
            a, b, c = s - first + bent, first - bent, -s * share
            root = math.sqrt(max(b * b - _FOUR * a * c, _ZERO))
            z = _TWO * c / (-b - root)
            x[i, j] = (left + width * z) * _SIDE / all_width - _BOUND
            _, below, rise = _ratio(s, z, first, second)
            log_slope[i] += math.log((s / below) * (s / below) * rise)


@compiled
def spline_gradient(
    x: Any, raw: Any, e: Any, bins: int, of_y: Any, of_log: Any, of_x: Any, of_raw: Any
) -> None:
    """Fill ``of_x`` (n, d) and ``of_raw`` (n, d (3 K - 1)) from gradients of :func:`spline`.

    ``of_y`` (n, d) and ``of_log`` (n,) are those of y and of the sums of log slopes.
    """
    each = 3 * bins - 1
    raw, e, of_raw = raw.reshape(-1, each), e.reshape(-1, each), of_raw.reshape(-1, each)
    for i in range(len(x)):
        for j in range(x.shape[1]):
            r = i * x.shape[1] + j
            at_x, oy, ol = x[i, j], of_y[i, j], of_log[i]
            if not abs(at_x) < _BOUND:
                for k in range(each):
                    of_raw[r, k] = _ZERO
                of_x[i, j] = oy
                continue
            all_width, all_height = _totals(e, r, bins)
            at = (at_x + _BOUND) * all_width / _SIDE
            k, left, low = _bin(at, e, r, 0, bins, bins)
            width, height = e[r, k] * _SIDE / all_width, e[r, bins + k] * _SIDE / all_height
            s, z = height / width, (at - left) / e[r, k]
            first, second = _slopes(e, r, bins, k)
            share, of_s, of_z, of_first, of_second = _ratio_gradient(
                s, z, first, second, height, oy, ol
            )
            of = (-of_z / width, -(of_s * s + of_z * z) / width)
            _shares_gradient(raw, e, of_raw, r, 0, bins, k, (all_width, left), of)
            of = (oy, oy * share + of_s / width)
            _shares_gradient(raw, e, of_raw, r, bins, bins, k, (all_height, low), of)
            for m in range(2 * bins, each):
                of_raw[r, m] = _ZERO
            if k > 0:
                limit = _ONE + _SLOPE * abs(raw[r, 2 * bins + k - 1])
                of_raw[r, 2 * bins + k - 1] = of_first * first / (limit * limit)
            if k < bins - 1:
                limit = _ONE + _SLOPE * abs(raw[r, 2 * bins + k])
                of_raw[r, 2 * bins + k] = of_second * second / (limit * limit)
            of_x[i, j] = of_z / width


@_inlined
def _ratio_gradient(
    s: Any, z: Any, first: Any, second: Any, height: Any, of_y: Any, of_log: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """The share of the bin's height, and the gradients of s, z and both slopes."""
    u = z * (_ONE - z)
    above, below, rise = _ratio(s, z, first, second)
    of_above = of_y * height / below
    of_below = -(of_above * above + _TWO * of_log) / below
    of_rise = of_log / rise
    of_u = of_above * first + of_below * (first + second - _TWO * s) + of_rise * _TWO * s
    of_z = _TWO * (of_above * s * z + of_rise * (second * z - first * (_ONE - z)))
    of_z += of_u * (_ONE - _TWO * z)
    of_s = of_above * z * z + of_below * (_ONE - _TWO * u) + of_rise * _TWO * u
    of_s += _TWO * of_log / s
    of_first = (of_above + of_below) * u + of_rise * (_ONE - z) * (_ONE - z)
    return above / below, of_s, of_z, of_first, of_below * u + of_rise * z * z


@_inlined
def _shares_gradient(
    raw: Any, e: Any, out: Any, r: int, start: int, bins: int, chosen: int, sums: Any, of: Any
) -> None:
    """Through the edge of the chosen bin, a sum of the shares before it, and its own size."""
    (total, before), (of_edge, of_size) = sums, of
    mean = (e[r, start + chosen] * of_size + before * of_edge) / total
    scale = _SIDE / total
    for k in range(bins):
        value = of_size if k == chosen else (of_edge if k < chosen else _ZERO)
        limit = _ONE + _SHARE * abs(raw[r, start + k])
        out[r, start + k] = scale * e[r, start + k] * (value - mean) / (limit * limit)


@compiled
def affine(x: Any, raw: Any, y: Any, log_slope: Any) -> None:
    """Fill ``y`` (n, d) with x exp(a) + b, and add a, limited, to ``log_slope`` (n,).

    ``raw`` (n, 2 d) holds b and a of each value in turn.
    """
    for i in range(len(x)):
        for j in range(x.shape[1]):
            log = raw[i, 2 * j + 1] / (_ONE + _SLOPE * abs(raw[i, 2 * j + 1]))
            log_slope[i] += log
            y[i, j] = x[i, j] * np.float32(math.exp(log)) + raw[i, 2 * j]


@compiled
def affine_inverse(y: Any, raw: Any, x: Any, log_slope: Any) -> None:
    """Fill ``x`` (n, d), of which :func:`affine` makes ``y`` (n, d), and add what that adds."""
    for i in range(len(y)):
        for j in range(y.shape[1]):
            log = raw[i, 2 * j + 1] / (_ONE + _SLOPE * abs(raw[i, 2 * j + 1]))
            log_slope[i] += log
            x[i, j] = (y[i, j] - raw[i, 2 * j]) * np.float32(math.exp(-log))


@compiled
def affine_gradient(x: Any, raw: Any, of_y: Any, of_log: Any, of_x: Any, of_raw: Any) -> None:
    """Fill ``of_x`` (n, d) and ``of_raw`` (n, 2 d), the chain rule through :func:`affine`."""
    for i in range(len(x)):
        for j in range(x.shape[1]):
            limit = _ONE + _SLOPE * abs(raw[i, 2 * j + 1])
            scale = np.float32(math.exp(raw[i, 2 * j + 1] / limit))
            of_x[i, j] = of_y[i, j] * scale
            of_raw[i, 2 * j] = of_y[i, j]
            of_log_scale = of_y[i, j] * x[i, j] * scale + of_log[i]
            of_raw[i, 2 * j + 1] = of_log_scale / (limit * limit)
