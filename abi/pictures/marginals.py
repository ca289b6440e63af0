"""One parameter of a posterior as it is shown: its draws, its numbers, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from validation.words import measured

from ..generators.support import Support
from .density import Array, Ends, view


@dataclass(frozen=True, eq=False)
class Marginal:
    """One parameter: its draws, where it is shown, and its numbers."""

    name: str
    draws: Array
    prior: Array | None
    exact: Array | None
    ends: Ends
    span: Ends

    @property
    def mean(self) -> float:
        """Of the draws."""
        return float(self.draws.mean())

    @property
    def sd(self) -> float:
        """Of the draws; 0 of one."""
        return _sd(self.draws)

    def quantile(self, level: float) -> float:
        """The value below which a share of the draws lies."""
        return float(np.quantile(self.draws, level))

    def near(self, value: float, digits: int = 3) -> str:
        """A value of this parameter in the decimals that its spread has."""
        return measured(float(value), self.sd, digits)

    @property
    def contraction(self) -> float | None:
        """One minus the ratio of the variances of posterior and prior: what was learned."""
        if self.prior is None or (before := _sd(self.prior)) == 0:
            return None
        return float(1.0 - (self.sd / before) ** 2)

    @property
    def shift(self) -> float | None:
        """Mean minus the exact mean, in exact standard deviations."""
        if self.exact is None or (sd := _sd(self.exact)) == 0:
            return None
        return float((self.draws.mean() - self.exact.mean()) / sd)

    @property
    def width_ratio(self) -> float | None:
        """Standard deviation over the exact one."""
        if self.exact is None or (sd := _sd(self.exact)) == 0:
            return None
        return self.sd / sd


def marginals_of(
    names: Sequence[str],
    samples: Tensor,
    prior: Tensor | None = None,
    exact: Tensor | None = None,
    support: Support | None = None,
) -> list[Marginal]:
    """Every parameter, in order.

    Args:
        names: d names.
        samples: draws of the posterior, (n, d).
        prior: draws of the prior, (m, d).
        exact: draws of the exact posterior, (k, d).
        support: of the prior.
    """
    found = []
    for j, name in enumerate(names):
        draws = samples[:, j].double().numpy()
        before, known = (
            None if part is None else part[:, j].double().numpy() for part in (prior, exact)
        )
        ends = (-np.inf, np.inf)
        if support is not None:
            ends = float(support.lower[j]), float(support.upper[j])
        span = view([draws] if known is None else [draws, known], ends)
        found.append(Marginal(name, draws, before, known, ends, span))
    return found


def _sd(draws: Array) -> float:
    return float(draws.std(ddof=1)) if len(draws) > 1 else 0.0
