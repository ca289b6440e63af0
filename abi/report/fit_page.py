"""A fit with all that its page shows: prepared, its first screen, its facts and its sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from validation.page import Block, Facts, Figure, Section, Text
from validation.words import number, plural

from ..pictures.marginals import Marginal
from ..pictures.predicted import Predictive
from .sections.exact import Distance, distance_to_exact, exact_section
from .sections.glance import answer_figure
from .sections.posterior import posterior_section
from .sections.predictive import predict, predictive_section
from .sections.replay import replay_section
from .sections.rounds import rounds_section
from .sections.verdict import verdict_section
from .sources import FitRecord


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit with everything its report says."""

    record: FitRecord
    marginals: list[Marginal]
    predictive: Predictive | str
    distance: Distance | None
    key: str


def prepare(record: FitRecord, num_predictive: int | None, seed: int, key: str) -> Fit:
    """Simulate and compare what a report needs."""
    marginals = record.marginals
    return Fit(
        record,
        marginals,
        predict(record, num_predictive, seed),
        distance_to_exact(record, marginals, seed),
        key,
    )


def first_screen(fit: Fit) -> tuple[Figure, ...]:
    """The answer, in numbers and in a picture."""
    return (answer_figure(fit.marginals),)


def answer_sections(fit: Fit, wanted: Sequence[str]) -> tuple[Section, ...]:
    """Posterior, tests, exact posterior and predicted data: what is known, and how well."""
    record, key = fit.record, fit.key
    sections = [posterior_section(record, fit.marginals, wanted, key), verdict_section(record, key)]
    if fit.distance is not None:
        sections.append(exact_section(fit.distance, key))
    return (*sections, predictive_section(fit.predictive, key))


def run_sections(fit: Fit) -> tuple[Section, ...]:
    """Rounds, how to repeat the fit, and what could not be had: how it came about."""
    record, key = fit.record, fit.key
    sections = [rounds_section(record, key), replay_section(record, key)]
    if record.notes:
        blocks: tuple[Block, ...] = tuple(Text(note) for note in record.notes)
        sections.append(Section(f"{key}-notes", "Notes", blocks))
    return tuple(sections)


def fit_words(fit: Fit) -> str:
    """What the fit is and what it cost, for the line under the title."""
    posterior = fit.record.posterior
    return " · ".join(
        (
            Path(fit.record.name).name,
            plural(len(posterior.observation), "data value"),
            f"{plural(posterior.num_simulations, 'simulator call')} in "
            f"{plural(len(posterior.rounds), 'round')}",
            duration(sum(r.seconds for r in posterior.rounds)),
        )
    )


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    >>> duration(0.42), duration(35.2), duration(1300.0), duration(9000.0)
    ('0.42 s', '35 s', '22 min', '2.5 h')
    """
    if seconds < 120:
        return f"{number(seconds, 2)} s"
    return f"{number(seconds / 60, 2)} min" if seconds < 7200 else f"{number(seconds / 3600, 2)} h"


def _values(x_o: Tensor) -> str:
    """How many an observation (p,) has.

    >>> import torch
    >>> _values(torch.ones(2)), _values(torch.tensor([1.0, torch.nan]))
    ('2', '1 of 2 measured')
    """
    missing = int(x_o.isnan().sum())
    return f"{len(x_o) - missing:,} of {len(x_o):,} measured" if missing else f"{len(x_o):,}"


def facts_section(fit: Fit) -> Facts:
    """The numbers of one fit of several."""
    posterior = fit.record.posterior
    return Facts(
        (
            ("parameters", str(posterior.theta_dim)),
            ("values of x_o", _values(posterior.observation)),
            ("simulator calls", f"{posterior.num_simulations:,}"),
            ("rounds", str(len(posterior.rounds))),
            ("time", duration(sum(r.seconds for r in posterior.rounds))),
        )
    )
