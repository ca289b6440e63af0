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
    z, alike = (on - level) / unit, torch.ones(len(x), dtype=x.dtype)
    place, left = selected(terms, z, alike[:, None])
    normal = fit_noise(left, alike)
    found = [Measured(scales, level, unit, place, normal)]
    if (rows := _with_tails(terms, z, place, left, normal)) is not None:
        found.append(Measured(scales, level, unit, *rows))
    if (apart := fit_apart(u, terms, z, left, normal)) is not None:
        found.append(Measured(scales, level, unit, *apart))
    return found


def _with_tails(
    terms: Tensor, z: Tensor, place: Tensor, left: Tensor, noise: Noise
) -> tuple[Tensor, Noise] | None:
    """Coefficients and noise with tails of rows, from those without; None where no row gains."""
    tailed = with_tails(noise, left)
    for _ in range(_PASSES - 1):
        if tailed is None:
            return None
        weights = tailed.weights(left)
        place, left = selected(terms, z, weights[:, None])
        tailed = with_tails(fit_noise(left, weights), left)
    return None if tailed is None else (place, tailed)
