r"""What of theta given x is linear and Gaussian: flows begin there, and learn the rest.

With z = S(theta) on the real line (:mod:`.support`) and s the features of x,

    z = m + B' t(s) + R u,

B is found by ridge regression, R is the Cholesky factor of the covariance of what is left, and the
flow is the law of u given s. The terms t(s) are s itself, with squares and products of any two
where theta left out gain by these beyond chance: a posterior bends with x, and a simulator's mean
with theta. Likelihoods (:mod:`.pool`) gain most: of GLMs, 1,000 calls, C2ST fell from .66 to .59
and from .61 to .59, where two more stayed straight; of three epidemics from .60 to .56 in the mean.

A flow that has learned nothing maps u to itself, so it begins as the linear Gaussian posterior and
leaves it only where theta held out gain by it. In ten dimensions that is most of the accuracy: of a
linear Gaussian model, 10,000 calls, C2ST fell from .60 to .51.

What is left is measured as it would be of theta left out, so that few pairs make R wider
(:mod:`abi.training.ridge`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.random import some_rows

from ..training.ridge import best_line
from .base import units

_MOST_FEATURES = 512
_NUMBERS = 20_000_000  # terms of rows looked at: more would find the trend no better
_ROWS = 100_000  # whose products are worked out together
_ROWS_EACH = 4  # of theta, for each of its dimensions, below which there is no covariance


@dataclass(frozen=True, eq=False)
class Trend:
    """z = center + t(s) slope + root u: the centre (d,), the root (d, d), the slope or none.

    The slope's rows say what t(s) is: k, s itself; k (k + 3) / 2, also its squares and products.
    """

    center: Tensor
    root: Tensor
    slope: Tensor | None = None

    @property
    def dim(self) -> int:
        """Number of parameters d."""
        return len(self.center)

    @property
    def log_scale(self) -> Tensor:
        """Log of |det dz / du|."""
        log_scale: Tensor = self.root.diagonal().log().sum()
        return log_scale

    def to_rest(self, z: Tensor, seen: Tensor | None) -> Tensor:
        """The u (n, d) behind z (n, d), given features (n, k), (k,), or none."""
        away = z - self._place(seen)
        rest: Tensor = torch.linalg.solve_triangular(self.root, away.T, upper=False)
        return rest.T.contiguous()

    def from_rest(self, rest: Tensor, seen: Tensor | None) -> Tensor:
        """The inverse of :meth:`to_rest`."""
        z: Tensor = rest @ self.root.T + self._place(seen)
        return z

    def at(self, seen: Tensor | None) -> Trend:
        """The trend at one x, whose features are (k,): it has no slope."""
        return Trend(self._place(seen), self.root)

    def _place(self, seen: Tensor | None) -> Tensor:
        if self.slope is None or seen is None:
            return self.center
        if seen.shape[-1] == len(self.slope):
            return self.center + seen @ self.slope
        return self.center + torch.cat(
            [with_products(rows) @ self.slope for rows in torch.atleast_2d(seen).split(_ROWS)]
        ).reshape(*seen.shape[:-1], self.dim)


def fit_trend(z: Tensor, seen: Tensor | None, *, curved: bool = True) -> tuple[Trend, Tensor]:
    """The trend of z (n, d) in features (n, k); without them, centre and covariance of z.

    It is a straight line unless it may be ``curved`` and theta left out gain by that.
    A parameter that does not vary keeps next to no width.

    Returns:
        The trend, and the rest (n, d) of each theta less that of all others. Less its own trend,
        theta is nearer to the middle than others will be: with ten parameters and features, and 900
        pairs, by .15 nats in the mean.
    """
    center, scale, fixed = units(z)
    if len(z) <= _ROWS_EACH * z.shape[1]:
        alone = Trend(center, torch.diag(scale))
        return alone, alone.to_rest(z, None)
    standard = torch.where(fixed, 0.0, (z - center) / scale).double()
    if seen is None or seen.shape[1] > min(_MOST_FEATURES, len(z) // 2):
        seen = torch.empty(len(z), 0)
    curved = curved and 0 < num_terms(seen.shape[1]) <= min(_MOST_FEATURES, len(z) // 2)
    most = _NUMBERS // max(1, num_terms(seen.shape[1]) if curved else seen.shape[1])
    whole = seen
    standard, seen = some_rows(most, standard, seen)
    line = best_line(seen.double(), standard)
    if curved:
        curve = best_line(with_products(seen.double()), standard)
        line = curve if curve.surely_better(line) else line
    # As they are read from a file: the rounding of products hangs on the order in memory.
    root = (line.root * scale[:, None].double()).float().contiguous()
    slope = (line.slope * scale).float().contiguous() if seen.shape[1] else None
    trend = Trend(center + (line.shift * scale).float(), root, slope)
    rest = line.rest.float().contiguous() if len(line.left) == len(z) else trend.to_rest(z, whole)
    return trend, rest


def with_products(seen: Tensor) -> Tensor:
    """Features (..., k), their squares and the products of any two, (..., k (k + 3) / 2)."""
    products = (seen[..., i : i + 1] * seen[..., i:] for i in range(seen.shape[-1]))
    return torch.cat([seen, *products], dim=-1)


def num_terms(num_features: int) -> int:
    """How many terms :func:`with_products` makes of so many features."""
    return num_features * (num_features + 3) // 2
