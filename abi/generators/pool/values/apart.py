r"""Errors of each value for itself: any single reading may be an outlier, and theta says how loud.

    r_j | v_j  ~  N(0, (v_j s_j e^{b . u})^2),    v_j = v_i with a chance of w_i,  i = 1 ... 16,

independently for each value, where the tails of :mod:`.noise` stretch a whole row at once. Chances
and scales v_i are those of all values alike, the sizes s_j each value's own, and b is how their
logarithm goes with the numbers u of theta, as where one of these is the level of the noise. All by
expectation and maximisation, in turn with regressions that listen to each reading as much as it
deserves. (Of straight lines, 25 readings in Student noise of two degrees of freedom, 5,000 calls,
three fits, sds were 1.3 to 1.9 times the exact ones before, and .93 to 1.01 times since.)

Scales must be near each other up to the farthest reading: how loud an outlier says the noise is
swings with its place between two of them. Seven described readings in Cauchy noise as well, by .01
nats, but as the last came to lie 70 times beyond the one before, a mean was off by 1.5 sds at an
x_o with two readings between.

Source: Lange, Little & Taylor (1989), "Robust statistical modeling using the t distribution".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from simulators.random import some_rows

from .noise import LEAST_SCALE, RAREST, Noise, is_worth, shares
from .noise import log_density as of_rows
from .selection import selected

_SCALES = tuple(2.0**k for k in range(-2, 14))  # at the start, each with the same chance
_TAIL_NUMBERS = 2 * (len(_SCALES) - 1)  # chances that add up to 1, and scales beside the sizes
_ROUNDS, _PASSES, _FURTHER_PASSES = 4, 15, 5
_TO_SD = 1.4826  # of a normal law's median absolute error
_TOGETHER = 200_000  # errors, for a law of so few numbers
_FURTHEST = 5.0  # of the widest scale
_MOST = 10.0  # times as loud as expected, of a row in one step


class Apart(NamedTuple):
    """Coefficients (1 + t, k), the law of errors where u is 0, and how its size goes with u, b."""

    place: Tensor
    noise: Noise
    loudness: Tensor


def fit_apart(u: Tensor, terms: Tensor, z: Tensor, left: Tensor, normal: Noise) -> Apart | None:
    """The law of values z (n, k) that are linear in terms (n, t) of numbers u (n, c).

    None where errors ``left`` (n, k) of the ``normal`` law do not surely gain by it.
    """
    errors = _Errors.begun(left, u).agreed(left, _PASSES)
    if not is_worth(errors.noise(left), normal, _TAIL_NUMBERS + u.shape[1]):
        return None
    for _ in range(_ROUNDS):
        place, left = selected(terms, z, errors.weights(left))
        errors = errors.agreed(left, _FURTHER_PASSES)
    return Apart(place, errors.noise(left), errors.loudness)


@dataclass(frozen=True, eq=False)
class _Errors:
    """A law of errors: numbers u (n, c), sizes (k,), tails (2, m), and b, the loudness (c,)."""

    u: Tensor
    size: Tensor
    tails: Tensor
    loudness: Tensor

    @classmethod
    def begun(cls, left: Tensor, u: Tensor) -> _Errors:
        """Where to begin with errors (n, k)."""
        size = (_TO_SD * left.abs().median(dim=0).values).clamp_min(LEAST_SCALE)
        scales = torch.tensor(_SCALES, dtype=left.dtype)
        tails = torch.stack([torch.full_like(scales, 1.0 / len(scales)), scales])
        return cls(u, size, tails, torch.zeros_like(u[0]))

    def agreed(self, left: Tensor, passes: int) -> _Errors:
        """As errors (n, k) have it after so many passes from here."""
        size, tails, b = self.size, self.tails, self.loudness
        left, u = some_rows(_TOGETHER // left.shape[1], left, self.u)
        solver = torch.linalg.pinv(torch.cat([torch.ones_like(u[:, :1]), u], dim=1))
        for _ in range(passes):
            squares = replace(self, u=u, size=size, loudness=b).squares(left)
            share = shares(squares.flatten(), 1, tails)
            told = squares * (tails[1].pow(-2) @ share).reshape(squares.shape)
            beyond = told.mean(dim=1).clamp(max=_MOST) - 1.0  # a step of a log link
            b = b + 0.5 * (solver @ beyond)[1:]
            size = size * told.mean(dim=0).sqrt().clamp_min(LEAST_SCALE)
            rows = share.sum(dim=1).clamp_min(RAREST * left.numel())
            wide = share @ squares.flatten() / rows
            tails = torch.stack([rows / rows.sum(), wide.sqrt().clamp_min(LEAST_SCALE)])
        return _Errors(self.u, size, tails, b)

    def squares(self, left: Tensor) -> Tensor:
        """Squared errors (n, k) in their sizes."""
        return (left / self.size / (self.u @ self.loudness).exp()[:, None]).square()

    def weights(self, left: Tensor) -> Tensor:
        """How much each error tells of its value, 1 in the mean, (n, k)."""
        share = shares(self.squares(left).flatten(), 1, self.tails)
        told = (self.tails[1].pow(-2) @ share).reshape(left.shape)
        weights = told * (-2.0 * (self.u @ self.loudness)).exp()[:, None]
        return weights / weights.mean(dim=0)

    def noise(self, left: Tensor) -> Noise:
        """The law, with the log density of errors (n, k)."""
        density = log_density(self.squares(left), self.tails) - self.size.log().sum()
        density = density - left.shape[1] * (self.u @ self.loudness)
        return Noise(self.size.diag(), self.tails, density)


def log_density(squares: Tensor, tails: Tensor, used: Tensor | None = None) -> Tensor:
    """Log density, less that of the sizes, of squared errors (n, k) in them, of values used, (n,).

    All values when ``used`` (k,) is omitted. A reading that lies beyond all that the scales can
    tell of is as one at their end: it would outweigh all others.
    """
    squares = squares.clamp(max=(_FURTHEST * tails[1].max()).square())
    each = of_rows(squares.reshape(-1), 1, tails).reshape(squares.shape)
    return (each if used is None else each.where(used, 0.0)).sum(dim=1)
