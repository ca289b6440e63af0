r"""Ranks that are exactly uniform under the null, and what is made of them.

Let ``s_0`` be the score of the true parameter and ``s_1 .. s_K`` those of K draws from q at the
same x. Under q = p the K + 1 are exchangeable, hence with ``r = #{s_j < s_0}``,
``t = #{s_j = s_0}`` and ``xi ~ U(0, 1)``

    U = (r + xi (t + 1)) / (K + 1)  ~  Uniform(0, 1)  exactly, for any K and any ties.

Scores may depend on anything that treats the K + 1 alike: on x, on other draws from q, or on the
pooled set. Rows are independent, so the one-sample Kolmogorov-Smirnov test of the U is exact.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simulators.random import torch_generator

_NUMBERS_AT_ONCE = 1 << 22


def randomised_ranks(truth: Tensor, draws: Tensor, seed: int) -> Tensor:
    """Rank scores ``truth`` (n, ...) among ``draws`` (K, n, ...): U in (0, 1), (n, ...)."""
    below, ties = counts_below(truth, draws)
    xi = torch.rand(truth.shape, generator=torch_generator(seed), dtype=torch.float64)
    return (below + xi * (ties + 1)) / (len(draws) + 1)


def counts_below(truth: Tensor, draws: Tensor) -> tuple[Tensor, Tensor]:
    """How many of ``draws`` (K, n, ...) lie below ``truth`` (n, ...) and equal it, (n, ...)."""
    below = torch.zeros(truth.shape, dtype=torch.long)
    ties = torch.zeros_like(below)
    # Summed at once, comparisons of many draws take more memory than the draws.
    for part in draws.split(max(1, _NUMBERS_AT_ONCE // max(1, truth.numel()))):
        below += (part < truth).sum(dim=0)
        ties += (part == truth).sum(dim=0)
    return below, ties


def ks_uniform(ranks: Tensor) -> tuple[float, float]:
    """Kolmogorov-Smirnov distance of ``ranks`` (n,) to Uniform(0, 1), and its exact p-value."""
    from scipy.stats import kstest

    outcome = kstest(ranks.double().numpy(), "uniform", method="exact")
    return float(outcome.statistic), floor_p(float(outcome.pvalue))


def permutation_p(statistic: Tensor | float, null_statistics: Tensor) -> float:
    """``(1 + #{null >= statistic}) / (1 + m)``: exact where the m + 1 are exchangeable."""
    if bool(torch.isnan(torch.as_tensor(statistic))) or bool(torch.isnan(null_statistics).any()):
        raise ValueError("a statistic is NaN, which has no p-value; check theta, x and q's draws.")
    return (1.0 + float((null_statistics >= statistic).sum())) / (1.0 + len(null_statistics))


def bonferroni(p_values: list[float]) -> float:
    """The smallest p-value times their number, at most 1."""
    return min(1.0, len(p_values) * min(p_values))


def holm(p_values: list[float]) -> list[float]:
    """Holm's step-down adjustment: rejecting those <= alpha keeps the family's level."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for position, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - position) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def floor_p(p_value: float) -> float:
    """No test's p-value is zero; the smallest positive double stands for what underflowed."""
    return max(p_value, 5e-324)
