r"""A likelihood of values of x in the form of an exponential family.

    log p(x | theta)  =  eta . x - a(theta) + h(x),    eta = W theta

is that of counts given the coefficients of their log odds or logarithms, and of much else. The
gradient of a is then W' mu, where mu(theta) is what x is in the mean, and cov(x) W = d mu / d
theta, so that

    a(theta)  =  eta . int_0^1 mu(t theta) dt,    W = cov(x | theta)^-1 d mu / d theta,

the last two in the mean over the pairs. A linear model of x in theta, its squares and products says
all this: no number has to be found beside those of a normal law, and variances go with means as
they must. (A normal law with one covariance is as if eta were cov^-1 mu, curved where mu is.) Theta
held out say which is the nearer (:mod:`abi.generators.pool.power`); h makes no difference to them.

Of GLMs with ten parameters, x the ten sums of their spikes, log p(x_o | theta) was off by .80 nats,
an sd over the exact posterior, by a normal law and is by .47, 10,000 calls, four observations; with
1,000, eight, by 1.15 and .88. Mean C2ST of ten other observations fell from .62 to .56, and from
.68 to .66.

Source: Barndorff-Nielsen (1978), "Information and exponential families".
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.random import some_rows

from ....training.ridge import best_line
from ...base import GeneratorState, units
from ...trend import num_terms, with_products
from .rows import InParts
from .terms import terms_of

_TOGETHER = 1_000_000  # numbers, of values or terms


@dataclass(frozen=True, eq=False)
class Natural(InParts):
    """The law of p values given numbers of theta, but for what does not hang on theta.

    Attributes:
        used: which of the numbers are u, one for each parameter, (d,).
        center: of these, (d,).
        scale: likewise.
        eta: W, of u in these units, (p, d).
        level: mu at their center, (p,).
        slope: of the integral of mu, on u, its squares and products, (d (d + 3) / 2, p).
    """

    kind = "natural"
    used: Tensor
    center: Tensor
    scale: Tensor
    eta: Tensor
    level: Tensor
    slope: Tensor

    def _log_prob(self, seen: Tensor, numbers: Tensor) -> Tensor:
        u = (numbers[:, self.used] - self.center) / self.scale
        away = seen - self.level - with_products(u) @ self.slope
        return (u @ self.eta.T * away).sum(dim=1)


def learn_natural(numbers: Tensor, used: Tensor, x: Tensor) -> Natural | None:
    """That of x (n, p), given numbers of theta (n, c), of which some are ``used``, (d,).

    None where pairs are too few for squares and products, without which a normal law says the same,
    and where the values of a row may not be there.
    """
    most = _TOGETHER // max(x.shape[1], num_terms(len(used)))
    numbers, x = some_rows(most, numbers, x)
    center, scale, _ = units(numbers[:, used])
    u = (numbers[:, used] - center) / scale
    terms, width = terms_of(u.double(), x.shape[1]), len(used)
    if terms.shape[1] == width or not x.isfinite().all():
        return None
    level, unit, fixed = units(x)
    line = best_line(terms, torch.where(fixed, 0.0, (x - level) / unit).double())
    eta = torch.cholesky_solve(line.slope[:width].T, line.root) / unit[:, None]
    integral = line.slope * unit
    integral[:width] /= 2.0
    integral[width:] /= 3.0
    middle = level + line.shift * unit
    return Natural(used, center, scale, eta.float(), middle.float(), integral.float())


def restore_natural(state: GeneratorState) -> Natural:
    """The law of a file."""
    return Natural(**state.tensors)
