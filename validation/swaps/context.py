"""What is known of each x: x itself, and where and how wide q's draws lie there.

Of a q that has learned nothing the draws say nothing, of an x with a thousand columns its few main
directions may; so both are taken. All numbers are normal scores of ranks, whatever their units and
tails, and all candidates at an x are treated alike.
"""

from __future__ import annotations

import torch
from torch import Tensor

from simulators.random import torch_generator

from .features import principal

_MOST_OF_X, _MOST_OF_Q = 6, 4
_DIRECTIONS = 2  # random ones a parameter, beside the axes
_LEVELS = 20  # quantiles


def everywhere(x: Tensor, theta: Tensor) -> Tensor:
    """Context (N, k) of pairs that are asked about at all x.

    Args:
        x: (N, p).
        theta: candidates at each x, (C, N, d).
    """
    of_x = principal(normal_scores(x), _MOST_OF_X)
    of_q = principal(normal_scores(statement(theta)), _MOST_OF_Q)
    return torch.cat([of_x, of_q], dim=1)


def around(
    x: Tensor, theta: Tensor, x_o: Tensor, theta_o: Tensor, seed: int
) -> tuple[Tensor, Tensor]:
    """Context (N, k), 0 at x_o, and the distance of each x from it, (N,).

    The distance is that of q's posteriors, the mean of the 1-Wasserstein distances along the axes
    and random directions in units of q's spread at x_o, and that of x, each in units of its median:
    a q that has learned nothing has the same posterior everywhere.

    Args:
        x: (N, p).
        theta: candidates at each x, (C, N, d).
        x_o: (p,).
        theta_o: draws of q at x_o, (m, d).
        seed: of the directions.
    """
    of_x = principal(_less(x, x_o), _MOST_OF_X)
    of_q = principal(_less(statement(theta), statement(theta_o[:, None])[0]), _MOST_OF_Q)
    apart = [of_x.norm(dim=1), _between(theta, theta_o, seed)]
    distance = torch.stack([part / part.median().clamp_min(1e-12) for part in apart]).sum(dim=0)
    return torch.cat([of_x, of_q], dim=1), distance


def statement(theta: Tensor) -> Tensor:
    """What q says at each x: means and log sds of candidates (C, N, d) there, (N, 2 d)."""
    return torch.cat([theta.mean(dim=0), theta.std(dim=0).clamp_min(1e-30).log()], dim=1)


def normal_scores(columns: Tensor, at: Tensor | None = None) -> Tensor:
    """Columns (N, k), or values ``at`` (n, k) among them, as normal scores of mid-ranks.

    Columns that are constant are left out.
    """
    varies = (columns != columns[:1]).any(dim=0)
    columns = columns[:, varies].T.contiguous()
    values = columns if at is None else at[:, varies].T.contiguous()
    ordered = columns.sort(dim=1).values
    below = torch.searchsorted(ordered, values)
    up_to = torch.searchsorted(ordered, values, right=True)
    count = columns.shape[1]
    ranks = (0.5 * (below + up_to).double() / count).clamp(0.5 / count, 1.0 - 0.5 / count)
    scores: Tensor = torch.special.ndtri(ranks).T.float()
    return scores


def _less(columns: Tensor, at: Tensor) -> Tensor:
    """Normal scores of columns (N, k) less those of a row ``at`` (k,)."""
    return normal_scores(columns) - normal_scores(columns, at[None])


def _between(theta: Tensor, theta_o: Tensor, seed: int) -> Tensor:
    """Distance of q's posterior at each x from that at x_o, (N,), from their draws."""
    width = theta.shape[2]
    unit = theta_o.std(dim=0)
    unit = torch.where(unit > 0, unit, torch.ones_like(unit))
    random = torch.randn(width, _DIRECTIONS * width, generator=torch_generator(seed))
    axes = torch.cat([torch.eye(width), random / random.norm(dim=0)], dim=1)
    levels = (torch.arange(_LEVELS, dtype=torch.float32) + 0.5) / _LEVELS
    here = torch.quantile(theta_o / unit @ axes, levels, dim=0)  # (levels, axes)
    total = torch.zeros(theta.shape[1])
    for k, axis in enumerate(axes.T):
        there = torch.quantile(theta / unit @ axis, levels, dim=0)  # (levels, N)
        total += (there - here[:, k : k + 1]).abs().mean(dim=0)
    return total / axes.shape[1]
