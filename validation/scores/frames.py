"""Whitening of theta by place and spread of q(. | x)'s core, one frame an observation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

DRAWS_A_PARAMETER = 10
"""So many, at least, tell a covariance."""

_LEAST_DRAWS = 50
"""Of a frame, however few the parameters."""
_BLOCK = 2**18
"""Numbers a block of observations may have, so that its dozen passes stay in the cache."""
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

    def restored(self, points: Tensor) -> Tensor:
        """Points (n, d) of the whitened space as parameters."""
        return self.mean + (self.factor @ points[..., None])[..., 0]


def num_frame_draws(width: int) -> int:
    """Draws that CoLT sets apart for a frame: enough to tell a covariance of ``width`` columns."""
    return max(_LEAST_DRAWS, DRAWS_A_PARAMETER * width)


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
    draws = samples.permute(1, 2, 0).contiguous()
    place = _median(draws)
    draws = draws - place[..., None]
    unit = _units(draws.abs())
    cores = [
        _core_frame(block / unit[:, None], correlated)
        for block in draws.split(max(1, _BLOCK // (width * count)))
    ]
    mean = torch.cat([core.mean for core in cores])
    factor = torch.cat([core.factor for core in cores])
    return Frame(place + unit * mean, unit[:, None] * factor)


def _median(values: Tensor) -> Tensor:
    """Over the last dimension, the lower one of an even number; numpy's selection is vectorised."""
    middle = (values.shape[-1] - 1) // 2
    return torch.as_tensor(np.partition(values.numpy(), middle, axis=-1)[..., middle])


def _units(away: Tensor) -> Tensor:
    """One size (d,) for all distances (n, d, L), so that no unit of theta is too large or small."""
    typical = _median(_median(away).T)
    typical = torch.where(typical > 0, typical, away.mean(dim=(0, 2)))
    return torch.where(typical > 0, typical, torch.ones_like(typical))


def _core_frame(draws: Tensor, correlated: bool) -> Frame:
    """The frame of the core of draws (n, d, L) whose medians are 0."""
    from scipy.special import gammaincinv

    _, width, count = draws.shape
    half = min((count + width + 1) // 2, count)
    reach = float(gammaincinv(width / 2, _KEPT) / gammaincinv(width / 2, 0.5))
    away = _from_median(draws)
    frame = _moments(draws, away <= away.kthvalue(half, keepdim=True).values, correlated)
    away = _from_frame(draws, frame)
    frame = _moments(draws, away <= away.kthvalue(half, keepdim=True).values, correlated)
    for _ in range(_GROWING_STEPS):
        away = _from_frame(draws, frame)
        frame = _moments(draws, away <= reach * _median(away)[:, None], correlated)
    return frame


def _from_median(draws: Tensor) -> Tensor:
    """Squared distances (n, L) from the median 0, in each parameter's median absolute deviation."""
    spread = _median(draws.abs())
    # More than half of the draws in one place have no such spread.
    spread = torch.where(spread > 0, spread, draws.square().mean(dim=-1).sqrt())
    return (draws / spread.clamp_min(1e-30)[..., None]).square().sum(dim=1)


def _from_frame(draws: Tensor, frame: Frame) -> Tensor:
    """Squared distances (n, L) of draws (n, d, L) from the frame's mean, in its units."""
    centred = draws - frame.mean[..., None]
    solved: Tensor = torch.linalg.solve_triangular(frame.factor, centred, upper=False)
    return solved.square().sum(dim=1)


def _moments(draws: Tensor, core: Tensor, correlated: bool) -> Frame:
    """The frame of the draws (n, d, L) that are in the core (n, L)."""
    inside = core[:, None].to(draws.dtype)
    count = inside.sum(dim=-1)
    mean = (inside * draws).sum(dim=-1) / count
    centred = inside * (draws - mean[..., None])
    covariance = centred @ centred.transpose(1, 2) / (count[..., None] - 1).clamp_min(1)
    variance = covariance.diagonal(dim1=1, dim2=2)
    constant = variance <= 1e-30
    scale = torch.where(constant, torch.ones_like(variance), variance).sqrt()
    if not correlated:
        return Frame(mean, torch.diag_embed(scale))
    correlation = covariance / (scale[:, :, None] * scale[:, None, :])
    ridge = 1e-3 * torch.eye(draws.shape[1]) + torch.diag_embed(constant.float())
    return Frame(mean, scale[:, :, None] * torch.linalg.cholesky(correlation + ridge))
