r"""A mean and a variance at x_o from pairs around it, with honest errors.

The mean is read by Gaussian process regression.

Values y_i at contexts h_i (h = 0 at x_o) are taken for

    y_i = b + l(h_i) + r(h_i) + e_i,

a constant, a linear part of variance tau_l^2, a rough part of variance tau_r^2 with a squared-
exponential kernel, and noise of variance s^2. What is wanted is b + l(0) + r(0). The variances are
averaged over a grid by their marginal likelihood, so that few pairs, which cannot tell rough from
smooth, give a wide interval and not a lucky narrow one. Source: Rasmussen & Williams (2006),
Sections 2.7 and 5.4.1.

The variance, of squares that are not negative, is log-linear, log v(h) = a + g'h, with a ridge on
g; it is fitted as a gamma law with a log link is, and read at h = 0 (McCullagh & Nelder 1989,
Section 8.3).
"""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

_LINEAR = (0.0, 0.15, 0.4, 1.0)  # tau_l / s
_ROUGH = (0.0, 0.1, 0.25, 0.6)  # tau_r / s
_LENGTH = 1.0  # of the rough part, in the contexts' typical distance
_FLAT = 100.0  # prior variance of the constant, over s^2
_SLOPE = 0.25  # prior sd of log v's change over the contexts' typical distance
_NEWTON = 25


def read_at_x_o(values: Tensor, context: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of each column of values (N, m) at context 0, and its standard error, (m,) each.

    Args:
        values: in units in which a sensible error is about 1.
        context: (N, k).
        weights: of the pairs, (N,); one of weight w has the noise of a mean of w values.
    """
    y, h = values.double(), context.double()
    keep = weights > 1e-3 * weights.max()
    y, h, noise = y[keep], h[keep], 1.0 / weights[keep].double()
    count = len(y)
    typical = h.square().sum(dim=1).mean().clamp_min(1e-12)
    linear = h @ h.T / typical
    apart = torch.cdist(h, h).square() / (2.0 * _LENGTH**2 * typical)
    here = (-h.square().sum(dim=1) / (2.0 * _LENGTH**2 * typical)).exp()
    rough = (-apart).exp()
    evidence, means, variances = [], [], []
    for tau_l, tau_r in product(_LINEAR, _ROUGH):
        kernel = _FLAT + tau_l**2 * linear + tau_r**2 * rough
        factor = torch.linalg.cholesky(kernel + torch.diag(noise))
        white = torch.linalg.solve_triangular(factor, y, upper=False)
        across = (_FLAT + tau_r**2 * here)[:, None]
        solved = torch.linalg.solve_triangular(factor, across, upper=False)
        # s^2 has Jeffreys' prior: its posterior is an inverse gamma, and the likelihood Student's.
        scale = white.square().sum(dim=0) / count
        log_det = 2.0 * factor.diagonal().log().sum()
        evidence.append(-0.5 * count * scale.clamp_min(1e-30).log() - 0.5 * log_det)
        means.append((solved * white).sum(dim=0))
        left = (_FLAT + tau_r**2 - solved.square().sum()).clamp_min(1e-12)
        variances.append(left * scale)
    share = torch.stack(evidence).softmax(dim=0)
    mean = (share * torch.stack(means)).sum(dim=0)
    within = (share * torch.stack(variances)).sum(dim=0)
    between = (share * (torch.stack(means) - mean).square()).sum(dim=0)
    return mean, (within + between).sqrt()


def variance_at_x_o(squares: Tensor, context: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The log of the mean of squares (N,) at context 0, and its standard error."""
    y, w = squares.double(), weights.double()
    typical = context.square().sum(dim=1).mean().sqrt().clamp_min(1e-12)
    h = torch.cat([torch.ones(len(y), 1), context / typical], dim=1).double()
    level = (w * y).sum() / w.sum()
    y = y / level.clamp_min(1e-30)
    dispersion = ((w * (y - 1.0).square()).sum() / w.sum()).clamp_min(0.5)
    penalty = (dispersion / _SLOPE**2) * torch.eye(h.shape[1], dtype=torch.float64)
    penalty[0, 0] = 0.0
    beta = torch.zeros(h.shape[1], dtype=torch.float64)
    # Fisher scoring: the information of a gamma law with a log link does not depend on beta.
    information = h.T @ (w[:, None] * h) + penalty
    for _ in range(_NEWTON):
        fitted = (h @ beta).clamp(-5.0, 5.0).exp()
        step = torch.linalg.solve(information, h.T @ (w * (y / fitted - 1.0)) - penalty @ beta)
        beta = beta + step.clamp(-0.5, 0.5)
    fitted = (h @ beta).clamp(-5.0, 5.0).exp()
    dispersion = ((w * (y / fitted - 1.0).square()).sum() / w.sum()).clamp_min(0.5)
    scores = (w * w * dispersion)[:, None] * h
    inverse = torch.linalg.inv(information)
    covariance = inverse @ (h.T @ scores + dispersion * penalty) @ inverse
    return level.log() + beta[0], covariance[0, 0].sqrt()
