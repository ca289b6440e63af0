r"""Simultaneous bands for the distribution function of ranks that should be uniform.

At a level z the count ``N F(z)`` of N uniform ranks is Binomial(N, z). A band whose pointwise
coverage is 1 - gamma at each of the levels z_1 .. z_K contains the whole curve with a smaller
probability; gamma is chosen so that this probability is 1 - alpha. With

    gamma_m = 2 min_k min( Bin(N F_m(z_k); N, z_k),  1 - Bin(N F_m(z_k) - 1; N, z_k) )

for simulated curves F_m, gamma is the alpha-quantile of the gamma_m (Säilynoja, Bürkner & Vehtari
2022, Algorithm 1). The band is narrow where counts vary little: it sees what happens at the ends,
where the band of Kolmogorov and Smirnov, the same width everywhere, is wide.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_NUM_SIMULATIONS = 10_000
_NUM_LEVELS = 100


@lru_cache(maxsize=32)
def binomial_band(
    num_ranks: int, alpha: float = 0.05, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Levels z, and the low and high ends of F(z) - z, each (101,).

    The whole curve of ``num_ranks`` uniform ranks lies inside with probability about 1 - alpha.

    Args:
        num_ranks: N.
        alpha: one minus the simultaneous coverage, in (0, 1).
        seed: of the simulated curves.

    Source: Säilynoja, Bürkner & Vehtari (2022), "Graphical test for discrete uniformity and its
    applications in goodness-of-fit evaluation and multiple sample comparison", Algorithm 1.
    """
    from scipy.stats import binom

    levels = np.arange(1, _NUM_LEVELS) / _NUM_LEVELS
    random = np.random.default_rng(seed)
    bins = random.multinomial(
        num_ranks, np.full(_NUM_LEVELS, 1 / _NUM_LEVELS), size=_NUM_SIMULATIONS
    )
    counts = bins[:, :-1].cumsum(axis=1)
    # Tail probabilities of every count that can occur, looked up instead of computed 10^6 times.
    possible = np.arange(num_ranks + 1)[:, None]
    below = np.asarray(binom.cdf(possible, num_ranks, levels))
    above = np.asarray(binom.sf(possible - 1, num_ranks, levels))
    column = np.arange(len(levels))
    tails = np.minimum(below[counts, column], above[counts, column])
    gamma = float(np.quantile(2 * tails.min(axis=1), alpha, method="lower"))
    low = np.asarray(binom.ppf(gamma / 2, num_ranks, levels)) / num_ranks
    high = np.asarray(binom.isf(gamma / 2, num_ranks, levels)) / num_ranks
    ends = np.zeros(1)
    grid = np.concatenate([ends, levels, ends + 1])
    return (
        grid,
        np.concatenate([ends, low - levels, ends]),
        np.concatenate([ends, high - levels, ends]),
    )
