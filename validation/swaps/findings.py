r"""What is wrong with q, one thing at a time: a parameter, which way, where in x, by how much.

Under q = p the mean over the pairs of any function f of the truth's place among the candidates is
as that of a swapped truth. So every finding has a number

    T_m(b) = sum_i f_m(c_bi) / sd over the swaps,

for the Legendre polynomials of a parameter's rank (to one side, too wide, skew, tails), for the
product of two parameters' normal scores (their dependence), for the first two polynomials times a
column of x (an error that varies with x), and for the rank of log q (the whole). Its p-value is the
share of swaps whose largest \|T\| over all findings is as large: what is found holds with all the
others looked at (Westfall & Young 1993). Sizes come from z = (theta_j - q's mean) / q's sd.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from simulators.random import child_seed

from .candidates import Candidates, among, swaps
from .context import normal_scores
from .deviations import scores_of
from .features import legendre, principal
from .statistics import places_of

Kind = Literal[
    "mean", "width", "skew", "tails", "dependence", "mean by x", "width by x", "whole", "shape"
]
_MARGINAL: tuple[Kind, ...] = ("mean", "width", "skew", "tails")
_MOST_COLUMNS = 20  # of x, each of which an error may vary with; more are a few main directions
_MOST_PRODUCTS = 300  # pairs of parameters: all of 25
_TWO_SIDED = 1.96
_LARGEST = 100.0  # z^2 of one pair, so that one outlier is not the width
_ODD: set[Kind] = {"mean", "skew"}
_EVEN: set[Kind] = {"width", "tails"}


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with q.

    Attributes:
        kind: what.
        parameters: places of the one or two parameters it is about; none for the whole.
        column: of x that it varies with.
        direction: whether ``column`` is a main direction of x, not a column.
        p_value: over all findings looked at.
        size: of what ``kind`` is measured by (:mod:`.words` says it), and its 95% interval.
    """

    kind: Kind
    parameters: tuple[int, ...]
    column: int | None
    direction: bool
    p_value: float
    size: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the interval leaves out what is right.

        Where one thing is wrong, such as a width, others scatter more than the swaps say.
        """
        return not self.low <= _RIGHT.get(self.kind, 0.0) <= self.high


def findings(
    candidates: Candidates, x: Tensor, seed: int, *, alpha: float, num_swaps: int
) -> tuple[Finding, ...]:
    """All that is found at level alpha over everything looked at, the clearest first.

    Args:
        candidates: of N pairs.
        x: of the pairs, (N, p).
        seed: of the swaps.
        alpha: the level.
        num_swaps: B.
    """
    chosen = swaps(candidates, num_swaps, child_seed(seed, 0))
    looked, sums = _look(candidates, x, places_of(chosen))
    sums = sums - sums.mean(dim=0)
    spread = sums.std(dim=0)
    size = sums.abs() / torch.where(spread > 0, spread, torch.full_like(spread, torch.inf))
    largest = size.amax(dim=1)
    p_values = (largest[:, None] >= size[0]).double().mean(dim=0)
    order = size[0].argsort(descending=True).tolist()
    found = [(looked.about[m], float(p_values[m])) for m in order if float(p_values[m]) <= alpha]
    measure = _Measure(candidates, scores_of(candidates).double(), looked)
    sized = (measure.finding(about, p) for about, p in _without_echoes(found))
    return tuple(one for one in sized if one.holds)


_RIGHT: dict[Kind, float] = {"width": 1.0, "tails": 0.1, "whole": 0.5, "shape": 0.2}
"""The size of each kind under q = p, 0 of the others."""
_About = tuple[Kind, tuple[int, ...], int | None]
"""(kind, parameters, column of x)."""


@dataclass(frozen=True, eq=False)
class _Looked:
    """What is looked at, and what of x it may vary with."""

    about: list[_About]
    of_x: Tensor
    """(N, k)."""
    names: list[int]
    """Which columns of x those are."""
    direction: bool


def _look(candidates: Candidates, x: Tensor, places: Tensor) -> tuple[_Looked, Tensor]:
    """What is looked at, and the sum over the pairs of each for all swaps, (1 + B, M)."""
    ranks = candidates.ranks
    width = ranks.shape[2]
    polynomials = legendre(ranks, len(_MARGINAL))
    about: list[_About] = [(kind, (j,), None) for j in range(width) for kind in _MARGINAL]
    sums = [_sums(polynomials.flatten(2), places)]
    pairs = torch.combinations(torch.arange(width), 2)[:_MOST_PRODUCTS]
    if len(pairs):
        scores = torch.special.ndtri(ranks)
        about += [("dependence", (j, k), None) for j, k in pairs.tolist()]
        sums.append(_sums(scores[..., pairs[:, 0]] * scores[..., pairs[:, 1]], places))
    of_x, names, direction = _of_x(x)
    low = polynomials[..., :2].flatten(2)
    for column, values in zip(names, of_x.T, strict=True):
        for j in range(width):
            about += [("mean by x", (j,), column), ("width by x", (j,), column)]
        sums.append(_sums(low * values[:, None], places))
    if candidates.log_q is not None and width > 1:
        about += [("whole", (), None), ("shape", (), None)]
        sums.append(_sums(legendre(_density(candidates), 2), places))
    return _Looked(about, of_x, names, direction), torch.cat(sums, dim=1)


def _sums(columns: Tensor, places: Tensor) -> Tensor:
    return embedding_bag(places, columns.flatten(0, 1), mode="sum")


def _of_x(x: Tensor) -> tuple[Tensor, list[int], bool]:
    """Normal scores of the columns of x that vary, and which; few main directions of many."""
    varies = (x != x[:1]).any(dim=0)
    scores = normal_scores(x)
    if scores.shape[1] <= _MOST_COLUMNS:
        return scores, varies.nonzero()[:, 0].tolist(), False
    main = principal(scores, _MOST_COLUMNS // 2)
    return main, list(range(main.shape[1])), True


@dataclass(frozen=True, eq=False)
class _Measure:
    """How large what was found is."""

    candidates: Candidates
    z: Tensor
    """(N, d or more)."""
    looked: _Looked

    def finding(self, about: _About, p_value: float) -> Finding:
        kind, parameters, column = about
        values = self._values(kind, list(parameters))
        if column is not None:
            values = values * self.looked.of_x[:, self.looked.names.index(column)]
        mean, error = float(values.mean()), float(values.std()) / len(values) ** 0.5
        ends = mean - _TWO_SIDED * error, mean + _TWO_SIDED * error
        along = column is not None and self.looked.direction
        return Finding(kind, parameters, column, along, p_value, mean, *ends)

    def _values(self, kind: Kind, parameters: list[int]) -> Tensor:
        """Values (N,) whose mean is the size."""
        if kind in ("whole", "shape"):
            rank = self.candidates.of_truth(_density(self.candidates))
            outer = (rank < 0.1) | (rank > 0.9)
            return ((rank >= 0.5) if kind == "whole" else outer).double()
        ranks = self.candidates.ranks[..., parameters]
        if kind == "dependence":
            product = torch.special.ndtri(ranks).prod(dim=2)
            more: Tensor = self.candidates.of_truth(product) - product.mean(dim=0)
            return more.double()
        z, rank = self.z[:, parameters[0]], self.candidates.of_truth(ranks)[:, 0]
        if kind == "skew":
            return (rank > 0.9).double() - (rank < 0.1).double()
        if kind == "tails":
            return ((rank < 0.05) | (rank > 0.95)).double()
        return -z if kind in ("mean", "mean by x") else z.square().clamp_max(_LARGEST)


def _density(candidates: Candidates) -> Tensor:
    """Ranks of log q, (C, N)."""
    if candidates.log_q is None:
        raise ValueError("`candidates` has no density.")
    ranks: Tensor = among(candidates.log_q)
    return ranks


def _without_echoes(found: list[tuple[_About, float]]) -> list[tuple[_About, float]]:
    """Without what a clearer finding about the same parameter brings with it."""
    kept: list[tuple[_About, float]] = []
    for (kind, parameters, column), p_value in found:
        same = {about[0] for about, _ in kept if about[1] == parameters}
        any_width = {about[0] for about, _ in found} & {"mean", "width", "tails"}
        echo = {
            "mean": same & _ODD,
            "skew": same & (_ODD | _EVEN),
            "width": same & _EVEN,
            "tails": same & _EVEN,
            # Normal scores of a parameter that is off multiply to no correlation.
            "dependence": [
                about
                for about, _ in found
                if about[0] in _ODD | _EVEN and set(about[1]) <= set(parameters)
            ],
            "whole": any_width or same,
            "shape": any_width or same,
        }.get(kind, {kind} & same if column is not None else set())
        if not echo:
            kept.append(((kind, parameters, column), p_value))
    return kept
