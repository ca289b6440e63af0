r"""How far may the answer be off at x_o? Bias of each mean and ratio of each sd, with intervals.

With m(x), s(x) the mean and standard deviation of q(theta_j | x), the pairs' scores

    z_i = (theta_ij - m(x_i)) / s(x_i)

have mean 0 and variance 1 at every x where q is right. Read at x_o (:mod:`.local`), their mean is
minus the bias of q's mean in its own sds, and their variance that of the true posterior over q's:

    bias = -E[z | x_o],   sd ratio = 1 / sd[z | x_o]   (above 1: q is too wide).

Pairs count by their nearness to x_o in MSW distance. The regression sees an error that is smooth in
x. Where all x are asked about, the pairs count alike, and the answer is the mean error.
An error that differs from x to x, as that of every trained network does, it sees as noise; the
flows of an ensemble show how large it is, for they differ by it. So the variance of each interval
has that of a single flow's mean about the others' on top, as if the mean of all were no better.

Intervals hold together for all parameters (Sidak). Source: ours; z-scores as in Cook, Gelman &
Rubin (2006), the local linear form as in Beaumont, Zhang & Balding (2002).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from .candidates import Candidates
from .local import read_at_x_o, variance_at_x_o
from .statistics import nearness

_LEVEL = 0.95
LOG_DENSITY = "log density"
"""Name of the deviation of log q."""


@dataclass(frozen=True)
class Deviation:
    """How one parameter may be off at x_o, each with the ends of its interval.

    Attributes:
        name: of the parameter; "log density" for log q.
        bias: of q's mean, in q's sds: above 0, q lies too high.
        sd_ratio: q's sd over the true one: below 1, q is too narrow.
    """

    name: str
    bias: float
    bias_low: float
    bias_high: float
    sd_ratio: float
    sd_ratio_low: float
    sd_ratio_high: float
    floor: float = 0.0
    """Half the width of the bias's interval that more pairs would leave: how flows disagree."""

    @property
    def half_width(self) -> float:
        """Of the bias's interval, in sds: what could go unseen."""
        return 0.5 * (self.bias_high - self.bias_low)

    def half_width_after(self, more: float) -> float:
        """The same with so many times the pairs."""
        by_pairs = max(0.0, self.half_width**2 - self.floor**2) / more
        return float((by_pairs + self.floor**2) ** 0.5)

    @property
    def wrong(self) -> bool:
        """Whether an interval leaves out what is right."""
        bias = not self.bias_low <= 0.0 <= self.bias_high
        return bias or not self.sd_ratio_low <= 1.0 <= self.sd_ratio_high

    @property
    def largest_bias(self) -> float:
        """The largest size that the interval allows."""
        return max(abs(self.bias_low), abs(self.bias_high))

    @property
    def size(self) -> float:
        """How far off, whichever way: a bias in sds, or the share by which the sd is wrong."""
        return max(abs(self.bias), max(self.sd_ratio, 1.0 / self.sd_ratio) - 1.0)

    def __str__(self) -> str:
        return (
            f"{self.name[:20]:<20} {self.bias:+.2f} ({self.bias_low:+.2f} to {self.bias_high:+.2f})"
            f"   {self.sd_ratio:.2f} ({self.sd_ratio_low:.2f} to {self.sd_ratio_high:.2f})"
        )


def deviations(
    candidates: Candidates, names: tuple[str, ...], members: Tensor | None = None
) -> tuple[Deviation, ...]:
    """One a parameter and, where q has a density, one of log q.

    Args:
        candidates: the pairs, with q's draws.
        names: of the parameters, d.
        members: of each flow's draws at x_o the mean, in sds of q there, and the log of their sd
            over q's, (M, d, 2).
    """
    values, rough = scores_of(candidates), torch.zeros(len(names), 2)
    labels = list(names)
    if members is not None and len(members) > 1:
        rough = _disagreement(members)
    if candidates.log_q is not None:
        labels.append(LOG_DENSITY)
        rough = torch.cat([rough, torch.zeros(1, 2)])
    weights = torch.ones(candidates.num_pairs)
    if candidates.distance is not None:
        weights = nearness(candidates.distance)
    mean, error = read_at_x_o(values, candidates.context, weights)
    squares = _squares(values, candidates.context, weights)
    logs = [variance_at_x_o(part, candidates.context, weights) for part in squares.T]
    log_variance, of_log = (torch.stack(parts) for parts in zip(*logs, strict=True))
    wide = (error.square() + rough[:, 0].double().square()).sqrt()
    times = _critical(2 * len(labels))
    ratio = (-0.5 * log_variance).exp()
    spread = (times * ((0.5 * of_log).square() + rough[:, 1].double().square()).sqrt()).exp()
    return tuple(
        Deviation(
            label,
            -float(mean[j]),
            -float(mean[j] + times * wide[j]),
            -float(mean[j] - times * wide[j]),
            float(ratio[j]),
            float(ratio[j] / spread[j]),
            float(ratio[j] * spread[j]),
            float(times * rough[j, 0]),
        )
        for j, label in enumerate(labels)
    )


