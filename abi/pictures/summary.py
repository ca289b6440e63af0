"""A posterior in numbers: one record, which ``summary.json``, the report and a notebook show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from validation.results.tables import html_table, text_table
from validation.words import measured, plural

from .fit import Shown, chosen, shown_marginals
from .marginals import Marginal

LEVELS = (0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975)
_IN_A_NOTEBOOK, _MOST_ROWS = 2_000, 12
_TRUE_MINUS = "\N{MINUS SIGN}"  # not what one pastes into a program


@dataclass(frozen=True)
class ParameterSummary:
    """One parameter of a posterior in numbers.

    Attributes:
        name: of the parameter.
        mean: of the draws.
        sd: of the draws; None of one.
        quantiles: by their levels as text, "0.025" to "0.975".
        contraction: the share of the prior's variance that x_o took away,
            ``1 - (sd / prior sd)^2``: 0 where it says nothing, 1 where it says all, below 0 where
            the posterior is the wider; None where the prior is not known.
    """

    name: str
    mean: float
    sd: float | None
    quantiles: Mapping[str, float]
    contraction: float | None = None

    @classmethod
    def of(cls, m: Marginal) -> ParameterSummary:
        """That of a marginal."""
        sd = m.sd if len(m.draws) > 1 else None
        quantiles = {str(level): m.quantile(level) for level in LEVELS}
        return cls(m.name, m.mean, sd, quantiles, m.contraction)

    @property
    def median(self) -> float:
        """Half of the draws lie below."""
        return self.quantiles["0.5"]

    @property
    def interval(self) -> tuple[float, float]:
        """The central 95%."""
        return self.quantiles["0.025"], self.quantiles["0.975"]

    def to_dict(self) -> dict[str, Any]:
        """Mean, sd, quantiles and contraction: plain values that fit in JSON."""
        values = asdict(self)
        del values["name"]
        return values


@dataclass(frozen=True)
class PosteriorSummary:
    """A posterior in numbers; ``print`` shows a table, a notebook too, ``to_dict`` is for programs.

    ``summary["speed"].mean`` is a number of one parameter.

    Attributes:
        parameters: one record each.
        num_samples: draws of the posterior that the numbers are of.
        calls: of the simulator.
        verdict: its headline.
    """

    parameters: tuple[ParameterSummary, ...]
    num_samples: int
    calls: int
    verdict: str

    def __getitem__(self, name: str) -> ParameterSummary:
        for part in self.parameters:
            if part.name == name:
                return part
        raise KeyError(f"{name!r} is none of {', '.join(part.name for part in self.parameters)}")

    def __str__(self) -> str:
        return f"{text_table(*_table(self.parameters))}\n{self._footing}\n{self.verdict}"

    __repr__ = __str__

    @property
    def _footing(self) -> str:
        return f"{plural(self.calls, 'simulator call')}, {plural(self.num_samples, 'draw')}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values that fit in JSON; ``"posterior"`` is that of a run's ``summary.json``."""
        return {
            "posterior": {part.name: part.to_dict() for part in self.parameters},
            "num_samples": self.num_samples,
            "simulator_calls": self.calls,
            "verdict": self.verdict,
        }

    def _repr_html_(self) -> str:
        table = html_table(*_table(self.parameters))
        return f"{table}<p>{escape(self._footing)}<br>{escape(self.verdict)}</p>"


def summary(
    posterior: Shown,
    *,
    prior: Any = None,
    parameters: Sequence[str] | None = None,
    num_samples: int | None = None,
    seed: int = 0,
) -> PosteriorSummary:
    """Mean, sd, median, central 95% and contraction of each parameter, as a table.

    The contraction is the share of the prior's variance that x_o took away,

        1 - (sd / prior sd)^2.

    Args:
        posterior: the posterior.
        prior: of the fit, as :func:`abi.fit` takes it; needed where the posterior was loaded, for
            the contraction.
        parameters: names of those shown; all when omitted.
        num_samples: draws that the numbers are of; ten thousand when omitted, or fewer where
            parameters are many.
        seed: of the draws.

    Raises:
        ValueError: if a name is not one of a parameter, or the prior is another's.
    """
    names = posterior.parameter_names
    places = chosen(parameters, names, len(names))
    marginals = shown_marginals(posterior, num_samples, seed, prior)
    return PosteriorSummary(
        tuple(ParameterSummary.of(marginals[j]) for j in places),
        len(marginals[0].draws),
        posterior.num_simulations,
        posterior.verdict.headline,
    )


def in_a_notebook(posterior: Shown) -> str:
    """A posterior as HTML: its parameters in numbers, its cost, and the line of its verdict.

    One for every x has no draws without an x, and so no numbers.
    """
    names = posterior.parameter_names
    calls, rounds = posterior.num_simulations, len(posterior.rounds)
    cost = f"{plural(calls, 'simulator call')} in {plural(rounds, 'round')}"
    footing = f"<p>{escape(cost)}<br>{escape(posterior.verdict.headline)}</p>"
    if posterior.x_o is None:
        return f"<p>Posterior of {plural(len(names), 'parameter')} for every x</p>{footing}"
    found = summary(posterior, parameters=names[:_MOST_ROWS], num_samples=_IN_A_NOTEBOOK)
    left = len(names) - len(found.parameters)
    more = f"<p>{left:,} more: <code>posterior.summary()</code></p>" if left else ""
    caption = f"Posterior of {plural(len(names), 'parameter')} given x_o"
    table = html_table(*_table(found.parameters), caption)
    return f"{table}{more}{footing}"


def _table(parts: Sequence[ParameterSummary]) -> tuple[list[list[str]], list[str]]:
    """Rows and header; the contraction stands where one is known."""
    header = ["parameter", "mean", "sd", "2.5%", "median", "97.5%"]
    known = any(part.contraction is not None for part in parts)
    rows = []
    for part in parts:
        sd = part.sd or 0.0
        values = (part.mean, sd, part.interval[0], part.median, part.interval[1])
        row = [part.name, *(measured(value, sd).replace(_TRUE_MINUS, "-") for value in values)]
        if known:
            share = part.contraction
            row.append("-" if share is None else f"{share:.1%}")
        rows.append(row)
    return rows, [*header, "contraction"] if known else header
