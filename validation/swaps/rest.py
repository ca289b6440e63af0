r"""Does x tell more of theta than q has read from it?

A q that sees x through features s alone can be right given s, all ranks uniform and every mean and
width right on average, and still be far off at one x: it has not heard the rest. What the rest is
shows in x less what q's own statement (its mean and width at each x) says of x,

    e = x - E[x | q's statement],   a regression on the statement, its squares and products.

Each column is measured in its median size and bent by tanh, so that no outlier decides. Of many
columns the main directions are taken. Beside them stand the order statistics of each row of e (its
least, its largest and what lies between) and its mean square: they tell of a law's edges and of its
scale. With k_ij the linear kernel of all these, each kind of equal weight, and r_i Legendre
moments of the truth's rank among the candidates at x_i, in every parameter,

    T = sum over i != j of k_ij <r_i, r_j>,

which is 0 in the mean wherever q has heard all that these tell: then r_i is noise given x_i, and
the swaps of :mod:`validation.swaps.panel` give its exact null. It is a test of conditional
independence by a kernel (in the manner of HSIC, Gretton et al. 2008), and nothing is trained.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .context import statement
from .features import legendre, principal, unit

_LEAST_PAIRS = 40
_MOST_COLUMNS = 40
_LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_FEWEST_ORDERED = 4  # columns whose order says something
_BEND = 2.0  # median sizes: three sds
_RIDGE = 1e-2
_MOMENTS = 2
_SWAPS_AT_ONCE = 50


def rest_of_x(x: Tensor, theta: Tensor) -> Tensor | None:
    """What of x (N, p) q does not say by its candidates there (C, N, d): (N, m).

    None of pairs too few to tell what q's statement says of x.
    """
    if len(x) < _LEAST_PAIRS:
        return None
    said = statement(theta).double()
    terms, x = _terms(said), x.double()
    e = _unexplained(x, terms)
    varies = e.std(dim=0) > 1e-6 * x.std(dim=0)
    if not varies.any():
        return None
    e, size = e[:, varies], e[:, varies].abs().median(dim=0).values
    size = torch.where(size > 0, size, e.std(dim=0))
    bent = torch.tanh(e / size / _BEND)
    means = unit(said[None, :, : theta.shape[2]])[0]
    slopes = (x - x.mean(dim=0))[:, varies].T @ means / size[:, None] / len(x)
    blocks = [principal(bent, _MOST_COLUMNS).double(), bent @ slopes]
    if e.shape[1] >= _FEWEST_ORDERED:
        ordered = torch.quantile(bent, torch.tensor(_LEVELS).double(), dim=1).T
        scale = (e / size).square().mean(dim=1, keepdim=True).clamp_min(1e-30).log()
        blocks.append(torch.cat([ordered, scale], dim=1))
    return torch.cat([_block(_unexplained(block, terms)) for block in blocks], dim=1).float()


def statistic(rest: Tensor, ranks: Tensor, chosen: Tensor) -> Tensor:
    """T for every choice of the truth (1 + B, N), from ranks (C, N, d): (1 + B,)."""
    pairs = torch.arange(len(rest))
    moments = legendre(ranks, _MOMENTS).flatten(2)  # (C, N, 2 d)
    diagonal = rest.square().sum(dim=1)
    found = []
    for some in chosen.split(_SWAPS_AT_ONCE):
        r = moments[some, pairs]  # (b, N, 2 d)
        sums = torch.einsum("nm,bnj->bmj", rest, r)
        own = torch.einsum("n,bnj->b", diagonal, r.square())
        found.append(sums.square().sum(dim=(1, 2)) - own)
    return torch.cat(found)


def _terms(said: Tensor) -> Tensor:
    """A statement (N, k), its squares and products about their means: a fifth of N at most."""
    known = (said - said.mean(dim=0)) / said.std(dim=0).clamp_min(1e-30)
    first, second = torch.triu_indices(known.shape[1], known.shape[1]).unbind()
    terms = torch.cat([known, known[:, first] * known[:, second]], dim=1)[:, : len(said) // 5]
    return terms - terms.mean(dim=0)


def _unexplained(columns: Tensor, terms: Tensor) -> Tensor:
    """Columns (N, p) less their regression on terms (N, k)."""
    centred = columns - columns.mean(dim=0)
    gram = terms.T @ terms + _RIDGE * len(terms) * torch.eye(terms.shape[1], dtype=terms.dtype)
    unexplained: Tensor = centred - terms @ torch.linalg.solve(gram, terms.T @ centred)
    return unexplained


def _block(columns: Tensor) -> Tensor:
    """Columns about their mean, of total variance 1."""
    centred = columns - columns.mean(dim=0)
    size = centred.square().sum(dim=1).mean().sqrt().clamp_min(1e-30)
    return centred / size
