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

_COLLINEAR = 1e-6  # of a term's variance, beyond the terms that are there
_EXPLAINED = 1e-12  # of a value's variance: what is left is rounding
_LEAST_ROWS = 4  # for each term


class Selected(NamedTuple):
    """Coefficients (1 + t, k), the first of them of 1, and errors (n, k) as of rows left out."""

    place: Tensor
    left: Tensor


def selected(terms: Tensor, z: Tensor, weights: Tensor, *, among: int = 1) -> Selected:
    """Weighted least squares of values z (n, k) on the terms (n, t) that each of them needs.

    Float64; ``weights`` (n,) of the rows are 1 in the mean. A term that does not vary is none.
    Those that mean nothing are kept out at any of ``among`` times as many values.
    """
    w = weights[:, None]
    middle, level = (w * terms).mean(dim=0), (w * z).mean(dim=0)
    s, y = terms - middle, z - level
    sd = (w * s.square()).mean(dim=0).sqrt()
    varies = sd > _COLLINEAR * terms.abs().amax(dim=0)
    s = torch.where(varies, s / sd.where(varies, 1.0), 0.0)
    gram, shared = (w * s).T @ s / len(s), (w * s).T @ y / len(s)
    rss = (w * y.square()).mean(dim=0)
    chosen = _chosen(gram, shared.T, rss, len(s), among * len(rss)).double()
    kept = gram * chosen[:, :, None] * chosen[:, None, :] + torch.diag_embed(1.0 - chosen)
    slope = torch.linalg.solve(kept, shared.T * chosen).T
    left = (y - s @ slope) / (1.0 - (1.0 + chosen.sum(dim=1)) / len(s))
    slope = slope / sd.where(varies, 1.0)[:, None]
    return Selected(torch.cat([(level - middle @ slope)[None], slope]), left)


def _chosen(gram: Tensor, shared: Tensor, rss: Tensor, num_rows: int, num_values: int) -> Tensor:
    """Which of t terms each of k values needs, (k, t).

    Args:
        gram: of the terms, (t, t).
        shared: of values and terms, (k, t).
        rss: mean squares of the values, (k,).
        num_rows: that these are means of.
        num_values: at any of which a term may come in by chance.
    """
    count = len(gram)
    price = 2.0 * math.log(1 + count * num_values)
    least = 1.0 - math.exp(-price / num_rows)  # of RSS, explained
    beyond, shared, rss = gram.expand(len(rss), count, count).clone(), shared.clone(), rss.clone()
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
