"""Move accepted draws to x_o: the tolerance is not zero, and its spread is known.

Accepted pairs follow p(theta, X | X in A), whose conditional theta | X is the exact posterior
whatever A is. The accepted theta alone mix these posteriors over X in A, and are wider than the one
at x_o.

*none* takes them as they are, as the paper does. *quantile* moves each accepted theta from the
predicted quantiles at its own X to those at x_o, coordinate by coordinate,

    theta'_j = F_j^{-1}( F_j(theta_j | X) | x_o ),

with F and its inverse interpolated between the network's quantiles: a regression adjustment by the
network ABI already has. The dependence between coordinates is that of the accepted draws.
*conditional* fits a flow q(theta | s(x)) to the accepted pairs and reads it at x_o. s begins as the
encoder that the quantile network trained and, where it has weights, goes on learning with the flow:
on the cosine model that is worth 0.05 to 0.4 nats of a held-out theta, on the M/G/1 queue 0.1. None
needs a prior density.

Source: ours; the linear form is Beaumont, Zhang & Balding (2002).
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..generators.support import Support
from .kernel import LearnedKernel

_MAX_STRETCH = 5.0  # of a tail beyond the outermost quantile


def quantile_map(kernel: LearnedKernel, theta: Tensor, x: Tensor, support: Support) -> Tensor:
    """Move theta (n, d), accepted with x (n, p), to the posterior at the kernel's x_o."""
    theta_dim = theta.shape[1]
    network = kernel.network
    source = kernel.table(x).values[:, -theta_dim:]
    target = kernel.table(kernel.x_o[None]).values[0, -theta_dim:].expand_as(source)
    standard = (theta - network.theta_center) / network.theta_scale
    moved = _monotone_map(standard, source, target)
    return _reflect(moved * network.theta_scale + network.theta_center, support)


def _monotone_map(values: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """Piecewise linear map that takes the knots ``source`` (n, d, h) to ``target``."""
    source, target = _strictly(source), _strictly(target)
    last = source.shape[-1] - 1
    upper = torch.searchsorted(source, values[..., None]).clamp(1, last)
    low_s, high_s = source.gather(-1, upper - 1), source.gather(-1, upper)
    low_t, high_t = target.gather(-1, upper - 1), target.gather(-1, upper)
    slope = ((high_t - low_t) / (high_s - low_s))[..., 0]
    inside = low_t[..., 0] + slope * (values - low_s[..., 0])
    # Beyond the outermost knots the local slope goes on, within reason.
    slope = slope.clamp(1.0 / _MAX_STRETCH, _MAX_STRETCH)
    below = target[..., 0] + slope * (values - source[..., 0])
    above = target[..., -1] + slope * (values - source[..., -1])
    out = torch.where(values < source[..., 0], below, inside)
    return torch.where(values > source[..., -1], above, out)


def _strictly(knots: Tensor) -> Tensor:
    """Separate equal knots by a hair, so that every interval has a slope."""
    steps = torch.arange(knots.shape[-1], dtype=knots.dtype)
    return knots.cummax(dim=-1).values + 1e-5 * steps


def _reflect(theta: Tensor, support: Support) -> Tensor:
    """Fold what crossed an end of the box back inside."""
    theta = torch.where(theta < support.lower, 2.0 * support.lower - theta, theta)
    theta = torch.where(theta > support.upper, 2.0 * support.upper - theta, theta)
    return theta.clamp(support.lower, support.upper)
