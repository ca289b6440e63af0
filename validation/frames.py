"""Whitening of theta by place and spread of q(. | x)'s core, one frame an observation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

DRAWS_A_PARAMETER = 10
"""So many, at least, tell a covariance."""

_GROWING_STEPS = 3
_KEPT = 0.99
"""Share of a normal law's draws that a growing step keeps."""


@dataclass(frozen=True, eq=False)
class Frame:
    """The affine map that gives the core of q mean 0 and covariance I at each of n observations."""

    mean: Tensor
    """(n, d)."""
    factor: Tensor
    """Lower triangular, (n, d, d)."""

    def whitened(self, theta: Tensor) -> Tensor:
        """Theta (K, n, d) in units of q's spread at each x."""
        centred = (theta - self.mean).permute(1, 2, 0)
        solved: Tensor = torch.linalg.solve_triangular(self.factor, centred, upper=False)
        return solved.permute(2, 0, 1)

    def squared_distances(self, theta: Tensor) -> Tensor:
        """Of theta (K, n, d) from the mean, in those units: (K, n)."""
        return self.whitened(theta).square().sum(dim=-1)

    def restored(self, points: Tensor) -> Tensor:
        """Points (n, d) of the whitened space as parameters."""
        return self.mean + (self.factor @ points[..., None])[..., 0]


def frame_of(samples: Tensor, *, correlated: bool = True) -> Frame:
    """The frame of the core of draws (L, n, d); the identity where there are none (L = 0).

    A mode that q should not have is in q's moments, and in their units it lies near the rest. So
    the moments are those of the core: the half that is nearest to the median, then the half that
    is nearest by the moments of that one; from there it grows by all that lie no farther than a
    normal law's draws would, which a half of few draws cannot tell at once. Of a normal q the frame
    is, but for its size, nearly that of the moments.

    The correlation gets a ridge of 1e-3, and a parameter that the core holds constant the scale 1,
    so that a degenerate q has a frame too. Without ``correlated`` each parameter is scaled alone,
    which is all that fewer than :data:`DRAWS_A_PARAMETER` can tell.

    Source: Rousseeuw & Van Driessen (1999), the minimum covariance determinant, from one start;
    Billor, Hadi & Velleman (2000), a core that grows.
    """
    count, rows, width = samples.shape
    if count == 0:
        return Frame(torch.zeros(rows, width), torch.eye(width).expand(rows, -1, -1))
    place = samples.median(dim=0).values
    unit = _units((samples - place).abs())
    frame = _core_frame((samples - place) / unit, correlated)
    return Frame(place + unit * frame.mean, unit[:, None] * frame.factor)


def _units(away: Tensor) -> Tensor:
    """One size (d,) for all distances (L, n, d), so that no unit of theta is too large or small."""
    typical = away.median(dim=0).values.median(dim=0).values
    typical = torch.where(typical > 0, typical, away.mean(dim=(0, 1)))
    return torch.where(typical > 0, typical, torch.ones_like(typical))


def _core_frame(samples: Tensor, correlated: bool) -> Frame:
    """The frame of the core of draws (L, n, d) whose medians are 0."""
    from scipy.special import gammaincinv

    count, _, width = samples.shape
    half = min((count + width + 1) // 2, count)
    reach = float(gammaincinv(width / 2, _KEPT) / gammaincinv(width / 2, 0.5))
    away = _from_median(samples)
    frame = _moments(samples, away <= away.kthvalue(half, dim=0).values, correlated)
    away = frame.squared_distances(samples)
    frame = _moments(samples, away <= away.kthvalue(half, dim=0).values, correlated)
    for _ in range(_GROWING_STEPS):
        away = frame.squared_distances(samples)
        frame = _moments(samples, away <= reach * away.median(dim=0).values, correlated)
    return frame


def _from_median(samples: Tensor) -> Tensor:
    """Squared distances (L, n) from the median 0, in each parameter's median absolute deviation."""
    spread = samples.abs().median(dim=0).values
    # More than half of the draws in one place have no such spread.
    spread = torch.where(spread > 0, spread, samples.square().mean(dim=0).sqrt())
    return (samples / spread.clamp_min(1e-30)).square().sum(dim=-1)


def _moments(samples: Tensor, core: Tensor, correlated: bool) -> Frame:
    """The frame of the draws (L, n, d) that are in the core (L, n)."""
    inside = core[..., None].to(samples.dtype)
    count = inside.sum(dim=0)
    mean = (inside * samples).sum(dim=0) / count
    centred = (inside * (samples - mean)).transpose(0, 1)
    covariance = centred.transpose(1, 2) @ centred / (count[..., None] - 1).clamp_min(1)
    variance = covariance.diagonal(dim1=1, dim2=2)
    constant = variance <= 1e-30
    scale = torch.where(constant, torch.ones_like(variance), variance).sqrt()
    if not correlated:
        return Frame(mean, torch.diag_embed(scale))
    correlation = covariance / (scale[:, :, None] * scale[:, None, :])
    ridge = 1e-3 * torch.eye(samples.shape[2]) + torch.diag_embed(constant.float())
    return Frame(mean, scale[:, :, None] * torch.linalg.cholesky(correlation + ridge))
