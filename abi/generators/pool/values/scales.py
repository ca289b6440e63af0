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
    if not len(possible):
        return best
    at, least = x[:, possible], least[possible]
    tried = [Scales(torch.full_like(least, exponent), least) for exponent in (1.0, _ROOT, _LOG)]
    scores = torch.stack([_score(terms, at, scales) for scales in tried])
    best.exponent[possible] = torch.stack([scales.exponent for scales in tried]).gather(
        0, scores.argmax(dim=0)[None]
    )[0]
    return best


def _score(terms: Tensor, x: Tensor, scales: Scales) -> Tensor:
    """Mean log density of each value but for a constant, (p,)."""
    on = scales.of(x)
    sd = on.std(dim=0)
    left = selected(terms, (on - on.mean(dim=0)) / sd, torch.ones(len(x), dtype=x.dtype)).left
    width = sd * left.square().mean(dim=0).sqrt()
    return scales.log_slope(x).mean(dim=0) - width.log()
