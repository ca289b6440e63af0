r"""How far off may log odds be at x_o? A logistic recalibration by unseen pairs near it.

With z_i the log odds that the networks give one side against another at x_i, y_i = 1 where the
first made x_i, and weights w_i that fall with the distance from x_o, a shift d of the log odds
around x_o has the log likelihood

    L(d) = sum_i w_i [ y_i log s(z_i + d) + (1 - y_i) log s(-z_i - d) ],   s(t) = 1/(1 + e^-t),

and the interval is z_o + { d : max L - L(d) <= chi^2_{.95} / 2 }, with the weights scaled to sum to
the effective number of pairs, (sum w)^2 / sum w^2. Where one side made none of the pairs near x_o,
L rises for ever: the interval has one end, and all that can be said is "at least". So it is where
the log odds are above log(n / 1.92), which is the most that n pairs can show, all of one side.
Finite ends are moved out by how much the networks differ at x_o, which an average over neighbours
cannot see.

Source: Loader (1999), "Local regression and likelihood"; Cox (1958), "Two further applications of a
model for binary regression".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

_HALF_CHI = 1.92  # of 95%, one degree of freedom
_SPREAD = 3.18  # of an sd of four networks: the 95% quantile of Student's t
_SHARE, _LEAST = 0.25, 200  # of the unseen pairs that count as near, and so many at least
_STEPS, _WIDEST = 60, 80.0
_SAID = 2.0  # weight of what the networks say of x, beside what they see
_MOST_SAID = 20.0  # beyond it log odds are all alike


@dataclass(frozen=True)
class LogOdds:
    """Log odds with a 95% interval; an end is infinite where no pair bounds it.

    ``print`` says "at least 5.1" then.
    """

    value: float
    low: float
    high: float

    @property
    def bounded(self) -> bool:
        """Whether pairs of both sides come near x_o."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def shown(self) -> float:
        """The value, or the one end of the interval: no pair shows more.

        0 where that end lies on the other side of 0.
        """
        if self.bounded:
            return self.value
        return max(0.0, self.low) if math.isfinite(self.low) else min(0.0, self.high)

    def to_dict(self) -> dict[str, float | None]:
        """Plain values for JSON; an end that no pair bounds is None."""
        ends = {"low": self.low, "high": self.high}
        known = {name: end if math.isfinite(end) else None for name, end in ends.items()}
        return {"value": self.value, **known}

    def moved(self, by: float) -> LogOdds:
        """The same log odds with a number added to value and interval."""
        return LogOdds(self.value + by, self.low + by, self.high + by)

    def __str__(self) -> str:
        if not math.isfinite(self.high):
            return f"at least {self.low:.1f}"
        if not math.isfinite(self.low):
            return f"at most {self.high:.1f}"
        return f"{self.value:.1f} ({self.low:.1f} to {self.high:.1f})"


def places(features: Tensor, log_q: Tensor, units: tuple[Tensor, Tensor]) -> Tensor:
    """Where x lies: by what the networks see of it (n, k), and by what they say of it (n, M).

    The two count alike, however many features there are: pairs of which the networks say the same
    tell most of the log odds.
    """
    seen = features.double() / units[0] / math.sqrt(features.shape[1])
    said = _said(log_q) / units[1] / math.sqrt(log_q.shape[1])
    return torch.cat([seen, _SAID * said], dim=1)


def units_of(features: Tensor, log_q: Tensor) -> tuple[Tensor, Tensor]:
    """One size of each feature (k,), and one of all that is said."""
    return features.double().std(dim=0).clamp_min(1e-6), _said(log_q).std().clamp_min(1e-6)


def _said(log_q: Tensor) -> Tensor:
    centered = log_q - log_q.mean(dim=1, keepdim=True)
    return centered.clamp(-_MOST_SAID, _MOST_SAID)


def nearness(known: Tensor, at: Tensor) -> Tensor:
    """Weights (n,) of places (n, k) that fall with the distance from one of them, (k,).

    Tricube's, to zero at the distance within which a quarter of the places lie.
    """
    distance = (known - at).norm(dim=1)
    count = min(len(known), max(_LEAST, int(_SHARE * len(known))))
    reach = distance.kthvalue(count).values.clamp_min(1e-12)
    weights: Tensor = (1.0 - (distance / reach).clamp_max(1.0) ** 3) ** 3
    return weights if float(weights.sum()) > 0.0 else torch.ones_like(weights)


def log_odds(at: float, spread: float, said: Tensor, first: Tensor, weights: Tensor) -> LogOdds:
    """Log odds at x_o with their interval.

    Args:
        at: what the networks say at x_o.
        spread: its sd over the networks.
        said: what they say of unseen pairs, (n,).
        first: whether the first side made them, (n,).
        weights: that fall with the distance from x_o, (n,).
    """
    w = weights.double() * (weights.sum() / weights.square().sum())
    most = math.log(max(1.0, float(w.sum()) / _HALF_CHI))  # that such pairs can show
    sign = 2.0 * first.double() - 1.0

    def likelihood(shift: float) -> float:
        return float((w * logsigmoid(sign * (said + shift))).sum())

    def slope(shift: float) -> float:
        return float((w * (first.double() - torch.sigmoid(said + shift))).sum())

    sides = bool((w[first] > 0).any()), bool((w[~first] > 0).any())
    best = _WIDEST * (sides[0] - sides[1])
    if all(sides):
        best = _crossing(slope, -_WIDEST, _WIDEST)
    least = likelihood(best) - _HALF_CHI

    def above(shift: float) -> float:
        return likelihood(shift) - least

    low, high = -math.inf, math.inf
    if sides[0]:
        low = _crossing(lambda shift: least - likelihood(shift), best - 2.0 * _WIDEST, best)
    if sides[1]:
        high = _crossing(lambda shift: likelihood(shift) - least, best, best + 2.0 * _WIDEST)
    center, extra = best if all(sides) else None, _SPREAD * spread
    low, high = _further(low, center, -extra), _further(high, center, extra)
    low, high = at + min(0.0, low), at + max(0.0, high)
    low, high = (min(low, most), math.inf) if at > most else (low, high)
    low, high = (-math.inf, max(high, -most)) if at < -most else (low, high)
    return LogOdds(at, low, high)


def _further(end: float, center: float | None, extra: float) -> float:
    """An end of an interval moved out: as errors add up about its center, where it has one."""
    if center is None:
        return end + extra
    return center + math.copysign(math.hypot(end - center, extra), extra)


def _crossing(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that falls from above 0 crosses it."""
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if falling(middle) > 0.0 else (low, middle)
    return (low + high) / 2.0
