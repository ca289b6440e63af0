r"""Distances of a sample in [0, 1] to Uniform(0, 1) that have a gradient.

In one dimension the optimal plan is known: the i-th smallest of n ranks goes to the quantile
``(i - 1/2) / n``. The Sinkhorn divergence is the entropic version,
``S(a, b) = OT_eps(a, b) - (OT_eps(a, a) + OT_eps(b, b)) / 2`` with cost ``|a - b|^2``.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def wasserstein_to_uniform(ranks: Tensor) -> Tensor:
    """Squared 2-Wasserstein distance of ranks (n,) to the uniform quantiles."""
    return (ranks.sort().values - _quantiles(ranks)).square().mean()


def sinkhorn_to_uniform(ranks: Tensor, blur: float = 0.05, iterations: int = 30) -> Tensor:
    """Sinkhorn divergence of ranks (n,) to the uniform quantiles, ``eps = blur^2``.

    Source: Genevay, Peyre & Cuturi (2018), "Learning generative models with Sinkhorn divergences".
    """
    uniform = _quantiles(ranks)
    cross = _entropic_cost(ranks, uniform, blur**2, iterations)
    own = _entropic_cost(ranks, ranks, blur**2, iterations)
    other = _entropic_cost(uniform, uniform, blur**2, iterations)
    return cross - 0.5 * (own + other)


def _entropic_cost(a: Tensor, b: Tensor, eps: float, iterations: int) -> Tensor:
    """Dual value of entropic transport between uniform weights on a (n,) and b (m,)."""
    cost = (a[:, None] - b[None, :]).square()
    f, g = torch.zeros_like(a), torch.zeros_like(b)
    for _ in range(iterations):
        f = -eps * (torch.logsumexp((g - cost) / eps, dim=1) - math.log(len(b)))
        g = -eps * (torch.logsumexp((f[:, None] - cost) / eps, dim=0) - math.log(len(a)))
    return f.mean() + g.mean()


def _quantiles(ranks: Tensor) -> Tensor:
    n = len(ranks)
    return (torch.arange(n, dtype=ranks.dtype, device=ranks.device) + 0.5) / n
