"""A fit with all that its page shows: prepared, its first screen, its facts and its sections."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from validation.page import Block, Facts, Figure, Section, Text
from validation.page.words import number

from .sections.exact import Distance, distance_to_exact, exact_section
from .sections.glance import answer_figure
from .sections.marginals import Marginal, marginals_of
from .sections.posterior import posterior_section
from .sections.predictive import Predictive, predict, predictive_section
from .sections.replay import replay_section
from .sections.rounds import rounds_section
from .sections.verdict import deviation_figure, verdict_section
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
    marginals = marginals_of(record)
    return Fit(
        record,
        marginals,
        predict(record, num_predictive, seed),
        distance_to_exact(record, marginals, seed),
        key,
    )


def first_screen(fit: Fit) -> tuple[Figure, ...]:
    """A picture of the answer and, where pairs have judged it, one of its verdict."""
    check = fit.record.posterior.verdict.check
    answer = answer_figure(fit.marginals)
    if not fit.record.finished or not check.parameters:
        return (answer,)
    return (answer, deviation_figure(check))


def fit_sections(fit: Fit, wanted: Sequence[str]) -> tuple[Section, ...]:
    """Posterior, verdict, exact, predictive, rounds, and how to repeat it."""
    record, key = fit.record, fit.key
    sections = [posterior_section(record, wanted, key), verdict_section(record, key)]
    if fit.distance is not None:
        sections.append(exact_section(fit.distance, key))
    sections += [
        predictive_section(fit.predictive, key),
        rounds_section(record, key),
        replay_section(record, key),
    ]
    if record.notes:
        blocks: tuple[Block, ...] = tuple(Text(note) for note in record.notes)
        sections.append(Section(f"{key}-notes", "Notes", blocks))
    return tuple(sections)


def fit_facts(fit: Fit) -> tuple[tuple[str, str], ...]:
    """The numbers at the top."""
    posterior = fit.record.posterior
    dropped = posterior.rounds[-1].dropped_fraction
    return (
        ("parameters", str(posterior.theta_dim)),
        ("values of x_o", f"{len(posterior.observation):,}"),
        ("simulator calls", f"{posterior.num_simulations:,}"),
        ("rounds", str(len(posterior.rounds))),
        ("dropped, last round", f"{dropped:.1%}"),
        ("minutes", number(sum(r.seconds for r in posterior.rounds) / 60, 2)),
    )


def facts_section(fit: Fit) -> Facts:
    """The same numbers inside a part."""
    return Facts(fit_facts(fit))
