"""The region of a model: where its edge lies, a box about it, and how large it must be.

By draws of the model, which are made once, whatever is asked of the edge (:mod:`.edge`); by the
pairs that must lie inside, and by what the prior can fill, as :mod:`.finding` says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from simulators import Prior
from simulators.random import child_seed

from ...generators.base import GenerativeModel
from ...generators.conditional import ConditionalFlows
from .drawing import PER_DRAW, can_resample, draw_by_rejection, is_wide
from .edge import threshold
from .region import AnyRegion, Region, SharedRegion

OUTSIDE = 1e-4  # alpha
_LEAST_PAIRS, _LEAST_SHARE = 5, 0.05  # inside
_DRAWS = 20_000  # of q, that place its threshold and its box
FEW_DRAWS = 5_000  # where the edge is no far tail
_MARGIN = 0.05  # the box of these draws is widened by this share of its sides
_TRIED = 20_000  # draws of the prior that tell how large a region must be


@dataclass(frozen=True, eq=False)
class Placed:
    """What regions of a model are placed by.

    Attributes:
        model: q, with a density.
        prior: what a region is filled from.
        before: the regions so far, which the theta must lie in too.
        seed: of the draws.
        theta: of the pairs that q has learned from (n, d), of which some must lie inside.
        num_draws: of q.
    """

    model: GenerativeModel
    prior: Prior
    before: tuple[AnyRegion, ...]
    seed: int
    theta: Tensor | None = None
    num_draws: int = _DRAWS

    def region(self, *, few: bool = False) -> Region:
        """That whose edge theta held out draw nearer; few of them, too, if they may."""
        return self.ending(OUTSIDE, self._drops, few=few)

    def ending(self, outside: float, drops: Tensor | None = None, *, few: bool = False) -> Region:
        """That which leaves out this share of q's draws, or more where drops (n,) say so.

        Where theta inside must be found among the prior's own draws, for it offers no density or q
        cannot be spread out, the region holds at least about one in 500 of them.
        """
        draws, log_density = self._drawn
        log_threshold = threshold(log_density, outside, drops, few)
        draws = draws[log_density >= log_threshold]
        region = Region(self.model, log_threshold, draws.amin(dim=0), draws.amax(dim=0))
        if self.theta is not None:
            least = max(_LEAST_PAIRS, math.ceil(_LEAST_SHARE * len(self.theta)))
            region = _lowered(region, self.theta, least)
        if not can_resample(self.model, self.prior):
            found, tried = self._filling
            # The share of these that must stay inside is what may be filled.
            region = _lowered(region, found, math.ceil(tried / PER_DRAW))
        margin = _MARGIN * (region.upper - region.lower)
        return replace(region, lower=region.lower - margin, upper=region.upper + margin)

    @cached_property
    def _drawn(self) -> tuple[Tensor, Tensor]:
        """Draws of q (m, d) and their log densities (m,)."""
        draws = self.model.sample(self.num_draws, child_seed(self.seed, 0))
        return draws, self.model.log_prob(draws)

    @cached_property
    def _drops(self) -> Tensor | None:
        """How far theta held out lie below q's median at their x, (n,)."""
        return self.model.drops() if is_wide(self.model) else None

    @cached_property
    def _filling(self) -> tuple[Tensor, int]:
        """Draws of the prior inside the regions so far, and how many were looked at."""
        return draw_by_rejection(self.prior, self.before, _TRIED, child_seed(self.seed, 1))


def shared_region(
    q: ConditionalFlows,
    x: Tensor,
    prior: Prior,
    before: tuple[AnyRegion, ...],
    seed: int,
    theta: Tensor | None = None,
) -> SharedRegion:
    """Where the posterior lies at any of several x (K, p): the union of their regions.

    The prior cut to it holds each of the posteriors, so that one set of pairs serves them all.
    """
    q = replace(q, model=q.model.alone)
    drops = q.model.drops()  # each at an x of its own: the same for all
    keys = [child_seed(seed, row) for row in range(len(x))]
    models = [q.at(row) for row in x]
    parts = [
        Placed(model, prior, before, key, theta, FEW_DRAWS).ending(OUTSIDE, drops)
        for model, key in zip(models, keys, strict=True)
    ]
    return SharedRegion(
        q.model,
        torch.stack([model.context for model in models if model.context is not None]),
        torch.tensor([part.log_threshold for part in parts], dtype=torch.float64),
        torch.stack([part.lower for part in parts]),
        torch.stack([part.upper for part in parts]),
    )


def _lowered(region: Region, theta: Tensor, count: int) -> Region:
    """The region with its edge so far out that as many of theta (n, d), or all, lie inside."""
    if not len(theta):
        return region
    log_q = region.model.log_prob(theta)
    lowest = float(log_q.topk(min(count, len(theta))).values[-1])
    if lowest >= region.log_threshold:
        return region
    held = theta[log_q >= lowest]
    lower, upper = region.lower.minimum(held.amin(dim=0)), region.upper.maximum(held.amax(dim=0))
    return Region(region.model, lowest, lower, upper)
