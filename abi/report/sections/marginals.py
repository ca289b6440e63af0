"""One parameter of a fit as the page shows it: its draws, and how its numbers are written."""

from __future__ import annotations

from dataclasses import dataclass

from validation.page import Written
from validation.page.words import measured

from ..sources import FitRecord
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
        """Of the draws."""
        return float(self.draws.std())

    def near(self, value: float, digits: int = 3) -> str:
        """A value of this parameter in the decimals that its spread has."""
        return measured(float(value), self.sd, digits)

    def cell(self, value: float) -> Written:
        """The same in a table."""
        return Written(self.near(value), float(value))

    @property
    def contraction(self) -> float | None:
        """One minus the ratio of the variances of posterior and prior."""
        if self.prior is None or self.prior.var() == 0:
            return None
        return 1.0 - float(self.draws.var() / self.prior.var())

    @property
    def shift(self) -> float | None:
        """Mean minus the exact mean, in exact standard deviations."""
        if self.exact is None or self.exact.std() == 0:
            return None
        return float((self.draws.mean() - self.exact.mean()) / self.exact.std())

    @property
    def width_ratio(self) -> float | None:
        """Standard deviation over the exact one."""
        if self.exact is None or self.exact.std() == 0:
            return None
        return float(self.draws.std() / self.exact.std())


def marginals_of(record: FitRecord) -> list[Marginal]:
    """Every parameter of the fit, in order."""
    found = []
    for j, name in enumerate(record.posterior.parameter_names):
        columns = [
            None if part is None else part[:, j].double().numpy()
            for part in (record.samples, record.prior, record.exact)
        ]
        draws, prior, exact = columns
        ends = float(record.support.lower[j]), float(record.support.upper[j])
        span = view([part for part in (draws, exact) if part is not None], ends)
        found.append(Marginal(name, draws, prior, exact, ends, span))  # type: ignore[arg-type]
    return found
