r"""A likelihood of the values of x by linear models: few numbers to find, where pairs are few.

    g(x) | theta  ~  A t + R r,   and x_j = 1 with a chance of 1 / (1 + exp(-a_j . t))

where a value is 0 or 1; small counts have a law of their own (:mod:`.counts`). t are the numbers of
theta, their squares and products, of which each value hangs on few (:mod:`.selection`); g is the
scale of each value (:mod:`.scales`), and r normal, or with heavier tails (:mod:`.noise`). What is
measured at one time after another with noise of its own is of this form, and so are yes and no. A
regression of theta on p such values, or a network, has p numbers to find for each parameter; here
each value has as many as it hangs on, and an answer is less far off by chance.

Log odds (:mod:`.answers`) hang on all terms. (Sds that vary with theta were tried: of six predators
and prey, 10,000 calls, mean C2ST was .55, and .53 without.)

Source: Wood (2010), "Statistical inference for noisy nonlinear ecological dynamic systems", for
normal likelihoods learned from simulations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from simulators.random import some_rows

from ...base import GeneratorState, units
from ...trend import num_terms, with_products
from . import answers, apart, counts
from .answers import log_odds
from .measured import Measured, fit_measured
from .noise import NORMAL, inverse_of, log_density
from .rows import InParts
from .scales import Scales
from .terms import with_ones

_TOGETHER = 2_000_000  # numbers


@dataclass(frozen=True, eq=False)
class OfValues(InParts):
    """The law of each of p values, given c numbers of theta.

    Attributes:
        center: of the numbers, (c,).
        scale: likewise.
        level: of the values, on their scales, (p,).
        unit: likewise; 0 of a value that never varied, which says nothing.
        binary: which are 0 or 1, (p,).
        shape: r of those that are counts, (p,); 0 of the others.
        place: coefficients a, (1 + c, p) or, with squares and products, (1 + c (c + 3) / 2, p).
        root: the factor R of what is measured, in its units, (p, p).
        exponent: of the values' scales, (p,).
        least: what lesser values count as there, (p,).
        tails: of the noise, (2, m).
        apart: whether they are those of each value, not of a row of them.
        loudness: how the log of its size goes with the numbers, (c,); 0 where not apart.
    """

    kind = "values"
    center: Tensor
    scale: Tensor
    level: Tensor
    unit: Tensor
    binary: Tensor
    shape: Tensor
    place: Tensor
    root: Tensor
    exponent: Tensor
    least: Tensor
    tails: Tensor
    apart: Tensor
    loudness: Tensor

    def seen(self, x: Tensor, features: Tensor) -> Tensor:
        """What it sees of x (n, p): each value on its scale."""
        return Scales(self.exponent, self.least).of(x)

    def _log_prob(self, seen: Tensor, numbers: Tensor) -> Tensor:
        u = (numbers - self.center) / self.scale
        curved = len(self.place) > 1 + u.shape[1]
        eta = with_ones(with_products(u) if curved else u) @ self.place
        counted = self.shape > 0
        measured = (self.unit > 0) & ~self.binary & ~counted
        away = ((seen - self.level) / self.unit - eta).where(measured, 0.0)
        rest = away @ self._inverse.T
        count = int(measured.sum())
        if self.apart:
            louder = u @ self.loudness
            of_each = (rest / louder.exp()[:, None]).square()
            of_measured = apart.log_density(of_each, self.tails, measured) - count * louder
        else:
            of_measured = log_density(rest.square().sum(dim=1), count, self.tails)
        units = self.root.diagonal().log().sum() + self.unit.where(measured, 1.0).log().sum()
        of_binary = answers.log_density(seen, eta).where(self.binary, 0.0).sum(dim=1)
        of_counts = counts.log_density(seen[:, counted], eta[:, counted], self.shape[counted])
        value: Tensor = of_binary + of_counts.sum(dim=1) + of_measured - units
        return value

    @cached_property
    def _inverse(self) -> Tensor:
        return inverse_of(self.root)


def learn_values(
    numbers: Tensor, x: Tensor, beyond: tuple[Tensor, Tensor] | None = None
) -> list[OfValues]:
    """Laws of values x (n, p), given numbers of theta (n, c).

    The first has normal noise; where what was simulated gains by tails, of rows or of each value,
    others have these. A value that never varies, or is not always there, says nothing. Log odds of
    yes and no are learned from numbers (m, c) and values (m, p) that may go ``beyond`` these.
    """
    most = _TOGETHER // max(x.shape[1], numbers.shape[1])
    numbers, x = some_rows(most, numbers, x)
    center, scale, _ = units(numbers)
    u = ((numbers - center) / scale).double()
    used = x.isfinite().all(dim=0) & (x != x[0]).any(dim=0) & x.std(dim=0).isfinite()
    binary = used & _is_answer(x).all(dim=0)
    counted, of_counts = counts.counted(u, x, used & ~binary)
    measured = used & ~binary & ~counted
    asked, said = (numbers, x) if beyond is None else some_rows(most, *beyond)
    if not _is_answer(said[:, binary]).all():
        asked, said = numbers, x
    odds = log_odds(((asked - center) / scale).double(), said[:, binary].double())
    discrete = _Discrete(binary, counted, odds, of_counts.place, of_counts.shape)
    found = fit_measured(u, x[:, measured].double()) if measured.any() else [None]
    return [_law_of(center, scale, discrete, measured, part) for part in found]


def _is_answer(x: Tensor) -> Tensor:
    """Which values are 0 or 1, no or yes."""
    return (x == 0.0) | (x == 1.0)


class _Discrete(NamedTuple):
    """Which values are 0 or 1, and which are small counts, (p,), and their laws."""

    binary: Tensor
    counted: Tensor
    odds: Tensor
    log_mean: Tensor
    shape: Tensor


def _law_of(
    center: Tensor, scale: Tensor, discrete: _Discrete, measured: Tensor, found: Measured | None
) -> OfValues:
    """The law of values of which some are ``measured``, (p,), others discrete or nothing."""
    width, plain = len(measured), 1 + len(center)
    place, root, tails = torch.zeros(1 + num_terms(len(center)), width), torch.eye(width), NORMAL
    binary, counted, odds, log_mean, counted_shape = discrete
    level, unit, shape = torch.zeros(width), (binary | counted).float(), torch.zeros(width)
    exponent, least = torch.ones(width), torch.ones(width)
    place[: len(odds), binary] = odds.float()
    place[: len(log_mean), counted] = log_mean.float()
    shape[counted] = counted_shape.float()
    if found is not None:
        at = measured.nonzero()[:, 0]
        exponent[at], least[at] = (part.float() for part in found.scales)
        level[at], unit[at] = found.level.float(), found.unit.float()
        place[: len(found.place), at] = found.place.float()
        root[at[:, None], at] = found.noise.root.float()
        tails = found.noise.tails.float()
    place = place if place[plain:].any() else place[:plain]
    loudness = None if found is None else found.loudness
    return OfValues(
        center, scale, level, unit, binary, shape, place, root, exponent, least, tails,
        torch.tensor(loudness is not None),
        torch.zeros(len(center)) if loudness is None else loudness.float(),
    )  # fmt: skip


def restore_values(state: GeneratorState) -> OfValues:
    """The law of a file.

    Before version 14 all values were on their own scale and had no tails, before 17 none their own;
    before 18 none was a count.
    """
    width = len(state.tensors["level"])
    before = {"exponent": torch.ones(width), "least": torch.ones(width), "tails": NORMAL}
    before |= {"apart": torch.tensor(False), "loudness": torch.zeros(len(state.tensors["center"]))}
    before |= {"shape": torch.zeros(width)}
    return OfValues(**before | state.tensors)
