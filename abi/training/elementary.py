"""Exponentials, sines and cosines of many float32 numbers, which the compiler does many at once.

Those of the library come one after another. They are written in place: of two arrays that are one,
compiled code would not know it, and would go one by one. Errors are of one or two units in the last
place of 1.

Source: Moshier (1989), "Methods and Programs for Mathematical Functions", for the reductions and
the exponential's series; those of sine and cosine are of least squares at Chebyshev's points.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .compiling import compiled

_ZERO, _ONE, _TWO, _MOST = np.float32(0.0), np.float32(1.0), np.float32(2.0), np.float32(87.0)
_PER_LOG_2, _PER_PI = np.float32(1.0 / math.log(2.0)), np.float32(1.0 / math.pi)
_LOG_2 = (np.float32(0.693359375), np.float32(-2.12194440e-4))  # in two parts
_PI = (np.float32(3.140625), np.float32(9.6765358979e-4))  # likewise
_BIAS, _FRACTION = np.int32(127), np.int32(23)  # of a float's exponent; bits of its fraction
_EXP = tuple(
    np.float32(term)
    for term in (
        1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
        5.0000001201e-1,
    )
)  # fmt: skip
_SIN = tuple(
    np.float32(term)
    for term in (-2.40783067e-8, 2.75363573e-6, -1.98410846e-4, 8.33333275e-3, -1.66666667e-1)
)
_COS = tuple(
    np.float32(term)
    for term in (-2.62979397e-7, 2.47746006e-5, -1.38886520e-3, 4.16666594e-2, -0.5)
)


@compiled
def exponentiate(x: Any) -> None:
    """Write e^x in the place of x (n,), as if none were beyond -87 and 87.

    It is 2^k e^r, where k is whole and r at most half of log 2.
    """
    whole = np.empty(len(x), np.int32)
    power = whole.view(np.float32)
    for i in range(len(x)):
        limited = min(max(x[i], -_MOST), _MOST)
        k = np.rint(limited * _PER_LOG_2)
        whole[i] = (np.int32(k) + _BIAS) << _FRACTION
        x[i] = (limited - k * _LOG_2[0]) - k * _LOG_2[1]
    for i in range(len(x)):
        r, series = x[i], _ZERO
        for term in _EXP:
            series = series * r + term
        x[i] = (series * r * r + r + _ONE) * power[i]


@compiled
def sines(x: Any, cosine: Any) -> None:
    """Write the sine in the place of x (n,), and fill ``cosine`` (n,).

    They are those of r, at most half of pi, with the sign of a whole number of halves of a turn.
    """
    for i in range(len(x)):
        k = np.rint(x[i] * _PER_PI)
        r = (x[i] - k * _PI[0]) - k * _PI[1]
        sign = _ONE - _TWO * np.float32(np.int32(k) & np.int32(1))
        square, of_sine, of_cosine = r * r, _ZERO, _ZERO
        for term in _SIN:
            of_sine = of_sine * square + term
        for term in _COS:
            of_cosine = of_cosine * square + term
        x[i] = sign * (of_sine * square * r + r)
        cosine[i] = sign * (of_cosine * square + _ONE)
