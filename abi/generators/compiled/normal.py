"""The base of every flow, N(0, I)."""

from __future__ import annotations

import math

from torch import Tensor

LOG_NORMAL = -0.5 * math.log(2.0 * math.pi)
"""At 0, of one value."""


def log_normal(base: Tensor) -> Tensor:
    """Its log density at base (n, d), (n,)."""
    return (LOG_NORMAL - 0.5 * base * base).sum(dim=1)
