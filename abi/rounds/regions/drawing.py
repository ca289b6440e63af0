"""Draws of the prior inside regions: its own that lie there, or draws of q resampled."""

from __future__ import annotations

from functools import partial
from typing import TypeGuard, cast

import torch
from torch import Tensor

from simulators import Prior, sample_prior
from simulators.random import child_seed, torch_generator

from ...generators.base import GenerativeModel, WideModel
from ...generators.support import prior_log_prob
from .region import AnyRegion, Region, inside_all

PER_DRAW = 500  # draws of the prior that one theta inside may cost
STRETCHES = (1.3, 1.6, 2.0, 2.5)  # of q's base, the one with the largest sample is taken
_FIRST, _CHUNK = 10_000, 200_000  # draws of the prior looked at together, at first and at most
_MORE = 1.1  # times the draws that so far each theta inside has cost
_TRIALS, _POOL = 2_000, 20  # candidates to choose the stretch by; candidates a draw
_PROBE = 100  # draws that say whether there are any


def sample_inside(
    prior: Prior, regions: tuple[AnyRegion, ...], num_samples: int, seed: int
) -> Tensor:
    """Draw theta (n, d) from the prior cut to the regions, n = num_samples or, at worst, fewer."""
    if not regions:
        return sample_prior(prior, num_samples, seed)
    spread_out = can_resample(regions[-1].model, prior)
    theta, _ = draw_by_rejection(
        prior, regions, num_samples, child_seed(seed, 0), hopeless=spread_out
    )
    if len(theta) < num_samples and spread_out:
        theta = _resampled(prior, regions, num_samples, child_seed(seed, 1))
    return theta[:num_samples]


def can_fill(prior: Prior, regions: tuple[AnyRegion, ...], seed: int) -> bool:
    """Whether theta are found inside the regions; of two that contradict each other none are."""
    return len(sample_inside(prior, regions, _PROBE, seed)) > _PROBE // 2


def can_resample(model: GenerativeModel, prior: Prior) -> TypeGuard[WideModel]:
    """Whether the weights p / q of spread-out draws of q are known."""
    return hasattr(prior, "log_prob") and is_wide(model)


def is_wide(model: GenerativeModel) -> TypeGuard[WideModel]:
    """Whether draws of a model can be spread out."""
    return isinstance(model, WideModel)


def draw_by_rejection(
    prior: Prior,
    regions: tuple[AnyRegion, ...],
    num_samples: int,
    seed: int,
    *,
    hopeless: bool = False,
) -> tuple[Tensor, int]:
    """Draws of the prior inside the regions, and how many were looked at.

    With ``hopeless`` it gives up once the first chunk shows that the limit will not do.
    """
    limit = max(2 * PER_DRAW * num_samples, _CHUNK)  # twice what a region is made for
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


def _resampled(prior: Prior, regions: tuple[AnyRegion, ...], num_samples: int, seed: int) -> Tensor:
    """Draws of the last region's q, spread out, and resampled to the prior without repetition.

    With u uniform, the candidates of largest log(u) / w are a weighted sample without replacement
    (Efraimidis & Spirakis 2006): no theta comes twice, and where the weights are very uneven the
    sample is nearer to q than to the prior, in the middle of T where q is large.
    """
    candidates = partial(weighted_draws, prior, regions[-1])
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
    prior: Prior, region: AnyRegion, count: int, stretch: float, seed: int
) -> tuple[Tensor, Tensor]:
    """Stretched draws of the region's q, and log p(theta) 1_T(theta) / q(theta).

    Of a shared region each part gives as many, for the theta that lie in no part before it: the
    cells make up the whole, each with a proposal of its own.
    """
    if isinstance(region, Region):
        return _weighted(prior, region, count, stretch, seed)
    drawn = []
    for number, part in enumerate(region.parts):
        each = -(-count // len(region.parts))
        theta, log_weights = _weighted(prior, part, each, stretch, child_seed(seed, number))
        possible = log_weights.isfinite().nonzero()[:, 0]
        for other in region.parts[:number]:
            taken = other.contains(theta[possible])
            log_weights[possible[taken]] = -torch.inf
            possible = possible[~taken]
        drawn.append((theta, log_weights))
    return torch.cat([theta for theta, _ in drawn]), torch.cat([logs for _, logs in drawn])


def _weighted(
    prior: Prior, region: Region, count: int, stretch: float, seed: int
) -> tuple[Tensor, Tensor]:
    q = cast("WideModel", region.model)  # as whoever asks has found out
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
