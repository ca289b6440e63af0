"""Which terms a linear model needs: each value is given those that it surely hangs on, one by one.

The next term is the one that explains most of what the others have left, and it stays if

    n log(RSS before / RSS after) > 2 log(T k),

more than the best of T terms that mean nothing would reach by chance, at any of k values. Ten
sensors that see one parameter each then have two numbers to find apiece, and not eleven: of
ten-dimensional linear Gaussians, 1,000 calls, four observations, mean C2ST fell from .59 to .52.
(At a price of 2 log T squares and products came in by chance, and it was .55.)

Source: Chen, Billings & Luo (1989), "Orthogonal least squares methods", for the order; Foster &
George (1994), "The risk inflation criterion for multiple regression", for the price of a term.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .terms import weighted_products

_COLLINEAR = 1e-6  # of a term's variance, beyond the terms that are there
_EXPLAINED = 1e-12  # of a value's variance: what is left is rounding
_LEAST_ROWS = 4  # for each term


class Selected(NamedTuple):
    """Coefficients (1 + t, k), the first of them of 1, and errors (n, k) as of rows left out."""

    place: Tensor
    left: Tensor


def selected(terms: Tensor, z: Tensor, weights: Tensor) -> Selected:
    """Weighted least squares of values z (n, k) on the terms (n, t) that each of them needs.

    Float64; ``weights`` (n, k), or (n, 1) for all values alike, are 1 in the mean of rows. A term
    that does not vary is none.
    """
    count, origin = len(terms), (terms.mean(dim=0), z.mean(dim=0))
    s, y = terms - origin[0], z - origin[1]
    middle, level = weights.T @ s / count, (weights * y).mean(dim=0)
    gram = weighted_products(s, weights) / count - middle[:, :, None] * middle[:, None, :]
    shared = (weights * y).T @ s / count - level[:, None] * middle
    sd = gram.diagonal(dim1=1, dim2=2).clamp_min(0.0).sqrt()
    varies = sd > _COLLINEAR * terms.abs().amax(dim=0)
    unit = sd.where(varies, torch.inf)
    gram, shared = gram / unit[:, :, None] / unit[:, None, :], shared / unit
    rss = (weights * y.square()).mean(dim=0) - level.square()
    chosen = _chosen(gram, shared, rss, count).double()
    kept = gram * chosen[:, :, None] * chosen[:, None, :] + torch.diag_embed(1.0 - chosen)
    slope = torch.linalg.solve(kept, shared * chosen) / unit
    left = y - s @ slope.T - (level - (middle * slope).sum(dim=1))
    left = left / (1.0 - (1.0 + chosen.sum(dim=1)) / count)
    place = origin[1] + level - ((middle + origin[0]) * slope).sum(dim=1)
    return Selected(torch.cat([place[None], slope.T]), left)


def _chosen(gram: Tensor, shared: Tensor, rss: Tensor, num_rows: int) -> Tensor:
    """Which of t terms each of k values needs, (k, t).

    Args:
        gram: of the terms, (k, t, t), or (1, t, t) for all values alike.
        shared: of values and terms, (k, t).
        rss: mean squares of the values, (k,).
        num_rows: that these are means of.
    """
    count = gram.shape[1]
    price = 2.0 * math.log(1 + count * len(rss))
    least = 1.0 - math.exp(-price / num_rows)  # of RSS, explained
    beyond, shared, rss = gram.expand(len(rss), -1, -1).clone(), shared.clone(), rss.clone()
    chosen = torch.zeros(len(rss), count, dtype=torch.bool)
    nothing = _EXPLAINED * rss
    for _ in range(min(count, num_rows // _LEAST_ROWS)):
        own = beyond.diagonal(dim1=1, dim2=2)
        possible = ~chosen & (own > _COLLINEAR)
        explained, term = torch.where(possible, shared**2 / own.where(possible, 1.0), 0.0).max(1)
        at = ((explained > least * rss) & (rss > nothing)).nonzero()[:, 0]
        if not len(at):
            break
        term = term[at]
        chosen[at, term] = True
        column, scale = beyond[at, :, term], own[at, term][:, None]
        share = shared[at, term][:, None] / scale
        rss[at] -= explained[at]
        shared[at] -= column * share
        beyond[at] -= column[:, :, None] * (column / scale)[:, None, :]
    return chosen
