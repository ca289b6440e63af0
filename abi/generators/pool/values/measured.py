"""The law of values that are measured, as a linear model of terms and the law of its errors."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .apart import fit_apart
from .noise import Noise, fit_noise, with_tails
from .scales import Scales, best_scales
from .selection import selected
from .terms import terms_of

_PASSES = 6  # by which tails and coefficients agree


class Measured(NamedTuple):
    """Scales, then level and unit (k,) on these, coefficients (1 + t, k), and noise in units.

    Tails of the noise are those of a row's values together or, where its size goes with the numbers
    by a ``loudness`` (c,), those of each.
    """

    scales: Scales
    level: Tensor
    unit: Tensor
    place: Tensor
    noise: Noise
    loudness: Tensor | None = None


def fit_measured(u: Tensor, x: Tensor) -> list[Measured]:
    """Laws of values x (n, k), which vary, given numbers u (n, c), float64.

    The first has normal noise; others have tails of rows, and of each value, where these gain.
    """
    terms = terms_of(u, x.shape[1])
    scales = best_scales(terms, x)
    on = scales.of(x)
    level, unit = on.mean(dim=0), on.std(dim=0)
    z, weights = (on - level) / unit, torch.ones(len(x), dtype=x.dtype)
    found: list[Measured] = []
    for _ in range(_PASSES):
        place, left = selected(terms, z, weights)
        noise = fit_noise(left, weights)
        if not found:
            apart = fit_apart(u, terms, z, left, noise)
        found = found[:1] or [Measured(scales, level, unit, place, noise)]
        tailed = with_tails(noise, left)
        if tailed is None:
            break
        found.append(Measured(scales, level, unit, place, tailed))
        weights = tailed.weights(left)
    if apart is not None:
        found.append(Measured(scales, level, unit, *apart))
    return found
