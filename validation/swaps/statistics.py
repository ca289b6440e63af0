"""The tests of the panel, each a statistic of whom is taken for the truth, for all swaps at once.

A test that learns must learn anew for every swap, or it has seen the truth it judges. Here it is a
ridge regression on the features of :mod:`.features`: with S their covariance over all candidates,
which no swap changes, and phi_i(c) those of candidate c,

    w_b = (S + lambda)^{-1} sum_i phi_i(c_bi)

is the discriminant between truth and draws, one matrix product for all swaps. Scores of a fold of
the pairs come from the w of the others.

- *sbc*, *tarp*, *hpd*: ranks of theta_j, of the distance to a random point, and of log q.
- *score_rank*: the truth's score among those of q's draws at its x; *conformal_c2st*: among those
  of q at all x.
- *colt_identity*: ranks of the distance to a point theta_l(x); the supremum over balls is taken
  over maps theta_l, constant and linear in what is known of x, in the frame of q's core.
- *c2st*, where all x are asked about: the mean square of the discriminant over all candidates;
  *lc2st*, at an x_o: the same there, with the pairs near x_o alone, so near as the half of them
  with the smallest distance.

Distances of ranks from uniform are Neyman's smooth statistic, the sum of the squares of the first
three Legendre moments, which sees a shift and a wrong width with a fraction of the pairs that the
distance of Kolmogorov and Smirnov needs.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from simulators.random import child_seed, torch_generator

from . import rest
from .candidates import Candidates, among
from .features import Seen, legendre, principal

_FOLDS = 5
_RIDGE = 30.0  # over the number of pairs: errors of a fifth of a column's spread are typical
_MAPS, _MAPS_AT_ONCE = 96, 24  # balls' centres, as maps of x
_POOLED = 8  # candidates an x in the pool of scores that conformal ranks are taken in
_MOMENTS = 3


def statistics_of(
    candidates: Candidates, features: Seen, chosen: Tensor, seed: int
) -> dict[str, Tensor]:
    """Each test's statistic for every choice of the truth (1 + B, N): (1 + B,) by name."""
    found = {
        "sbc": _largest(features.ranks, chosen),
        "tarp": _largest(_to_a_point(features, child_seed(seed, 3)), chosen),
        "hpd": _largest(features.density[..., None], chosen),
        "colt_identity": _in_balls(features, candidates, chosen, child_seed(seed, 4)),
    }
    if candidates.rest is not None:
        found["rest_of_x"] = rest.statistic(candidates.rest, features.ranks, chosen)
    learned = _by_scores(features, chosen, child_seed(seed, 5))
    if candidates.distance is not None:
        learned["lc2st"] = _at_x_o(features, candidates.distance, chosen)
        del learned["c2st"]  # it speaks of all x
    return found | learned


def _largest(ranks: Tensor, chosen: Tensor) -> Tensor:
    """Neyman's statistic of ranks (C, N, m) at the chosen places, the largest of m, (1 + B,)."""
    count, pairs, width = ranks.shape
    moments = legendre(ranks, _MOMENTS).reshape(count * pairs, width * _MOMENTS)
    sums = embedding_bag(places_of(chosen), moments, mode="sum")
    return (sums.square() / pairs).reshape(len(chosen), width, -1).sum(dim=2).amax(dim=1)


def places_of(chosen: Tensor) -> Tensor:
    """Rows of candidates (C, N, .) laid out one after another."""
    return chosen * chosen.shape[1] + torch.arange(chosen.shape[1])


def _to_a_point(features: Seen, seed: int) -> Tensor:
    """Ranks of the distance to one random point at each x, (C, N, 1)."""
    shape = features.white.shape[1:]
    points = 1.5 * torch.randn(shape, generator=torch_generator(seed))
    return among((features.white - points).norm(dim=2))[..., None]


