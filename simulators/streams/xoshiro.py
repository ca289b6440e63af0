"""Compiled random streams, one for each row: xoshiro256++ seeded by ``(seed, row)``.

numpy's own generators cost microseconds to create, too much for one a row, and its seeded
global state inside ``prange`` is not reproducible. Here a stream costs four integer hashes.

Source: Blackman & Vigna (2021), "Scrambled linear pseudorandom number generators", and
Steele, Lea & Flood (2014) for SplitMix64, which fills the state.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
TO_UNIT = 1.0 / 9007199254740992.0  # 2^-53


@njit(inline="always")
def _mix(z: Any) -> Any:
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@njit
def seed_stream(state: Any, seed: Any, row: Any) -> None:
    """Fill ``state`` (4 words) with the stream of ``(seed, row)``.

    Seed and row are hashed one after the other, so that streams of neighbouring seeds and
    rows share no prefix.
    """
    z = _mix(np.uint64(seed) + _GOLDEN)
    z = _mix(z ^ (np.uint64(row) * _MIX_2 + _GOLDEN))
    for word in range(4):
        z += _GOLDEN
        state[word] = _mix(z)


@njit(inline="always")
def rotate(z: Any, bits: int) -> Any:
    """A word turned to the left by that many bits."""
    return (z << np.uint64(bits)) | (z >> np.uint64(64 - bits))


@njit(inline="always")
def next_word(state: Any) -> Any:
    """The next 64 random bits."""
    out = rotate(state[0] + state[3], 23) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = rotate(state[3], 45)
    return out


@njit(inline="always")
def uniform(state: Any) -> float:
    """Uniform on the open interval (0, 1): its logarithm is always finite."""
    return (np.float64(next_word(state) >> np.uint64(11)) + 0.5) * TO_UNIT


@njit(inline="always")
def exponential(state: Any) -> float:
    """Standard exponential."""
    return -np.log(uniform(state))


@njit
def normal(state: Any) -> float:
    """Standard normal (Marsaglia's polar method; the second value of the pair is dropped)."""
    while True:
        u = 2.0 * uniform(state) - 1.0
        v = 2.0 * uniform(state) - 1.0
        s = u * u + v * v
        if 0.0 < s < 1.0:
            return u * np.sqrt(-2.0 * np.log(s) / s)


@njit(nogil=True, cache=True)
def _fill(out: Any, seed: Any, first_row: Any, normals: bool) -> None:
    state = np.empty(4, np.uint64)
    for i in range(out.shape[0]):
        seed_stream(state, seed, first_row + np.uint64(i))
        for j in range(out.shape[1]):
            out[i, j] = normal(state) if normals else uniform(state)


def row_normals(seed: int, num_rows: int, width: int, first_row: int = 0) -> NDArray[np.float64]:
    """Standard normals (num_rows, width); row i is a function of ``(seed, first_row + i)``."""
    out = np.empty((num_rows, width))
    _fill(out, np.uint64(seed), np.uint64(first_row), True)
    return out


def row_uniforms(seed: int, num_rows: int, width: int, first_row: int = 0) -> NDArray[np.float64]:
    """Uniforms on (0, 1), (num_rows, width); row i is a function of ``(seed, first_row + i)``.

    The streams are those of :func:`row_normals`: who needs both gives each a child seed.
    """
    out = np.empty((num_rows, width))
    _fill(out, np.uint64(seed), np.uint64(first_row), False)
    return out
