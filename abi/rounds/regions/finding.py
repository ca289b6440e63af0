"""Regions of theta that hold the posterior, and draws of the prior inside them.

A round ends with a distribution q over theta, fitted to what was simulated so far. Its high-density
region

    T = { theta : q(theta) >= c },   c the alpha-quantile of q(theta) under its own draws,

holds the posterior at x_o up to about alpha. A flow may have wide thin tails that no theta lies in;
there c is larger, by what theta held out from its training say (:mod:`.edge`). Regions of the
M/G/1 queue have a third of the volume then, and hold as much of the exact posterior. To let theta
held out lower c as well won nothing where flows are too sure of themselves: the larger regions cost
what they saved.

Pairs whose theta come from the prior cut to T have the same theta | x_o: the prior's density
cancels, and each of them serves the next round. Regions are nested: a theta must lie in all of
those before it, but for those that turn out to cut the answer (:mod:`abi.rounds.regions.leaning`).

Where few of the pairs lie inside, q is a guess, for next to no theta was simulated there. First
answers to the queue, from 200 to 600 pairs, were so sure of themselves that regions with two pairs
or none held 80% of the exact posterior, 31%, nothing; what they leave out is lost. c is therefore
lowered until a twentieth of the pairs lie inside, five at least: a posterior that is a millionth of
the prior takes five rounds (:mod:`abi.rounds.schedule` adds them). Fewer at once cost more: five
pairs of 228 left a tenth of a predator-prey posterior inside, and C2ST fell from .87 to .62.

A region has a price. At most x its edge cuts through the posterior, and a flow must learn the cut;
and what q leaves out by mistake no later round brings back. A region is worth it where it holds a
quarter of the one before or less, and is not made where it holds more: of ten-dimensional Gaussians
and GLMs each region held half of the one before, the third a tenth less of the exact posterior
than the first, and the answers' sds were too small by as much. Of three parameters or fewer, whose
regions have less edge, it is also worth it where it at least doubles the pairs inside that the next
round has: of an epidemic of two, 1,000 calls, three observations, C2ST fell from .73 to .69. So is
a first region of four. First answers to the cosine model, from 228 pairs, fill a quarter to six
tenths of a prior a hundred times as wide as the posterior, and regions that waited for less came
too late. Later ones of four won nothing (10,000 calls), and first ones of five left out a fifth of
the posterior (SLCP with distractors, 343 pairs).

Where values are many and measured, q is the flows pooled with their likelihood, if that helps: of
eight waves, whose regions are some times smaller so, mean C2ST fell from .57 to .56, and means of
seven were within .15 exact sds, of five before. (Of predators and prey, of epidemics and of a
thrown ball, five to eight values a parameter, C2ST stayed as it was, for a fifth more time: "many"
begins at ten.)

Of more than three parameters no region is made while flows add nothing to a linear Gaussian law of
theta given x: that is as well found far from x_o, and the cut would bend it. Of ten-dimensional
Gaussians at 10,000 calls two observations in three were cut; C2ST fell from .62 and .61 to .53 and
.52.

The prior need only be sampled. Where too few of its draws fall into T and it offers a density,
draws of q, spread out, are resampled with weights p(theta) 1_T(theta) / q(theta). Where it offers
none, c is lowered until its draws fill the region: T is then larger than it could be, and as valid.

Source: truncated proposals are Deistler, Goncalves & Macke (2022), alpha included: at 1e-3 the
cosine model's regions are half as wide, but heavy tails are lost elsewhere. The rules for held-out
theta and for a prior without a density are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from simulators import Prior
from simulators.random import child_seed

from ...generators.base import GenerativeModel
from ...generators.conditional import ConditionalFlows
from ...generators.flow import FlowModel
from .drawing import can_fill
from .leaning import leaned_on
from .placing import Placed, shared_region
from .region import AnyRegion

_WORTH = 0.25  # of theta inside the regions before
_MOST = 0.5  # of them, of more than a few parameters: no later region will be worth making
_FEW, _FEW_AT_FIRST = 3, 4  # parameters, of any region and of a first one
_GAIN = 2.0  # times as many pairs
_LEAST_KNOWN = 1_000  # pairs, of fewer an answer that fills them may know too little
_LEAST_HELD, _LITTLE, _SURE = 200, 0.05, 2.0  # theta held out; nats; standard errors


class Asked(Protocol):
    """As much of a problem as says where its answer lies."""

    @property
    def prior(self) -> Prior:
        """What a region is filled from."""
        ...

    @property
    def several(self) -> Tensor | None:
        """The x (K, p) that are asked about together; None where it is one, or all."""
        ...


@dataclass(frozen=True)
class Bounds:
    """Where the theta of the next round lie.

    Attributes:
        regions: in all of these.
        share: of theta so far that lie in the new one of them; None where none is new.
        left: regions that theta so far lie in, and the next need not.
        filled: whether the answer fills them, so that no later round is likely to narrow them.
    """

    regions: tuple[AnyRegion, ...]
    share: float | None = None
    left: tuple[AnyRegion, ...] = ()
    filled: bool = False


def bounds(
    model: GenerativeModel,
    asked: Asked,
    before: tuple[AnyRegion, ...],
    theta: Tensor,
    num_calls: int,
    seed: int,
) -> Bounds:
    """Where the next round draws theta from.

    There is a new region where it is worthwhile, or takes the place of some that the answer leans
    on, and can be filled.

    Args:
        model: the answer, which says where the posterior is at x_o, or at any of several x.
        asked: what is asked.
        before: the regions so far.
        theta: of the pairs so far (n, d), which lie inside these.
        num_calls: of the next round.
        seed: of the draws that place the region, and try whether it can be filled.
    """
    q, held, placed = ConditionalFlows.of(model), before, None
    if asked.several is None or q is None:
        leaned = leaned_on(model, before, child_seed(seed, 3))
        held = tuple(region for region in before if region not in leaned)
        placed = Placed(model, asked.prior, held, seed, theta)
        region: AnyRegion = placed.region()
    else:
        region = shared_region(q, asked.several, asked.prior, before, seed, theta)
    more = (*held, region)
    left = before if len(held) < len(before) else ()
    share = share_inside(region, theta)
    few = theta.shape[1] <= (_FEW if before else _FEW_AT_FIRST)
    wanted = left or worthwhile(region, theta, num_calls, share, few=few)
    if not wanted and placed is not None and few:
        nearer = placed.region(few=True)
        share_nearer = share_inside(nearer, theta)
        if worthwhile(nearer, theta, num_calls, share_nearer, few=few):
            more, share, wanted = (*held, nearer), share_nearer, True
    if not (wanted and can_fill(asked.prior, more, child_seed(seed, 2))):
        knows = theta.shape[1] > _FEW and len(theta) >= _LEAST_KNOWN
        return Bounds(before, filled=not wanted and knows and share > _MOST)
    return Bounds(more, share, left)


def share_inside(region: AnyRegion, theta: Tensor) -> float:
    """Of theta (n, d) those inside a region, as a share."""
    return float(region.contains(theta).float().mean())


def worthwhile(
    region: AnyRegion, theta: Tensor, num_calls: int, share: float, *, few: bool
) -> bool:
    """Whether a region leaves out enough of theta (n, d), draws inside the regions before it.

    Args:
        region: the one that was found.
        theta: of the pairs so far.
        num_calls: of the next round.
        share: of theta inside the region.
        few: whether parameters are so few that more pairs inside are worth its edge.
    """
    if theta.shape[1] > _FEW and _is_straight(region.model):
        return False
    if share <= _WORTH or not few:
        return share <= _WORTH
    spread = share * (len(theta) + num_calls)
    return share * len(theta) + num_calls >= _GAIN * spread


def _is_straight(model: GenerativeModel) -> bool:
    """Whether enough theta held out say that flows add next to nothing to their linear trend."""
    gains = model.gains() if isinstance(model, FlowModel) else torch.empty(0)
    if len(gains) < _LEAST_HELD:
        return False
    return float(gains.mean() + _SURE * gains.std() / math.sqrt(len(gains))) < _LITTLE
