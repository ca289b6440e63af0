r"""Laws of small counts: negative binomial, with the log of the mean linear in theta.

    x_j | theta  ~  NB(mean = exp(a_j . t), variance = mean + mean^2 / r_j)

Where a value is 0, 1, 2 or 3 no scale makes its noise normal: of an epidemic's last cases, 10,000
calls, such a law alone gave sds of .77 to .84 times the true ones. Larger counts are well described
on the scale of their roots (:mod:`.scales`), and so are those whose variance is below their mean:
the law that gives what was simulated the higher probability is taken.

Coefficients have a unit normal prior. Source: McCullagh & Nelder (1989), "Generalized linear
models"; Hilbe (2011), "Negative binomial regression".
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .answers import solved
from .scales import best_mass
from .terms import on_surest_terms, terms_of

_LARGEST_MEAN = 30.0  # of a count that may have such a law
_PASSES = 8
MOST_LOG = 12.0
"""Of a mean."""
_LEAST_SHAPE, _MOST_SHAPE = 0.3, 1e4  # the largest is Poisson's law, all but


class Counted(NamedTuple):
    """Coefficients (1 + t, k), shapes r (k,), and log densities of the rows (n, k)."""

    place: Tensor
    shape: Tensor
    log_density: Tensor


def counted(u: Tensor, x: Tensor, among: Tensor) -> tuple[Tensor, Counted]:
    """Which of x (n, p) are small counts, (p,), and the laws of these, given numbers u (n, c).

    Only ``among`` those asked, (p,), and if such a law describes them better than noise on a scale.
    """
    whole = ((x >= 0.0) & (x == x.round())).all(dim=0)
    which = among & whole & (x.mean(dim=0) <= _LARGEST_MEAN)
    small = x[:, which].double()
    found = fit_counts(u, small)
    if not which.any():
        return which, found
    better = found.log_density.mean(dim=0) > best_mass(terms_of(u, small.shape[1]), small)
    which[which.clone()] = better
    return which, Counted(found.place[:, better], found.shape[better], found.log_density[:, better])


def mean_of(log_mean: Tensor) -> Tensor:
    """Of its log, within what numbers can hold."""
    return log_mean.clamp(-MOST_LOG, MOST_LOG).exp()


def log_density(x: Tensor, log_mean: Tensor, shape: Tensor) -> Tensor:
    """Of each count x, elementwise, given the log of its mean and r; below 0 as at 0."""
    x, eta = x.clamp_min(0.0), log_mean.clamp(-MOST_LOG, MOST_LOG)
    both = torch.logaddexp(shape.log(), eta)
    ways = (x + shape).lgamma() - shape.lgamma() - (x + 1.0).lgamma()
    value: Tensor = ways + shape * (shape.log() - both) + x * (eta - both)
    return value


def fit_counts(u: Tensor, x: Tensor) -> Counted:
    """The law of counts x (n, k), given numbers u (n, c), float64.

    Means are of the numbers, and of their squares and products where rows gain by these.
    """
    return on_surest_terms(_fitted, u, x)


def _fitted(t: Tensor, x: Tensor) -> Counted:
    """By weighted least squares again and again; r from the variance that these leave."""
    place = torch.zeros(t.shape[1], x.shape[1], dtype=t.dtype)
    place[0] = x.mean(dim=0).log()
    shape = torch.full_like(place[0], _MOST_SHAPE)
    best = Counted(place, shape, log_density(x, t @ place, shape))
    for _ in range(_PASSES):
        eta = (t @ place).clamp(-MOST_LOG, MOST_LOG)
        mean = eta.exp()
        own = 1.0 / (1.0 + mean / shape)
        weights = (mean * own).clamp_min(1e-6)
        place = solved(t, weights, weights * eta + (x - mean) * own)
        log_mean = t @ place
        mean = mean_of(log_mean)
        shape = _shape(x, mean, shape)
        found = Counted(place, shape, log_density(x, log_mean, shape))
        better = found.log_density.mean(dim=0) > best.log_density.mean(dim=0)
        best = Counted(*(torch.where(better, a, b) for a, b in zip(found, best, strict=True)))
    return best


def _shape(x: Tensor, mean: Tensor, before: Tensor) -> Tensor:
    """R (k,) of counts (n, k), by a regression of what their squares are beyond the mean.

    Its weights are those of the r ``before``.
    """
    weights = mean.square() / (mean + mean.square() / before).square()
    beyond = (weights * ((x - mean).square() - mean)).sum(dim=0)
    share = beyond / (weights * mean.square()).sum(dim=0)
    return 1.0 / share.clamp(1.0 / _MOST_SHAPE, 1.0 / _LEAST_SHAPE)


def likelier_shape(x: Tensor, log_mean: Tensor, before: Tensor) -> Tensor:
    """R (k,) of counts (n, k), given the logs of their means: found anew where that is likelier."""
    again = _shape(x, mean_of(log_mean), before)
    gain = log_density(x, log_mean, again) - log_density(x, log_mean, before)
    return torch.where(gain.mean(dim=0) > 0.0, again, before)
