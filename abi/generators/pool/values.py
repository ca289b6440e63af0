r"""A likelihood of the values of x by linear models: few numbers to find, where pairs are few.

    x | theta  ~  N(A t, R R'),   and x_j = 1 with a chance of 1 / (1 + exp(-a_j . t))

where a value is 0 or 1; t are the numbers of theta and, where pairs gain by them, their squares and
products; R is diagonal, or not, likewise. What is measured at one time after another with noise of
its own is of this form, and so are yes and no. A regression of theta on p such values, or a
network, has p numbers to find for each parameter; here each value has as many as there are
parameters, and an answer is less far off by chance.

Means are found by ridge regression (:mod:`abi.training.ridge`), log odds by weighted least squares
with a unit normal prior for each coefficient. More terms must be worth more than they cost, and
than chance. (Sds that vary with theta were tried: of six predators and prey, 10,000 calls, whose
noise they describe, mean C2ST was .55, and .53 without.)

Source: Wood (2010), "Statistical inference for noisy nonlinear ecological dynamic systems", for
normal likelihoods learned from simulations; McCullagh & Nelder (1989), "Generalized linear
models"; Akaike (1974) for the price of a term.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from simulators.random import torch_generator

from ...training.ridge import best_line, surely_gain
from ..base import GeneratorState, units
from ..trend import num_terms, with_products

_PASSES = 8  # of log odds
_NARROWEST = 1e-6  # sds, of a value's own
_LEAST_ROWS = 4  # for each term, or value
_MOST_WORK = 4e9  # products of two terms, over all rows and values
_TOGETHER, _ROWS = 5_000_000, 20_000  # numbers, and rows
_HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class OfValues:
    """The law of each of p values, given c numbers of theta.

    Attributes:
        center: of the numbers, (c,).
        scale: likewise.
        level: of the values, (p,).
        unit: likewise; 0 of a value that never varied, which says nothing.
        binary: which are 0 or 1, (p,).
        place: coefficients a, (1 + c, p) or, with squares and products, (1 + c (c + 3) / 2, p).
        root: Cholesky factor of the covariance of what is measured, in its units, (p, p).
    """

    center: Tensor
    scale: Tensor
    level: Tensor
    unit: Tensor
    binary: Tensor
    place: Tensor
    root: Tensor

    def seen(self, x: Tensor, features: Tensor) -> Tensor:
        """What it sees of x (n, p)."""
        return x

    @torch.no_grad()
    def log_prob(self, seen: Tensor, numbers: Tensor) -> Tensor:
        """Log density of x (n, p), or (1, p) for all, given numbers (n, c), (n,)."""
        rows = seen.expand(len(numbers), -1)
        parts = zip(rows.split(_ROWS), numbers.split(_ROWS), strict=True)
        return torch.cat([self._log_prob(*part) for part in parts])

    def _log_prob(self, seen: Tensor, numbers: Tensor) -> Tensor:
        u = (numbers - self.center) / self.scale
        curved = len(self.place) > 1 + u.shape[1]
        eta = _with_ones(with_products(u) if curved else u) @ self.place
        measured = (self.unit > 0) & ~self.binary
        away = ((seen - self.level) / self.unit - eta).where(measured, 0.0)
        rest = torch.linalg.solve_triangular(self.root, away.T, upper=False)
        constant = self.root.diagonal().log().sum() + self.unit.where(measured, 1.0).log().sum()
        constant += int(measured.sum()) * _HALF_LOG_2PI
        chance = seen * eta - torch.nn.functional.softplus(eta)
        of_binary = chance.where(self.binary, 0.0).sum(dim=1)
        value: Tensor = of_binary - 0.5 * rest.square().sum(dim=0) - constant
        return value

    def state(self) -> GeneratorState:
        """All there is."""
        return GeneratorState(
            "values", {part.name: getattr(self, part.name) for part in fields(self)}, {}
        )


def learn_values(numbers: Tensor, x: Tensor) -> OfValues:
    """The laws of values x (n, p), given numbers of theta (n, c).

    A value that never varies, or is not always there, says nothing.
    """
    most = _TOGETHER // max(x.shape[1], numbers.shape[1])  # more would find them no better
    if len(x) > most:
        some = torch.randperm(len(x), generator=torch_generator(0))[:most]
        numbers, x = numbers[some], x[some]
    center, scale, _ = units(numbers)
    sd = x.std(dim=0)
    used = x.isfinite().all(dim=0) & (x != x[0]).any(dim=0) & sd.isfinite()
    level, unit = x.mean(dim=0).where(used, 0.0), sd.where(used, 0.0)
    binary = used & ((x == 0.0) | (x == 1.0)).all(dim=0)
    u = ((numbers - center) / scale).double()
    z = (x - level).double() / unit.where(used, 1.0).double()
    place = torch.zeros(1 + num_terms(u.shape[1]), x.shape[1], dtype=torch.float64)
    root = torch.eye(x.shape[1], dtype=torch.float64)
    kinds = (
        (binary, x.double(), _of_odds, int(binary.sum())),
        (used & ~binary, z, _of_line, 1),
    )
    for where, values, fitted, times in kinds:
        at = where.nonzero()[:, 0]
        if len(at):
            found = _best(u, values[:, at], fitted, times)
            place[: len(found.place), at], root[at[:, None], at] = found.place, found.root
    place = place if place[1 + u.shape[1] :].any() else place[: 1 + u.shape[1]]
    return OfValues(center, scale, level, unit, binary, place.float(), root.float())


@dataclass(frozen=True, eq=False)
class _Laws:
    """Coefficients of some values' laws, float64, and the log density of each row under them.

    ``num_terms`` of them were found from these rows; those that rows left out have judged already
    do not count.
    """

    place: Tensor
    root: Tensor
    log_density: Tensor
    num_terms: int

    def worth_more(self, other: _Laws) -> bool:
        """Whether rows gain more than these terms cost beyond those of the other, and by chance."""
        cost = (self.num_terms - other.num_terms) / len(self.log_density)
        return surely_gain(self.log_density - other.log_density, cost)


def _best(u: Tensor, z: Tensor, fitted: Callable[[Tensor, Tensor], _Laws], times: int) -> _Laws:
    """The laws of values z (n, k), given scaled numbers u (n, c), with products where worth it.

    Args:
        u: numbers.
        z: values.
        fitted: laws that are linear in terms (n, t).
        times: that the products of all terms are worked out for them.
    """
    laws = fitted(u, z)
    count = 1 + num_terms(u.shape[1])
    if _LEAST_ROWS * count <= len(u) and count**2 * len(u) * times <= _MOST_WORK:
        curve = fitted(with_products(u), z)
        laws = curve if curve.worth_more(laws) else laws
    return laws


def _of_line(s: Tensor, z: Tensor) -> _Laws:
    """The best line in terms s (n, t), with errors that go together where rows gain by that."""
    line = best_line(s, z)
    place = torch.cat([line.shift[None], line.slope])
    sd = line.left.square().mean(dim=0).sqrt().clamp_min(_NARROWEST)
    alone = -0.5 * (line.left / sd).square().sum(dim=1) - sd.log().sum()
    apart = _Laws(place, sd.diag(), alone, 0)
    num_pairs = z.shape[1] * (z.shape[1] - 1) // 2
    together = _Laws(place, line.root, line.log_density, num_pairs)
    enough = _LEAST_ROWS * z.shape[1] <= len(z)
    return together if enough and together.worth_more(apart) else apart


def _of_odds(s: Tensor, z: Tensor) -> _Laws:
    """Log odds that are linear in terms s (n, t), whose coefficients have a unit normal prior."""
    t = _with_ones(s)
    place = torch.zeros(t.shape[1], z.shape[1], dtype=t.dtype)
    for _ in range(_PASSES):
        chance = (t @ place).sigmoid()
        weights = (chance * (1.0 - chance)).clamp_min(1e-6)
        place = _solved(t, weights, weights * (t @ place) + z - chance)
    eta = t @ place
    log_density = (z * eta - torch.nn.functional.softplus(eta)).sum(dim=1)
    return _Laws(place, torch.eye(z.shape[1], dtype=t.dtype), log_density, place.numel())


def _solved(t: Tensor, weights: Tensor, targets: Tensor) -> Tensor:
    """argmin_a sum_i w_ij (t_i . a_j - y_ij)^2 + |a_j|^2, ``targets`` being w y.

    The first coefficient, a constant, is free.
    """
    prior = torch.eye(t.shape[1], dtype=t.dtype)
    prior[0, 0] = 1e-8
    right, some = t.T @ targets, max(1, _TOGETHER // t.numel())
    found = [
        torch.linalg.solve((t.T * w.T[:, None]) @ t + prior, y.T[..., None])[..., 0]
        for w, y in zip(weights.split(some, dim=1), right.split(some, dim=1), strict=True)
    ]
    return torch.cat(found).T


def _with_ones(terms: Tensor) -> Tensor:
    return torch.cat([torch.ones(len(terms), 1, dtype=terms.dtype), terms], dim=1)
