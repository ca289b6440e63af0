"""Compiled loops of the flows' transforms of one value: affine maps and rational-quadratic splines.

In zuko a spline of 8 bins is some ninety operations on small tensors, forth and back, and the
calls cost more than the arithmetic. Here each value is one pass over its own parameters. The
constants are zuko's, so that weights trained here and there are the same.

A spline of K bins has 3 K - 1 parameters: K widths, K heights, K - 1 slopes. Each is limited softly
and exponentiated; what is written e_k here are these exponentials, torch's, many at once.

Source: Durkan et al. (2019), equations 4 to 8; zuko's MonotonicRQSTransform.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_BOUND = np.float32(5.0)
_SIDE = np.float32(10.0)
_SLOPE = np.float32(-1.0 / math.log(1e-3))  # over 1, the size of the largest log slope
_SHARE = np.float32(2.0) * _SLOPE
_ZERO, _ONE, _TWO, _FOUR = np.float32(0.0), np.float32(1.0), np.float32(2.0), np.float32(4.0)


@njit(nogil=True, cache=True)
def limited(raw: Any, bins: int, out: Any) -> None:
    """The limited logarithms of widths, heights and slopes, (n, d (3 K - 1))."""
    each = 3 * bins - 1
    for i in range(len(raw)):
        for start in range(0, raw.shape[1], each):
            for k in range(start, start + 2 * bins):
                out[i, k] = raw[i, k] / (_ONE + _SHARE * abs(raw[i, k]))
            for k in range(start + 2 * bins, start + each):
                out[i, k] = raw[i, k] / (_ONE + _SLOPE * abs(raw[i, k]))


@njit(nogil=True, cache=True, inline="always")
def _totals(e: Any, bins: int) -> tuple[Any, Any]:
    """The sums of widths and of heights."""
    width, height = e[0], e[bins]
    for k in range(1, bins):
        width += e[k]
        height += e[bins + k]
    return width, height


@njit(nogil=True, cache=True, inline="always")
def _bin(at: Any, edges: Any, others: Any) -> tuple[int, Any, Any]:
    """The bin that holds ``at`` in sums of ``edges``, and the sums of both before it."""
    before, other, k = np.float32(0.0), np.float32(0.0), 0
    while k < len(edges) - 1 and at > before + edges[k]:
        before += edges[k]
        other += others[k]
        k += 1
    return k, before, other


@njit(nogil=True, cache=True, inline="always")
def _slopes(e: Any, bins: int, k: int) -> tuple[Any, Any]:
    """The derivatives at both knots of a bin; 1 at the ends, where the identity goes on."""
    first = _ONE if k == 0 else e[2 * bins + k - 1]
    second = _ONE if k == bins - 1 else e[2 * bins + k]
    return first, second


@njit(nogil=True, cache=True, inline="always")
def _ratio(s: Any, z: Any, first: Any, second: Any) -> tuple[Any, Any, Any]:
    """Numerator and denominator of equation 4, and the numerator of its derivative, equation 5."""
    u = z * (_ONE - z)
    above = s * z * z + first * u
    below = s + (first + second - _TWO * s) * u
    return above, below, _TWO * s * u + first * (_ONE - z) * (_ONE - z) + second * z * z


@njit(nogil=True, cache=True)
def spline(x: Any, e: Any, bins: int, y: Any, log_slope: Any) -> None:
    """Fill ``y`` (n, d) at ``x`` (n, d), and add log slopes to the sums ``log_slope`` (n,)."""
    each = 3 * bins - 1
    for i in range(len(x)):
        for j in range(x.shape[1]):
            at_x = x[i, j]
            if not abs(at_x) < _BOUND:
                y[i, j] = at_x
                continue
            row = e[i, each * j : each * (j + 1)]
            all_width, all_height = _totals(row, bins)
            at = (at_x + _BOUND) * all_width / _SIDE
            k, left, low = _bin(at, row[:bins], row[bins : 2 * bins])
            height = row[bins + k] * _SIDE / all_height
            s = height * all_width / (row[k] * _SIDE)
            first, second = _slopes(row, bins, k)
            above, below, rise = _ratio(s, (at - left) / row[k], first, second)
            y[i, j] = low * _SIDE / all_height - _BOUND + height * above / below
            log_slope[i] += math.log((s / below) * (s / below) * rise)


@njit(nogil=True, cache=True)
def spline_inverse(y: Any, e: Any, bins: int, x: Any) -> None:
    """Fill ``x`` (n, d), of which the splines ``e`` (n, d (3 K - 1)) give ``y`` (n, d)."""
    each = 3 * bins - 1
    for i in range(len(y)):
        for j in range(y.shape[1]):
            at_y = y[i, j]
            if not abs(at_y) < _BOUND:
                x[i, j] = at_y
                continue
            row = e[i, each * j : each * (j + 1)]
            all_width, all_height = _totals(row, bins)
            at = (at_y + _BOUND) * all_height / _SIDE
            k, low, left = _bin(at, row[bins : 2 * bins], row[:bins])
            s = row[bins + k] * all_width / (all_height * row[k])
            first, second = _slopes(row, bins, k)
            share = (at - low) / row[bins + k]  # of the bin's height
            bent = share * (first + second - _TWO * s)
            a, b, c = s - first + bent, first - bent, -s * share
            root = math.sqrt(max(b * b - _FOUR * a * c, np.float32(0.0)))
            x[i, j] = (left + row[k] * _TWO * c / (-b - root)) * _SIDE / all_width - _BOUND


@njit(nogil=True, cache=True, inline="always")
def _shares_gradient(raw: Any, e: Any, total: Any, chosen: Any, of: Any, out: Any) -> None:
    """Through the edge of the chosen bin, a sum of the shares before it, and its own size."""
    of_edge, of_size = of
    mean = e[chosen] * of_size
    for k in range(chosen):
        mean += e[k] * of_edge
    mean /= total
    for k in range(len(raw)):
        value = of_size if k == chosen else (of_edge if k < chosen else np.float32(0.0))
        limit = _ONE + _SHARE * abs(raw[k])
        out[k] = _SIDE * e[k] / total * (value - mean) / (limit * limit)


@njit(nogil=True, cache=True)
def spline_gradient(
    x: Any, raw: Any, e: Any, bins: int, of_y: Any, of_log: Any, of_x: Any, of_raw: Any
) -> None:
    """Fill ``of_x`` (n, d) and ``of_raw`` (n, d (3 K - 1)) from gradients of :func:`spline`.

    ``of_y`` (n, d) and ``of_log`` (n,) are those of y and of the sums of log slopes.
    """
    each = 3 * bins - 1
    for i in range(len(x)):
        for j in range(x.shape[1]):
            mine = slice(each * j, each * (j + 1))
            of_x[i, j] = _one_gradient(
                x[i, j], raw[i, mine], e[i, mine], bins, of_y[i, j], of_log[i], of_raw[i, mine]
            )


@njit(nogil=True, cache=True, inline="always")
def _one_gradient(x: Any, raw: Any, e: Any, bins: int, of_y: Any, of_log: Any, of_raw: Any) -> Any:
    """The chain rule backwards through one spline; the gradient of its x."""
    of_raw[:] = np.float32(0.0)
    if not abs(x) < _BOUND:
        return of_y
    all_width, all_height = _totals(e, bins)
    at = (x + _BOUND) * all_width / _SIDE
    k, left, _ = _bin(at, e[:bins], e[bins : 2 * bins])
    width, height = e[k] * _SIDE / all_width, e[bins + k] * _SIDE / all_height
    s, z = height / width, (at - left) / e[k]
    first, second = _slopes(e, bins, k)
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

    of = (-of_z / width, -(of_s * s + of_z * z) / width)
    _shares_gradient(raw[:bins], e[:bins], all_width, k, of, of_raw[:bins])
    of = (of_y, of_y * above / below + of_s / width)
    rows = slice(bins, 2 * bins)
    _shares_gradient(raw[rows], e[rows], all_height, k, of, of_raw[rows])
    if k > 0:
        of_first = (of_above + of_below) * u + of_rise * (_ONE - z) * (_ONE - z)
        limit = _ONE + _SLOPE * abs(raw[2 * bins + k - 1])
        of_raw[2 * bins + k - 1] = of_first * first / (limit * limit)
    if k < bins - 1:
        of_second = of_below * u + of_rise * z * z
        limit = _ONE + _SLOPE * abs(raw[2 * bins + k])
        of_raw[2 * bins + k] = of_second * second / (limit * limit)
    return of_z / width


@njit(nogil=True, cache=True)
def affine(x: Any, raw: Any, y: Any, log_slope: Any) -> None:
    """Fill ``y`` (n, d) with x exp(a) + b, and add a, limited, to ``log_slope`` (n,).

    ``raw`` (n, 2 d) holds b and a of each value in turn.
    """
    for i in range(len(x)):
        for j in range(x.shape[1]):
            log = raw[i, 2 * j + 1] / (_ONE + _SLOPE * abs(raw[i, 2 * j + 1]))
            log_slope[i] += log
            y[i, j] = x[i, j] * np.float32(math.exp(log)) + raw[i, 2 * j]


@njit(nogil=True, cache=True)
def affine_inverse(y: Any, raw: Any, x: Any) -> None:
    """Fill ``x`` (n, d), of which :func:`affine` makes ``y`` (n, d)."""
    for i in range(len(y)):
        for j in range(y.shape[1]):
            log = raw[i, 2 * j + 1] / (_ONE + _SLOPE * abs(raw[i, 2 * j + 1]))
            x[i, j] = (y[i, j] - raw[i, 2 * j]) * np.float32(math.exp(-log))


@njit(nogil=True, cache=True)
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


@njit(nogil=True, cache=True)
def relu_gradient(given: Any, gradient: Any) -> None:
    """Set ``gradient`` to 0 where a ReLU gave 0, both (n, a)."""
    for i in range(given.shape[0]):
        for j in range(given.shape[1]):
            gradient[i, j] = gradient[i, j] if given[i, j] > _ZERO else _ZERO
