"""Compiled ziggurat draws: exponentials and normals at about the cost of one random word.

The area under a decreasing density f on [0, inf) is cut into 256 layers of equal area v. Layer
i >= 1 is the rectangle [0, X_i] x [f(X_i), f(X_{i+1})] with X_1 = r > X_2 > ... > X_256 = 0; layer
0 is [0, r] x [0, f(r)] and the tail, stretched to one rectangle of width X_0 = v / f(r). A draw
picks a layer with eight bits of a word and a point of its width with the upper 53: left of X_{i+1}
it lies under f for certain, which is the case 98.9 times in 100; otherwise its height decides, or,
in layer 0, the tail is drawn. For f(x) = exp(-x) the tail is r plus an exponential; for
f(x) = exp(-x^2 / 2) it is drawn by Marsaglia's method, and bit 8 of the word is the sign.

Source: Marsaglia & Tsang (2000), "The ziggurat method for generating random variables"; the layer
comes from bits the point does not use, as Doornik (2005) asks.

The stream here is that of :mod:`simulators.streams.xoshiro` with its four words in a tuple, passed
in and handed back: they stay in registers, where an array would be written to memory at every draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from .xoshiro import TO_UNIT, rotate, seed_stream

_LAYERS = 256
# Where the tail begins, r, and the area of a layer, v: the one pair for which X_256 = 0.
_R_EXPONENTIAL, _V_EXPONENTIAL = 7.69711747013104972, 0.0039496598225815571993
_R_NORMAL, _V_NORMAL = 3.6541528853610088, 0.00492867323399


def _tables(
    density: Callable[[float], float], inverse: Callable[[float], float], r: float, v: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Right ends X_0 ... X_256 of the layers and the density there."""
    ends = [v / density(r), r]
    while len(ends) < _LAYERS:
        ends.append(inverse(v / ends[-1] + density(ends[-1])))
    ends.append(0.0)
    return np.array(ends), np.array([density(x) for x in ends])


_EXP_X, _EXP_F = _tables(
    lambda x: math.exp(-x), lambda f: -math.log(f), _R_EXPONENTIAL, _V_EXPONENTIAL
)
_NORMAL_X, _NORMAL_F = _tables(
    lambda x: math.exp(-0.5 * x * x), lambda f: math.sqrt(-2.0 * math.log(f)), _R_NORMAL, _V_NORMAL
)


@njit
def open_stream(seed: Any, row: Any) -> Any:
    """The stream of ``(seed, row)``, as a tuple of four words."""
    state = np.empty(4, np.uint64)
    seed_stream(state, seed, row)
    return state[0], state[1], state[2], state[3]


@njit(inline="always")
def draw_word(s: Any) -> Any:
    """The next 64 random bits, and the stream after them."""
    word = rotate(s[0] + s[3], 23) + s[0]
    s2 = s[2] ^ s[0]
    s3 = s[3] ^ s[1]
    return word, (s[0] ^ s3, s[1] ^ s2, s2 ^ (s[1] << np.uint64(17)), rotate(s3, 45))


@njit(inline="always")
def draw_uniform(s: Any) -> Any:
    """Uniform on the open interval (0, 1), and the stream after it."""
    word, s = draw_word(s)
    return (np.float64(word >> np.uint64(11)) + 0.5) * TO_UNIT, s


@njit(inline="always")
def _point(word: Any, ends: Any) -> Any:
    """The layer a word picks and the point of its width."""
    layer = np.intp(word & np.uint64(255))
    return layer, np.float64(word >> np.uint64(11)) * TO_UNIT * ends[layer]


@njit
def _slow_exponential(layer: Any, x: float, s: Any) -> Any:
    """Finish a draw that fell outside the certain part of its layer."""
    while True:
        u, s = draw_uniform(s)
        if layer == 0:
            return _R_EXPONENTIAL - np.log(u), s
        if _EXP_F[layer] + u * (_EXP_F[layer + 1] - _EXP_F[layer]) < np.exp(-x):
            return x, s
        word, s = draw_word(s)
        layer, x = _point(word, _EXP_X)
        if x < _EXP_X[layer + 1]:
            return x, s


@njit(inline="always")
def draw_exponential(s: Any) -> Any:
    """Standard exponential, and the stream after it."""
    word, s = draw_word(s)
    layer, x = _point(word, _EXP_X)
    if x >= _EXP_X[layer + 1]:
        x, s = _slow_exponential(layer, x, s)
    return x, s


@njit
def _normal_tail(s: Any) -> Any:
    while True:
        u, s = draw_uniform(s)
        v, s = draw_uniform(s)
        x = -np.log(u) / _R_NORMAL
        if -2.0 * np.log(v) > x * x:
            return _R_NORMAL + x, s


@njit
def _slow_normal(layer: Any, x: float, s: Any) -> Any:
    """Finish the absolute value of a draw that fell outside the certain part of its layer."""
    while True:
        if layer == 0:
            return _normal_tail(s)
        u, s = draw_uniform(s)
        if _NORMAL_F[layer] + u * (_NORMAL_F[layer + 1] - _NORMAL_F[layer]) < np.exp(-0.5 * x * x):
            return x, s
        word, s = draw_word(s)
        layer, x = _point(word, _NORMAL_X)
        if x < _NORMAL_X[layer + 1]:
            return x, s


@njit(inline="always")
def draw_normal(s: Any) -> Any:
    """Standard normal, and the stream after it."""
    word, s = draw_word(s)
    layer, x = _point(word, _NORMAL_X)
    if x >= _NORMAL_X[layer + 1]:
        x, s = _slow_normal(layer, x, s)
    return (x if word & np.uint64(256) else -x), s
