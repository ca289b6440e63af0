"""Simulation-based calibration: are the true parameters ranked uniformly among q's draws?

For every parameter j, the rank of ``theta_ij`` among K draws from ``q(theta_j | x_i)`` is uniform
when q = p (Talts et al. 2018, Theorem 1). One Kolmogorov-Smirnov test a parameter, Bonferroni over
the d parameters. It sees the marginals alone, and the prior passes it: with q = p(theta) for
every x the ranks are uniform although q has learned nothing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simulators.random import as_count

from ..posteriors.draws import given
from ..results.result import ValidationResult
from ..scores.uniformity import bonferroni, counts_below, ks_uniform, randomised_ranks
from ..seeds import part_seed


def sbc(
    q: Any, theta: Tensor, x: Tensor, *, num_samples: int = 1_000, seed: int = 0
) -> ValidationResult:
    """SBC: is the rank of each true parameter among q's draws at its x uniform?

    Differs from Talts et al. (2018): ranks are randomised, ``(r + xi (ties + 1)) / (K + 1)``, so
    that the Kolmogorov-Smirnov test is exact for any K and for discrete parameters too.

    Other Parameters:
        num_samples: K, draws of q at each x; even 1 gives a valid p-value.
        seed: of everything random.

    Returns:
        The largest Kolmogorov-Smirnov distance over the parameters, and the p-value adjusted for
        their number (Bonferroni). ``details``: ``ranks``
        (N, d), ``counts`` of draws below the truth (N, d), ``p_values`` and ``statistics`` (d,).

    Raises:
        ValueError: if an argument is not as described, or pairs or draws are not finite.

    Source: Talts, Betancourt, Simpson, Vehtari & Gelman (2018), "Validating Bayesian inference
    algorithms with simulation-based calibration", Algorithm 1.

    q is the posterior under test, as :func:`~validation.as_posterior` takes it; theta (N, d) and x
    (N, p) are pairs from prior and simulator that q was not trained on.
    """
    num_samples = as_count(num_samples, "num_samples", 1)
    ranks, counts = [], []
    for part, part_of in given(q, theta, x).parts(num_samples, seed):
        draws = part.draws(num_samples, part_seed(part_of, 0))
        ranks.append(randomised_ranks(draws.theta, draws.samples, part_seed(part_of, 1)))
        counts.append(counts_below(draws.theta, draws.samples)[0])
    return _result(torch.cat(ranks), torch.cat(counts), num_samples, seed)


def _result(ranks: Tensor, counts: Tensor, num_samples: int, seed: int) -> ValidationResult:
    tests = [ks_uniform(column) for column in ranks.T]
    return ValidationResult(
        method="sbc",
        statistic=max(distance for distance, _ in tests),
        p_value=bonferroni([p for _, p in tests]),
        seed=seed,
        details={
            "ranks": ranks,
            "counts": counts,
            "statistics": [distance for distance, _ in tests],
            "p_values": [p for _, p in tests],
            "num_samples": num_samples,
        },
    )
