"""At which density a region ends, by q's draws and by theta that its training has not seen.

The edge leaves out one of q's draws in ten thousand. Flows of a queue have wide thin tails that no
theta lies in: theta held out, each as far below the median of q's log density at its own x as it
lies, say how far down the posterior may reach. Where 200 of them or more were held out, all but
.5% and two nats to spare draw the edge nearer.

Fewer may only where the region is not worth making otherwise: their farthest, and beyond it as much
as an exponential law that begins at their median gives to as many as were not seen. First flows of
200 to 500 pairs have tails that reach ten nats down, and their regions held so much of the prior
that none was made: of thirty epidemics, 1,000 calls, C2ST of two fell from .71 and .69 to .54 by
this, and the mean by .01; of fifty-five pairs of moons ten changed, and the mean did not. Trusted
at once, it cost those as much whose first regions are good.
"""

from __future__ import annotations

import math

from torch import Tensor

_LEFT_OUT, _CAUTION = 0.005, 2.0  # share of held-out theta beyond the edge, and nats to spare
_LEAST = 30  # theta, of which the farthest says something


def threshold(log_density: Tensor, outside: float, drops: Tensor | None, few: bool) -> float:
    """The log density of q at its region's edge, given that of draws of q.

    Args:
        log_density: of the draws, (m,).
        outside: share of them beyond the edge.
        drops: how far theta held out lie below the median at their x, (n,).
        few: whether fewer than 200 of these count.
    """
    by_draws = float(log_density.quantile(outside))
    farthest = None if drops is None else _farthest(drops, few)
    if farthest is None:
        return by_draws
    return max(by_draws, float(log_density.median()) - farthest - _CAUTION)


def _farthest(drops: Tensor, few: bool) -> float | None:
    """How far down all but .5% of theta like those held out (n,) lie; None where these are few."""
    unseen = -math.log(len(drops) * _LEFT_OUT) if len(drops) else math.inf
    if unseen <= 0.0:
        return float(drops.quantile(1.0 - _LEFT_OUT))
    if not few or len(drops) < _LEAST:
        return None
    middle = drops.median()
    return float(drops.max() + unseen * (drops[drops >= middle].mean() - middle))
