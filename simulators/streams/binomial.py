"""Compiled binomial draws: one uniform, spent on the counts in order of their distance to the mode.

The probability at the mode is known by the gamma function, and each neighbour's by a ratio, so a
draw costs about as many steps as the law has standard deviations times two, whatever its mean.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit

from .ziggurat import draw_uniform


@njit
def draw_binomial(trials: int, chance: float, s: Any) -> Any:
    """Successes among ``trials`` of a ``chance`` each, as a float, and the stream after them."""
    u, s = draw_uniform(s)
    if not 0.0 < chance < 1.0:  # a chance that is not a number gives a count that is none
        return trials * chance, s
    mode = min(math.floor((trials + 1) * chance), trials)
    odds = chance / (1.0 - chance)
    up = math.exp(
        math.lgamma(trials + 1.0) - math.lgamma(mode + 1.0) - math.lgamma(trials - mode + 1.0)
        + mode * math.log(chance) + (trials - mode) * math.log1p(-chance)
    )  # fmt: skip
    down, above, below = up, mode, mode
    u -= up
    while u > 0.0 and (above < trials or below > 0):
        if above < trials:
            up *= odds * (trials - above) / (above + 1.0)
            above += 1
            u -= up
            if u <= 0.0:
                return float(above), s
        if below > 0:
            down *= below / (odds * (trials - below + 1.0))
            below -= 1
            u -= down
            if u <= 0.0:
                return float(below), s
    return float(mode), s
