"""Whitening of theta by the mean and covariance of q(. | x), one frame an observation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

DRAWS_A_PARAMETER = 10
"""So many, at least, tell a covariance."""


@dataclass(frozen=True, eq=False)
class Frame:
    """The affine map that gives q mean 0 and covariance I at each of n observations."""

    mean: Tensor
    """(n, d)."""
    factor: Tensor
    """Lower triangular, (n, d, d)."""

    def whitened(self, theta: Tensor) -> Tensor:
        """Theta (K, n, d) in units of q's spread at each x."""
        centred = (theta - self.mean).permute(1, 2, 0)
        solved: Tensor = torch.linalg.solve_triangular(self.factor, centred, upper=False)
        return solved.permute(2, 0, 1)

    def restored(self, points: Tensor) -> Tensor:
        """Points (n, d) of the whitened space as parameters."""
        return self.mean + (self.factor @ points[..., None])[..., 0]


def frame_of(samples: Tensor, *, correlated: bool = True) -> Frame:
    """The frame of draws (L, n, d); the identity where there are none (L = 0).

    The correlation gets a ridge of 1e-3, and a parameter that q holds constant the scale 1, so
    that a degenerate q has a frame too. Without ``correlated`` each parameter is scaled alone,
    which is all that fewer than :data:`DRAWS_A_PARAMETER` can tell.
    """
    rows, width = samples.shape[1:]
    if len(samples) == 0:
        return Frame(torch.zeros(rows, width), torch.eye(width).expand(rows, -1, -1))
    mean = samples.mean(dim=0)
    centred = (samples - mean).transpose(0, 1)
    covariance = centred.transpose(1, 2) @ centred / max(len(samples) - 1, 1)
    variance = covariance.diagonal(dim1=1, dim2=2)
    constant = variance <= 1e-12 * (1 + mean.square())
    scale = torch.where(constant, torch.ones_like(variance), variance).sqrt()
    if not correlated:
        return Frame(mean, torch.diag_embed(scale))
    correlation = covariance / (scale[:, :, None] * scale[:, None, :])
    ridge = 1e-3 * torch.eye(width) + torch.diag_embed(constant.float())
    return Frame(mean, scale[:, :, None] * torch.linalg.cholesky(correlation + ridge))
