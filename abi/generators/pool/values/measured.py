"""The law of values that are measured, as a linear model of terms and the law of its errors."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .noise import Noise, fit_noise
from .scales import Scales, best_scales
from .selection import selected
from .terms import terms_of

_PASSES = 6  # by which tails and coefficients agree


class Measured(NamedTuple):
    """Scales, then level and unit (k,) on these, coefficients (1 + t, k), and noise in units."""

    scales: Scales
    level: Tensor
    unit: Tensor
    place: Tensor
    noise: Noise


def fit_measured(u: Tensor, x: Tensor, *, tailed: bool) -> Measured:
    """The law of values x (n, k), which vary, given numbers u (n, c), float64."""
    terms = terms_of(u, x.shape[1])
    scales = best_scales(terms, x)
    on = scales.of(x)
    level, unit = on.mean(dim=0), on.std(dim=0)
    z, weights = (on - level) / unit, torch.ones(len(x), dtype=x.dtype)
    for _ in range(_PASSES):
        place, left = selected(terms, z, weights)
        noise = fit_noise(left, weights, tailed=tailed)
        if noise.is_normal:
            break
        weights = noise.weights(left)
    return Measured(scales, level, unit, place, noise)
