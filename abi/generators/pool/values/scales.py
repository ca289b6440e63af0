"""On which scale a value is best described: its own, that of its square root, or its logarithm.

The noise of a count grows as the square root of its mean, that of a size as the mean itself. Of
values that are never negative the scale is taken on which a linear model with normal noise gives
what was simulated the highest density. A zero counts as half of the least that is not.

Source: Box & Cox (1964), "An analysis of transformations".
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .selection import selected

_ROOT, _LOG = 0.5, 0.0
_EXPONENTS = torch.tensor([1.0, _ROOT, _LOG])


class Scales(NamedTuple):
    """Exponents 1, 1/2, or 0, of a logarithm, and what lesser values count as, (p,) each."""

    exponent: Tensor
    least: Tensor

    def of(self, x: Tensor) -> Tensor:
        """The values (n, p) on these scales."""
        positive = x.maximum(self.least)
        bent = torch.where(self.exponent == _LOG, positive.log(), positive.sqrt())
        return torch.where(self.exponent == 1.0, x, bent)

    def log_slope(self, x: Tensor) -> Tensor:
        """Log of the derivative but for a constant, (n, p)."""
        slope = (self.exponent - 1.0) * x.maximum(self.least).log()
        return torch.where(self.exponent == _ROOT, slope - torch.tensor(2.0).log(), slope)


def best_scales(terms: Tensor, x: Tensor) -> Scales:
    """Those of values x (n, p) that vary, by models that are linear in terms (n, t), float64."""
    positive = x.where(x > 0.0, torch.inf).amin(dim=0)
    least = torch.where(positive.isfinite(), 0.5 * positive, 1.0)
    best = Scales(torch.ones(x.shape[1], dtype=x.dtype), least)
    possible = ((x >= 0.0).all(dim=0) & positive.isfinite()).nonzero()[:, 0]
    if len(possible):
        at = x[:, possible]
        scores = torch.stack([_density(terms, at, scales) for scales in _tried(at)])
        best.exponent[possible] = _EXPONENTS[scores.argmax(dim=0)].to(x)
    return best


def best_mass(terms: Tensor, x: Tensor) -> Tensor:
    """Mean log probability of counts x (n, p) there, of the cells half a count to each side, (p,).

    The density at a count says little: where most are 0, it grows without end.
    """
    return torch.stack([_mass(terms, x, scales) for scales in _tried(x)]).amax(dim=0)


def _tried(x: Tensor) -> list[Scales]:
    """The three scales for values x (n, p) of 0 or more, of which not all are 0."""
    least = 0.5 * x.where(x > 0.0, torch.inf).amin(dim=0)
    return [Scales(torch.full_like(least, float(exponent)), least) for exponent in _EXPONENTS]


def _left(terms: Tensor, on: Tensor) -> Tensor:
    """What a linear model leaves of values on a scale (n, p)."""
    sd = on.std(dim=0)
    ones = torch.ones(len(on), 1, dtype=on.dtype)
    return sd * selected(terms, (on - on.mean(dim=0)) / sd, ones).left


def _density(terms: Tensor, x: Tensor, scales: Scales) -> Tensor:
    """Mean log density of each value but for a constant, (p,)."""
    width = _left(terms, scales.of(x)).square().mean(dim=0).sqrt()
    return scales.log_slope(x).mean(dim=0) - width.log()


def _mass(terms: Tensor, x: Tensor, scales: Scales) -> Tensor:
    """Mean log probability of the cell of each count, (p,)."""
    on = scales.of(x)
    left = _left(terms, on)
    width = left.square().mean(dim=0).sqrt()
    middle = on - left
    above = (scales.of(x + 0.5) - middle) / width
    below = (scales.of((x - 0.5).clamp_min(0.5)) - middle) / width
    below = torch.where(x > 0.0, below, -torch.inf)
    flipped = below > 0.0  # differences of small numbers are taken in the lower tail
    above, below = torch.where(flipped, -below, above), torch.where(flipped, -above, below)
    top: Tensor = torch.special.log_ndtr(above)
    bottom: Tensor = torch.special.log_ndtr(below)
    return (top + torch.log1p(-(bottom - top).exp())).mean(dim=0)