def _in_balls(features: Seen, candidates: Candidates, chosen: Tensor, seed: int) -> Tensor:
    """The largest statistic of ranks of the distance to theta_l(x), over maps theta_l, (1 + B,)."""
    generator = torch_generator(seed)
    width = features.white.shape[2]
    context = principal(candidates.context, 2 * width)
    reach = torch.linspace(0.0, 2.5, _MAPS // 2)[:, None]
    constant = torch.randn(_MAPS // 2, width, generator=generator)
    constant = reach * constant / constant.norm(dim=1, keepdim=True)
    slopes = torch.randn(_MAPS // 2, context.shape[1], width, generator=generator)
    slopes = slopes / max(1, context.shape[1]) ** 0.5
    centres = torch.cat([constant[:, None].expand(-1, len(context), -1), context @ slopes])
    largest = torch.zeros(len(chosen))
    for some in centres.split(_MAPS_AT_ONCE):  # all at once take most of the memory
        rows = zip(features.white.transpose(0, 1), some.transpose(0, 1), strict=True)
        away = torch.stack([torch.cdist(theta, centre) for theta, centre in rows], dim=1)
        largest = torch.maximum(largest, _largest(among(away), chosen))
    return largest


def _covariance(features: Tensor, weights: Tensor) -> Tensor:
    """S of features (C, N, D), with weights (N,) of the pairs that sum to N."""
    width = features.shape[2]
    weighted = (features * weights[:, None].sqrt()).reshape(-1, width)
    return (weighted.T @ weighted).double() / len(weighted)


def _solver(covariance: Tensor, weights: Tensor) -> Tensor:
    """(S + lambda)^{-1}."""
    effective = float(weights.sum() ** 2 / weights.square().sum())
    ridge = _RIDGE / effective * torch.eye(len(covariance), dtype=torch.float64)
    inverse: Tensor = torch.linalg.inv(covariance + ridge)
    return inverse.float()


def _at_x_o(features: Seen, distance: Tensor, chosen: Tensor) -> Tensor:
    """The mean square over q's draws at x_o of the discriminant there, (1 + B,)."""
    weights = nearness(distance)
    columns = features.columns
    solver = _solver(_covariance(columns, weights), weights)
    weighted = (columns * weights[:, None]).flatten(0, 1)
    sums = embedding_bag(places_of(chosen), weighted, mode="sum") / len(distance)
    local = slice(features.num_local)
    w = (sums @ solver)[:, local]
    here = columns[..., local].flatten(0, 1)
    return ((w @ (here.T @ here / len(here))) * w).sum(dim=1)


def nearness(distance: Tensor) -> Tensor:
    """Weights (N,) that fall with the MSW distance from x_o, with mean 1.

    Epanechnikov's, to zero at twice the distance within which half of the pairs lie.
    """
    half = distance.median().clamp_min(1e-30)
    weights = (1.0 - (distance / (2.0 * half)).square()).clamp_min(0.0)
    return weights * (len(weights) / weights.sum())


def _by_scores(features: Seen, chosen: Tensor, seed: int) -> dict[str, Tensor]:
    """Tests of the scores of pairs by the discriminant of the other folds, (1 + B,) each."""
    columns = features.columns
    count, pairs, _ = columns.shape
    everyone = torch.ones(pairs)
    covariance = _covariance(columns, everyone)
    solver = _solver(covariance, everyone)
    flat, places = columns.flatten(0, 1), places_of(chosen)
    order = torch.randperm(pairs, generator=torch_generator(seed))
    folds = order.tensor_split(_FOLDS)
    sums = torch.stack([embedding_bag(places[:, rows], flat, mode="sum") for rows in folds])
    whole = sums.sum(dim=0)
    same_x, all_x = [], []
    for rows, own in zip(folds, sums, strict=True):
        w = (whole - own) @ solver  # (1 + B, D)
        scores = (columns[:, rows].flatten(0, 1) @ w.T).reshape(count, len(rows), -1)
        truth = scores.gather(0, chosen[:, rows].T[None])[0]  # (rows, 1 + B)
        same_x.append((scores < truth).float().mean(dim=0))
        pool = scores[:_POOLED].flatten(0, 1).T.contiguous().sort(dim=1).values
        place = torch.searchsorted(pool, truth.T.contiguous())
        all_x.append((place.float() + 0.5) / (pool.shape[1] + 1))
    moments = legendre(torch.cat(all_x, dim=1), _MOMENTS).sum(dim=1)
    w = whole @ solver / pairs
    return {
        "c2st": ((w @ covariance.float()) * w).sum(dim=1),
        "score_rank": torch.cat(same_x).mean(dim=0),
        "conformal_c2st": (moments.square() / pairs).sum(dim=1),
    }
