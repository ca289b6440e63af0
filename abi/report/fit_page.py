"""The sections of a fit, and what may be said about it: a fit proves nothing about itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from validation.page import Block, Code, Facts, Section, Text, Verdict
from validation.page.words import listing, number, plural

from ..rounds.plausibility import implausible
from .sections.exact import Distance, distance_to_exact, exact_section, exact_words
from .sections.marginals import Marginal, marginals_of
from .sections.posterior import posterior_section
from .sections.predictive import Predictive, covered_words, predict, predictive_section
from .sections.replay import NUM_FITS, replay_section, validation_code
from .sections.rounds import retries, rounds_section
from .sources import FitRecord

_LITTLE = 0.1


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


def fit_sections(fit: Fit, wanted: Sequence[str]) -> tuple[Section, ...]:
    """Posterior, exact, predictive, rounds, and how to repeat it."""
    record, key = fit.record, fit.key
    sections = [posterior_section(record, wanted, key)]
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
        ("values of x_o", f"{len(posterior.x_o):,}"),
        ("simulator calls", f"{posterior.num_simulations:,}"),
        ("rounds", str(len(posterior.rounds))),
        ("dropped, last round", f"{dropped:.1%}"),
        ("minutes", number(sum(r.seconds for r in posterior.rounds) / 60, 2)),
    )


def facts_section(fit: Fit) -> Facts:
    """The same numbers inside a part."""
    return Facts(fit_facts(fit))


def fit_verdict(fit: Fit) -> Verdict:
    """What a fit alone allows to say."""
    record = fit.record
    posterior, plan = record.posterior, record.plan
    if not record.finished and plan is not None:
        headline = f"Unfinished: {len(posterior.rounds)} of {plural(plan.num_rounds, 'round')}"
        words = (
            "The run was interrupted. What follows shows the proposal of its last finished round, "
            "which is not the answer."
        )
        step = Code(
            f"import abi\n\nposterior = abi.resume({record.name!r})",
            "To go on with it (in a terminal: the words of abi fit, and --resume):",
        )
        return Verdict("untested", headline, words, fit_evidence(fit), step)
    headline = "Not yet validated"
    words = (
        f"The fit ran to its end: {plural(posterior.num_simulations, 'simulator call')} in "
        f"{plural(len(posterior.rounds), 'round')}. That alone says nothing about whether its "
        "intervals are right: no test has compared the posterior with the truth."
    )
    if fit.distance is not None:
        far = fit.distance.far
        headline += ", and off the exact posterior" if far else ""
        words += " At this one x_o the exact posterior is known, and " + (
            "this one differs from it visibly." if far else "this one is close to it."
        )
    return Verdict("untested", headline, words, fit_evidence(fit), _validation_step(record))


def _validation_step(record: FitRecord) -> Code:
    """The two lines that validate, and what they cost at this fit's own pace."""
    minutes = NUM_FITS * sum(r.seconds for r in record.posterior.rounds) / 60
    pace = f"{number(minutes, 2)} minutes" if minutes < 90 else f"{number(minutes / 60, 2)} hours"
    return Code(
        validation_code(record),
        f"To validate the method behind it, in two lines (the price is {NUM_FITS} fits, {pace} at "
        "the pace of this one; then give validation.json to abi report as well):",
    )


def fit_evidence(fit: Fit) -> tuple[str, ...]:
    """What the files themselves show, one line each."""
    rounds = fit.record.posterior.rounds
    lines = []
    if fit.distance is not None:
        lines.append(exact_words(fit.distance))
    if isinstance(fit.predictive, Predictive):
        lines.append(covered_words(fit.predictive))
    worst = max(r.dropped_fraction for r in rounds)
    if not retries(fit.record):
        lines.append("No theta was tried more than once, so the bias of retries is absent.")
    elif worst > 0:
        lines.append(
            f"Up to {worst:.1%} of theta were dropped in a round: a bias whose size is not known."
        )
    else:
        lines.append("No theta was dropped, so the bias of dropping is absent.")
    failures = sum(r.failures for r in rounds)
    if failures:
        lines.append(f"{plural(failures, 'simulation')} gave no usable result and were left out.")
    doubt = implausible(rounds[-1].x_o_p_value)
    if doubt is not None:
        lines.append(doubt.replace("`", ""))
    silent = [
        m.name for m in fit.marginals if m.contraction is not None and m.contraction < _LITTLE
    ]
    if silent:
        shown = silent if len(silent) <= 5 else [*silent[:4], f"{len(silent) - 4} others"]
        lines.append(
            f"The posterior is about as wide as the prior for {listing(shown)}: x_o says little "
            "about it, or the fit did not find what it says."
        )
    return tuple(lines)
