"""Are q's draws independent: each of the one before it, and those at one x of those at another?

Every p-value supposes both. Neighbours in a chain lie close together, so that few of them stand for
fewer yet; and noise that is the same at every x errs to the same side everywhere. Either way an
exact posterior is rejected, and nothing in the tests' results says why.

Both are told by the ranks of draws among those at their x, whatever the law of q.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from simulators.random import torch_generator

from .repeats import warn_once

_LEAST_DRAWS, _LEAST_ROWS = 20, 20
_LEAST_NUMBERS = 500
"""Draws at all x together that tell a correlation of .3 from chance, by six standard errors."""
_MOST = 200  # draws, and observations, that are looked at
_MOST_PARAMETERS = 20
_CLOSE = 0.3
"""Correlation of neighbours: 100 draws then say of a mean what 54 independent ones would."""
_A_CHAIN = 0.1
"""The same of stored draws, which can be put in another order at no price."""
_FEW = 50
"""Independent draws at an x: with fewer in a chain's place ranks lie at the ends too often."""
_SHARED = 4.0
"""Mean square of a draw's mean rank over all x, in units of what independent noise gives: 1, and
more than this, with 20 draws, once in 100 million."""


def warn_of_dependence(samples: Tensor, *, in_order: bool = True) -> None:
    """Warn where draws (K, n, d) hang together, in a chain or by the same noise at every x.

    Args:
        samples: of q, at n observations.
        in_order: whether q made them in this order; of weighted draws equal ones are put together.
    """
    count, rows, _ = samples.shape
    if count < _LEAST_DRAWS or rows < _LEAST_ROWS or count * rows < _LEAST_NUMBERS:
        return
    ranks = _ranks(samples)
    close = _neighbours(ranks)
    shared = _shared(ranks)
    chained = close > max(_CLOSE, _chance(ranks, shared))
    if in_order and chained:
        warn_once(
            f"`q`: draws at one x hang together (neighbours have the correlation {close:.2f}), as "
            "in a chain. Tests take them for independent: exact posteriors are rejected. Thin the "
            "chain more, or draw more of it and give a random part."
        )
    elif not chained and shared > _SHARED:
        warn_once(
            "`q`: draws come in nearly the same order at every x, as where q sets a seed for each, "
            "or reshapes draws in place of swapping their axes. Tests take draws at two x for "
            "independent: exact posteriors are rejected. Set no seed in q, or let it take an "
            "argument `seed`, which is another one at each call."
        )


def in_random_order(samples: Tensor, seed: int) -> Tensor:
    """Stored draws (L, n, d) as they are, or shuffled at each x where neighbours hang together.

    Tests take the first of them: of a chain these are all from one place, of sorted draws the
    least. Warns where even all of them say no more than a few independent ones.
    """
    count, rows, _ = samples.shape
    if count < 3 or count * rows < _LEAST_NUMBERS:
        return samples
    ranks = _ranks(samples)
    close = _neighbours(ranks)
    if close < max(_A_CHAIN, _chance(ranks, _shared(ranks))):
        return samples
    worth = count * max(0.0, 1.0 - close) / (1.0 + close)
    if worth < _FEW and not _are_sorted(samples):
        warn_once(
            f"`q_samples`: the {count} draws at one x hang together (neighbours have the "
            f"correlation {close:.2f}), as in a chain, and are worth about {worth:.0f} "
            "independent ones. So few reject exact posteriors: store longer chains."
        )
    generator = torch_generator(seed)
    orders = (torch.randperm(count, generator=generator) for _ in range(rows))
    return torch.stack([samples[order, i] for i, order in enumerate(orders)], dim=1)


def _are_sorted(samples: Tensor) -> bool:
    """Whether the first parameter never turns back: such draws may be independent ones."""
    steps = samples[:, 0, 0].diff()
    return bool((steps >= 0).all() or (steps <= 0).all())


def _ranks(samples: Tensor) -> Tensor:
    """Mid-ranks, about 0, of some of the draws among those at their x, (K, n, d)."""
    from scipy.stats import rankdata

    some = samples[:_MOST, :_MOST, :_MOST_PARAMETERS].numpy()
    ranks = np.asarray(rankdata(some, axis=0), dtype=np.float64)
    return torch.from_numpy(ranks - ranks.mean(axis=0))


def _neighbours(ranks: Tensor) -> float:
    """The correlation of each draw with the next, of the parameter in which it is largest."""
    together = (ranks[1:] * ranks[:-1]).mean(dim=(0, 1))
    return float((together / _variance(ranks)).max())


def _chance(ranks: Tensor, shared: float) -> float:
    """A correlation of neighbours, five standard errors, above which it is not chance.

    By the same noise at every x all x together say no more of it than one.
    """
    count, rows, _ = ranks.shape
    return 5.0 * math.sqrt(max(1.0, shared) / (count * rows))


def _shared(ranks: Tensor) -> float:
    """Mean square of a draw's mean rank over all x in units of what chance gives, the largest."""
    means = ranks.mean(dim=1).square().mean(dim=0)
    return float((means * ranks.shape[1] / _variance(ranks)).max())


def _variance(ranks: Tensor) -> Tensor:
    """Of each parameter, (d,); draws that are all the same have none, and no correlation."""
    variance = ranks.square().mean(dim=(0, 1))
    return torch.where(variance > 0, variance, torch.ones_like(variance))