def expected_c2st(parts: tuple[Deviation, ...], members: Tensor | None) -> float:
    """How well a classifier would tell the answer from the truth at x_o, if both were normal.

        Phi( 1/2 sqrt( sum_j bias_j^2 + rough_j^2 + 2 log(sd ratio_j)^2 ) ),

    from the deviations of the parameters and the disagreement of the flows: 0.5 is perfect. It is
    for comparing fits; where posteriors are far from normal it is too low.
    """
    total = sum(part.bias**2 + 2.0 * math.log(part.sd_ratio) ** 2 for part in parts)
    if members is not None and len(members) > 1:
        total += float(members[..., 0].std(dim=0).square().sum())
    return float(torch.special.ndtr(torch.tensor(0.5 * total**0.5, dtype=torch.float64)))


def _disagreement(members: Tensor) -> Tensor:
    """How far one flow's mean lies from the others', and how far the sd may be off, (d, 2).

    Where flows disagree about the mean, q, which mixes them, is wider than each; so its sd is as
    much in doubt as that of the flows, and by what their means add to it.
    """
    mean, log_sd = members[..., 0].std(dim=0), members[..., 1].std(dim=0)
    added = -0.5 * torch.log1p(-mean.square().clamp_max(0.9))
    return torch.stack([mean, (log_sd.square() + added.square()).sqrt()], dim=1)


def scores_of(candidates: Candidates) -> Tensor:
    """Z of every parameter and, where q has one, of its log density, (N, d + 1)."""
    rows = torch.arange(candidates.num_pairs)
    columns = [candidates.theta]
    if candidates.log_q is not None:
        columns.append(_within_reach(candidates.log_q)[..., None])
    together = torch.cat(columns, dim=2)
    truth = candidates.of_truth(together)
    others = together.clone()
    others[candidates.true, rows] = torch.nan  # the truth is no draw of q
    mean = others.nanmean(dim=0)
    count = len(others) - 1
    variance = (others - mean).square().nansum(dim=0) / max(1, count - 1)
    # Mean and variance of K draws have errors of their own: z^2 of a normal law has this mean.
    shrunk = ((1.0 + 1.0 / count) * (count - 1) / max(1, count - 3)) ** 0.5
    scores: Tensor = (truth - mean) / (variance.sqrt().clamp_min(1e-30) * shrunk)
    return scores


def _within_reach(log_q: Tensor) -> Tensor:
    """Log q (C, N), where it is infinite the least or largest finite one at the same x.

    With -inf, of a truth where q has no mass, no mean over the pairs is a number.
    """
    finite = log_q.isfinite()
    least = log_q.where(finite, torch.inf).amin(dim=0)
    most = log_q.where(finite, -torch.inf).amax(dim=0)
    return log_q.clamp(least, most).where(finite.any(dim=0), 0.0)


def _squares(values: Tensor, context: Tensor, weights: Tensor) -> Tensor:
    """Squares of what a ridge fit of values by context leaves, as large as the noise's, (N, m).

    With H the fit's map of values to fitted ones, E r_i^2 = (1 - 2 H_ii + sum_j H_ij^2) s^2.
    """
    h = torch.cat([torch.ones(len(context), 1), context], dim=1).double()
    w = weights.double()[:, None]
    ridge = 10.0 * torch.eye(h.shape[1], dtype=torch.float64)
    ridge[0, 0] = 1e-6
    to_slopes = torch.linalg.solve(h.T @ (w * h) + ridge, (w * h).T)
    residual = values.double() - h @ (to_slopes @ values.double())
    own = (h * to_slopes.T).sum(dim=1)
    left = 1.0 - 2.0 * own + (h @ (to_slopes @ to_slopes.T) * h).sum(dim=1)
    squares: Tensor = residual.square() / left.clamp_min(0.1)[:, None]
    return squares


def _critical(count: int) -> float:
    """Half the width of ``count`` normal intervals that hold together, in standard errors."""
    single = _LEVEL ** (1.0 / count)
    return float(torch.special.ndtri(torch.tensor(0.5 + 0.5 * single, dtype=torch.float64)))
