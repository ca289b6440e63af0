"""What may be said of a fit: the verdict of its own check, and what else its files show."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from validation.page import Code, Tone, Verdict
from validation.swaps.words import p_text
from validation.words import listing, number, plural

from ..files.run_folder import POSTERIOR
from ..pictures.predicted import Predictive
from ..verdict.judge import MORE_CALLS
from ..verdict.record import ALPHA, Check, control_words
from .fit_page import Fit
from .observation import doubt_of_x_o, plausible, x_o_line
from .sections.exact import exact_words
from .sections.predictive import covered_words
from .sections.replay import validation_step
from .sections.rounds import retries

_LITTLE = 0.1
_NOISE = 0.05  # sds by which means of 4,000 exact draws may be off: three of their errors
TONES: Mapping[str, Tone] = {
    "passes": "not-rejected",
    "fails": "rejected",
    "cannot tell": "untested",
}


def fit_verdict(fit: Fit) -> Verdict:
    """The verdict of the fit's own check, in a page's words."""
    record = fit.record
    posterior = record.posterior
    if not record.finished:
        headline = f"Unfinished: {len(posterior.rounds)} of {plural(record.num_rounds, 'round')}"
        words = (
            "The run was interrupted. This page shows the proposal of its last finished round, "
            "which is not the answer."
        )
        step = Code(
            f"import abi\n\nposterior = abi.resume({record.name!r})",
            "To finish it (in a terminal: the same abi fit command with --resume):",
        )
        return Verdict("untested", headline, words, fit_evidence(fit), step)
    verdict = posterior.verdict
    tone = TONES[verdict.outcome]
    headline = verdict.headline[0].upper() + verdict.headline[1:]
    words = _rests_on(fit, verdict.check)
    if tone == "not-rejected" and not plausible(fit):
        tone, headline = "untested", f"Cannot tell: {doubt_of_x_o(fit)}"
    if fit.distance is not None:
        far = fit.distance.far
        words += (
            f" The exact posterior at this x_o is known, and {_from_exact(fit, verdict.check)}."
        )
        if far and tone == "not-rejected":
            tone = "untested"
            headline = "Cannot tell: its check passes, but it lies off the exact posterior"
        elif far:
            headline += "; it lies off the exact posterior"
    return Verdict(tone, headline, words, fit_evidence(fit), _next_step(fit, tone))


def _rests_on(fit: Fit, check: Check) -> str:
    """What the verdict rests on, in sentences."""
    posterior = fit.record.posterior
    if check.p_value is None:
        return (
            f"The fit is complete ({plural(posterior.num_simulations, 'simulator call')} in "
            f"{plural(len(posterior.rounds), 'round')}), but nothing has compared its answer with "
            "the truth: whether its intervals are right is open."
        )
    text = (
        f"{plural(len(check.p_values), 'test')} compare the answer with "
        f"{plural(check.num_pairs, 'simulation')} near x_o that no training saw; together they "
        f"give {p_text(check.p_value)}."
    )
    text += _controls(check, posterior.verdict.everywhere)
    if check.rejects:
        text += " Do not use its intervals as they are."
    return text


def _from_exact(fit: Fit, check: Check) -> str:
    """How the posterior stands to the exact one, and to what its check allows."""
    found = fit.distance
    if found is None or found.far:
        return "this one differs from it visibly"
    allowed = check.largest_bias
    if allowed is None or found.shift <= allowed + _NOISE:
        return "this one is close to it"
    return (
        f"this one is close to it, but the mean of {found.shifted} is off by "
        f"{number(found.shift, 2)} sd, more than its check says"
    )


def _controls(check: Check, everywhere: bool) -> str:
    """Whether the tests see what is wrong on purpose."""
    parts = {
        sees: [
            f"{control_words(name, everywhere)} ({p_text(p)})"
            for name, p in check.controls.items()
            if (p <= ALPHA) is sees
        ]
        for sees in (True, False)
    }
    if not parts[False]:
        reject = f"reject {listing(parts[True])}, as they should"
        return f" The same tests {reject}." if parts[True] else ""
    missed = f"fail to reject {listing(parts[False], 'or')}"
    return f" The same tests {missed}, though that is wrong on purpose."


def _next_step(fit: Fit, tone: Tone) -> Code | None:
    """More check pairs where they would tell more; else the proof over the whole prior."""
    posterior, check = fit.record.posterior, fit.record.posterior.verdict.check
    if tone != "untested" or (fit.distance is not None and fit.distance.far):
        return None
    if posterior.answer is None:
        return validation_step(fit.record)
    if check.p_value is not None and not plausible(fit):
        return None
    if not fit.record.kept:
        folder = fit.record.name
        return Code(
            f"import abi\n\nabi.resume({folder!r}).save({f'{folder}/{POSTERIOR}'!r})",
            "The folder holds the rounds, not the answer with its verdict. To make it:",
        )
    return Code(
        f"abi check {shlex.quote(fit.record.name)} --num-simulations {MORE_CALLS}",
        "To find out, check it with more simulations; in a terminal:",
    )


def fit_evidence(fit: Fit) -> tuple[str, ...]:
    """What the files themselves show, one line each."""
    lines = [] if (line := x_o_line(fit)) is None else [line]
    moved = fit.record.posterior.verdict.moved
    if moved is not None:
        lines.append(
            f"The last round moved the answer by {moved.value:.2f} sd; two exact samples differ by "
            f"{moved.by_chance:.2f}."
        )
    if fit.distance is not None:
        lines.append(exact_words(fit.distance))
    if isinstance(fit.predictive, Predictive):
        lines.append(covered_words(fit.predictive))
    lines += _left_out(fit)
    silent = [
        m.name for m in fit.marginals if m.contraction is not None and m.contraction < _LITTLE
    ]
    if silent:
        shown = silent if len(silent) <= 5 else [*silent[:4], f"{len(silent) - 4} others"]
        lines.append(
            f"The posterior of {listing(shown)} is about as wide as the prior: either x_o says "
            "little about it, or the fit missed what it says."
        )
    return tuple(lines)


def _left_out(fit: Fit) -> list[str]:
    """Theta that were given up, and simulations that failed, where there are any."""
    lines = []
    rounds = fit.record.posterior.rounds
    worst = max(r.dropped_fraction for r in rounds)
    if worst > 0 and retries(fit.record):
        lines.append(
            f"A round gave up on as many as {worst:.1%} of its theta, whose data never came near "
            "x_o: a bias of unknown size."
        )
    failures = sum(r.failures for r in rounds) + fit.record.posterior.verdict.failures
    if failures:
        lines.append(f"{plural(failures, 'simulation')} gave no usable result and were left out.")
    return lines
