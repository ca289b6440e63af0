"""Regions of theta that hold the posterior, and draws of the prior inside them.

A round ends with a distribution q over theta, fitted to what was simulated so far. Its high-density
region

    T = { theta : q(theta) >= c },   c the alpha-quantile of q(theta) under its own draws,

holds the posterior at x_o up to about alpha. A flow may have wide thin tails that no theta lies in;
there c is larger: as far below the median of q as all but 0.5% of the theta held out from its
training lie below that of q at their own x, and two nats farther. Regions of the M/G/1 queue have a
third of the volume then, and hold as much of the exact posterior. To let theta held out lower c as
well won nothing where flows are too sure of themselves: the larger regions cost what they saved.

Pairs whose theta come from the prior cut to T have the same theta | x_o: the prior's density
cancels, and each of them serves the next round. Regions are nested: a theta must lie in all of
those before it.

A region has a price. At most x its edge cuts through the posterior, and a flow must learn the cut;
and what q leaves out by mistake no later round brings back. A region is worth it where it holds a
quarter of the one before or less, and is not made where it holds more: of ten-dimensional Gaussians
and GLMs each region held half of the one before, the third a tenth less of the exact posterior
than the first, and the answers' sds were too small by as much.

The prior need only be sampled. Where too few of its draws fall into T and it offers a density,
draws of q, spread out, are resampled with weights p(theta) 1_T(theta) / q(theta). Where it offers
none, c is lowered until its draws fill the region: T is then larger than it could be, and as valid.

Source: truncated proposals are Deistler, Goncalves & Macke (2022), alpha included: at 1e-3 the
cosine model's regions are half as wide, but heavy tails are lost elsewhere. The rules for held-out
theta and for a prior without a density are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TypeGuard

import torch
from torch import Tensor

from simulators import Prior, sample_prior
from simulators.random import child_seed, torch_generator

from ..generators.base import GenerativeModel, WideModel
from ..generators.flow import FlowModel
from ..generators.support import prior_log_prob

OUTSIDE = 1e-4  # alpha
_WORTH = 0.25  # of theta inside the regions before
_LEFT_OUT, _CAUTION = 0.005, 2.0  # share of held-out theta beyond the edge, and nats to spare
_DRAWS = 20_000  # of q, that place its threshold and its box
_FEW_DRAWS = 5_000  # where the edge is no far tail
_MARGIN = 0.05  # the box of these draws is widened by this share of its sides
_FIRST, _CHUNK = 10_000, 200_000  # draws of the prior looked at together, at first and at most
_MORE = 1.1  # times the draws that so far each theta inside has cost
_PER_DRAW = 500  # draws of the prior that one theta inside may cost
STRETCHES = (1.3, 1.6, 2.0, 2.5)  # of q's base, the one with the largest sample is taken
_TRIALS, _POOL = 2_000, 20  # candidates to choose the stretch by; candidates a draw


@dataclass(frozen=True, eq=False)
class Region:
    """{theta : q(theta) >= exp(log_threshold)} inside a box, (d,) each, that is quick to check."""

    model: GenerativeModel
    log_threshold: float
    lower: Tensor
    upper: Tensor

    def contains(self, theta: Tensor) -> Tensor:
        """Whether each row lies in the region, (n, d) -> (n,)."""
        inside = ((theta >= self.lower) & (theta <= self.upper)).all(dim=1)
        if inside.any():
            inside[inside.clone()] = self.model.log_prob(theta[inside]) >= self.log_threshold
        return inside


def narrowed(region: Region) -> Region:
    """The region with no more of its model than membership needs: without encoders."""
    model = region.model
    if isinstance(model, FlowModel):
        return replace(region, model=replace(model, encoders=None, held=()))
    return region


def inside_all(regions: tuple[Region, ...], theta: Tensor) -> Tensor:
    """Whether each row lies in every region, (n, d) -> (n,); the narrowest is asked first."""
    inside = torch.ones(len(theta), dtype=torch.bool)
    for region in reversed(regions):
        rows = inside.nonzero()[:, 0]
        inside[rows] = region.contains(theta[rows])
    return inside


def high_density_region(
    model: GenerativeModel,
    prior: Prior,
    before: tuple[Region, ...],
    seed: int,
    outside: float | None = None,
) -> Region:
    """The region of a model, no narrower than the prior can fill.

    Where theta inside must be found among the prior's own draws, for it offers no density or q
    cannot be spread out, the region holds at least about one in 500 of them.

    Args:
        model: q, with a density.
        prior: what the region is filled from.
        before: the regions so far, which the theta must lie in too.
        seed: of the draws that place the threshold.
        outside: share of q's draws beyond the edge, whatever theta held out say; as above when
            omitted.
    """
    draws = model.sample(_DRAWS if outside is None else _FEW_DRAWS, child_seed(seed, 0))
    log_density = model.log_prob(draws)
    if outside is None:
        log_threshold = _threshold(log_density, model.drops() if is_wide(model) else None)
    else:
        log_threshold = float(log_density.quantile(outside))
    draws = draws[log_density >= log_threshold]
    lower, upper = draws.amin(dim=0), draws.amax(dim=0)
    if not can_resample(model, prior):
        theta, tried = _rejection(prior, before, _CHUNK // 10, child_seed(seed, 1))
        fillable = tried / (_PER_DRAW * len(theta))  # the share of these that must stay inside
        log_q = model.log_prob(theta)
        lowest = float(log_q.quantile(max(0.0, 1.0 - fillable)))
        if lowest < log_threshold:
            log_threshold, held = lowest, theta[log_q >= lowest]
            lower, upper = lower.minimum(held.amin(dim=0)), upper.maximum(held.amax(dim=0))
    margin = _MARGIN * (upper - lower)
    return Region(model, log_threshold, lower - margin, upper + margin)


def worthwhile(region: Region, theta: Tensor) -> bool:
    """Whether a region leaves out enough of theta (n, d), draws inside the regions before it."""
    return bool(region.contains(theta).float().mean() <= _WORTH)


def _threshold(log_density: Tensor, drops: Tensor | None) -> float:
    """The log density of q at its region's edge, given that of draws of q.

    Flows of a queue have wide thin tails that no theta lies in: where enough theta were held out,
    they may draw the edge nearer, to where it leaves out ``_LEFT_OUT`` of them, and some nats.
    """
    by_draws = float(log_density.quantile(OUTSIDE))
    if drops is None or len(drops) * _LEFT_OUT < 1.0:
        return by_draws
    by_theta = float(log_density.median() - drops.quantile(1.0 - _LEFT_OUT) - _CAUTION)
    return max(by_draws, by_theta)


def sample_inside(prior: Prior, regions: tuple[Region, ...], num_samples: int, seed: int) -> Tensor:
    """Draw theta (n, d) from the prior cut to the regions, n = num_samples or, at worst, fewer."""
    if not regions:
        return sample_prior(prior, num_samples, seed)
    last = regions[-1].model
    q = last if can_resample(last, prior) else None
    hopeless = q is not None
    theta, _ = _rejection(prior, regions, num_samples, child_seed(seed, 0), hopeless=hopeless)
    if len(theta) < num_samples and q is not None:
        theta = _resampled(prior, q, regions, num_samples, child_seed(seed, 1))
    return theta[:num_samples]


def can_resample(model: GenerativeModel, prior: Prior) -> TypeGuard[WideModel]:
    """Whether the weights p / q of spread-out draws of q are known."""
    return hasattr(prior, "log_prob") and is_wide(model)


def is_wide(model: GenerativeModel) -> TypeGuard[WideModel]:
    """Whether draws of a model can be spread out."""
    return isinstance(model, WideModel)


def _rejection(
    prior: Prior,
    regions: tuple[Region, ...],
    num_samples: int,
    seed: int,
    *,
    hopeless: bool = False,
) -> tuple[Tensor, int]:
    """Draws of the prior inside the regions, and how many were looked at.

    With ``hopeless`` it gives up once the first chunk shows that the limit will not do.
    """
    limit = max(2 * _PER_DRAW * num_samples, _CHUNK)  # twice what a region is made for
    kept: list[Tensor] = []
    found = tried = 0
    chunk = max(_FIRST, num_samples) if regions else num_samples
    while found < num_samples and tried < limit:
        theta = sample_prior(prior, min(chunk, _CHUNK), child_seed(seed, tried))
        tried += len(theta)
        theta = theta[inside_all(regions, theta)]
        kept.append(theta)
        found += len(theta)
        if hopeless and found * limit < num_samples * tried:
            break
        chunk = int(_MORE * (num_samples - found) * tried / max(found, 1)) + _FIRST // 10
    return torch.cat(kept), tried


def _resampled(
    prior: Prior, q: WideModel, regions: tuple[Region, ...], num_samples: int, seed: int
) -> Tensor:
    """Draws of the last region's q, spread out, and resampled to the prior without repetition.

    With u uniform, the candidates of largest log(u) / w are a weighted sample without replacement
    (Efraimidis & Spirakis 2006): no theta comes twice, and where the weights are very uneven the
    sample is nearer to q than to the prior, in the middle of T where q is large.
    """
    candidates = partial(weighted_draws, prior, q, regions[-1])
    trials = [
        (_effective(candidates(_TRIALS, stretch, child_seed(seed, 0))[1]), stretch)
        for stretch in STRETCHES
    ]
    stretch = max(trials)[1]
    theta, log_weights = candidates(_POOL * num_samples, stretch, child_seed(seed, 1))
    uniform = torch.rand(len(theta), generator=torch_generator(child_seed(seed, 2))).double()
    keys = torch.log(-torch.log(uniform)) - log_weights  # increases as log(u) / w falls
    possible = int(log_weights.isfinite().sum())
    # Some lie outside the regions before, as q may at its edge.
    chosen = keys.topk(min(2 * num_samples, possible), largest=False).indices
    return theta[chosen[inside_all(regions[:-1], theta[chosen])]]


def weighted_draws(
    prior: Prior, q: WideModel, region: Region, count: int, stretch: float, seed: int
) -> tuple[Tensor, Tensor]:
    """Stretched draws of q, and log p(theta) 1_T(theta) / q(theta)."""
    theta, log_density = q.sample_wide(count, stretch, seed)
    inside = region.contains(theta)
    log_weights = torch.full((count,), -torch.inf, dtype=torch.float64)
    log_prior = prior_log_prob(prior, theta[inside])
    log_weights[inside] = (log_prior - log_density[inside]).double()
    return theta, log_weights


def _effective(log_weights: Tensor) -> float:
    """The effective sample size (sum w)^2 / sum w^2."""
    if not log_weights.isfinite().any():
        return 0.0
    weights = (log_weights - log_weights.max()).exp()
    return float(weights.sum() ** 2 / (weights**2).sum())
