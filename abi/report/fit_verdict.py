"""What may be said of a fit: the verdict of its own check, and what else its files show."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from validation.controls import CONTROLS
from validation.page import Code, Tone, Verdict
from validation.page.words import listing, number, plural
from validation.swaps.words import TESTS, p_text

from ..files.run_folder import POSTERIOR
from ..rounds.plausibility import implausible
from ..verdict.judge import MORE_CALLS
from ..verdict.record import ALPHA, RARE, Check
from .fit_page import Fit
from .sections.exact import exact_words
from .sections.predictive import Predictive, covered_words
from .sections.replay import validation_step
from .sections.rounds import retries

_LITTLE = 0.1
TONES: Mapping[str, Tone] = {
    "passes": "not-rejected",
    "fails": "rejected",
    "cannot tell": "untested",
}


def fit_verdict(fit: Fit) -> Verdict:
    """The verdict of the fit's own check, in a page's words."""
    record = fit.record
    posterior, plan = record.posterior, record.plan
    if not record.finished and plan is not None:
        headline = f"Unfinished: {len(posterior.rounds)} of {plural(plan.last_round, 'round')}"
        words = (
            "The run was interrupted. What follows shows the proposal of its last finished round, "
            "which is not the answer."
        )
        step = Code(
            f"import abi\n\nposterior = abi.resume({record.name!r})",
            "To go on with it (in a terminal: the words of abi fit, and --resume):",
        )
        return Verdict("untested", headline, words, fit_evidence(fit), step)
    verdict = posterior.verdict
    tone = TONES[verdict.outcome]
    headline = verdict.headline[0].upper() + verdict.headline[1:]
    words = _rests_on(fit, verdict.check)
    if tone == "not-rejected" and not plausible(fit):
        tone, headline = "untested", f"Cannot tell: {_doubt_of_x_o(fit)}"
    if fit.distance is not None:
        far = fit.distance.far
        words += " At this one x_o the exact posterior is known, and " + (
            "this one differs from it visibly." if far else "this one is close to it."
        )
        if far:
            tone = "untested" if tone == "not-rejected" else tone
            headline += ", and off the exact posterior"
    return Verdict(tone, headline, words, fit_evidence(fit), _next_step(fit, tone))


def plausible(fit: Fit) -> bool:
    """Whether x_o is known to be plausible data of the model near the answer."""
    p_value = _x_o_p_value(fit)
    return p_value is not None and p_value > RARE


def _x_o_p_value(fit: Fit) -> float | None:
    posterior = fit.record.posterior
    last = posterior.rounds[-1].x_o_p_value
    return posterior.verdict.x_o_p_value if last is None else last


def _doubt_of_x_o(fit: Fit) -> str:
    p_value = _x_o_p_value(fit)
    if p_value is None:
        return "whether x_o is plausible data of this model was not recorded"
    return f"x_o is unusual data of this model ({p_text(p_value)})"


def _rests_on(fit: Fit, check: Check) -> str:
    """What the verdict rests on, in sentences."""
    posterior = fit.record.posterior
    if check.p_value is None:
        return (
            f"The fit ran to its end: {plural(posterior.num_simulations, 'simulator call')} in "
            f"{plural(len(posterior.rounds), 'round')}. That alone says nothing about whether its "
            "intervals are right: nothing has compared the posterior with the truth."
        )
    text = (
        f"It rests on {plural(check.num_pairs, 'pair')} of parameters and data around the answer "
        f"that no training saw. {plural(len(check.p_values), 'test')} together give "
        f"{p_text(check.p_value)}{_controls(check)}."
    )
    if check.rejects:
        return f"{text} The answer’s intervals should not be used as they are."
    if posterior.verdict.passes and check.parameters:
        part = max(check.parameters, key=lambda part: part.half_width)
        text += f" A bias of {part.name} below {number(part.half_width, 2)} sd would go unseen."
    return text


def _controls(check: Check) -> str:
    """Whether the panel sees what is wrong on purpose."""
    parts = {
        sees: [
            f"{CONTROLS.get(name, name)} ({p_text(p)})"
            for name, p in check.controls.items()
            if (p <= ALPHA) is sees
        ]
        for sees in (True, False)
    }
    text = f"; they reject {listing(parts[True])}" if parts[True] else ""
    return f"{text}, but not {listing(parts[False], 'or')}" if parts[False] else text


def _next_step(fit: Fit, tone: Tone) -> Code | None:
    """More check pairs where they would tell more; else the proof over the whole prior."""
    posterior, check = fit.record.posterior, fit.record.posterior.verdict.check
    if tone != "untested":
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
        "To check it with more pairs, in a terminal:",
    )


def fit_evidence(fit: Fit) -> tuple[str, ...]:
    """What the files themselves show, one line each."""
    lines = [*_of_the_verdict(fit)]
    if fit.distance is not None:
        lines.append(exact_words(fit.distance))
    if isinstance(fit.predictive, Predictive):
        lines.append(covered_words(fit.predictive))
    lines += _of_the_rounds(fit)
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


def _of_the_verdict(fit: Fit) -> list[str]:
    """x_o's p-value, each test's, and whether the rounds settled."""
    verdict, p_value = fit.record.posterior.verdict, _x_o_p_value(fit)
    lines = []
    if (doubt := implausible(p_value)) is not None:
        lines.append(doubt.replace("`", ""))
    elif p_value is not None:
        lines.append(f"Could x_o come from this model? {p_text(p_value)}: nothing against it.")
    check = verdict.check
    if check.p_values:
        each = [f"{TESTS.get(name, name)} {p:.2g}" for name, p in check.p_values.items()]
        lines.append(f"p of each test alone: {', '.join(each)}.")
    if verdict.moved is not None:
        lines.append(f"Did the rounds settle? The last moved the answer by {verdict.moved}.")
    biases = [f"{calls:,}: {bias:.2f}" for calls, bias in verdict.bias_by_calls]
    if biases:
        lines.append(
            f"Largest bias in sds, of earlier rounds’ answers by calls: {'; '.join(biases)}."
        )
    return lines


def _of_the_rounds(fit: Fit) -> list[str]:
    """What was dropped and what failed."""
    rounds = fit.record.posterior.rounds
    worst = max(r.dropped_fraction for r in rounds)
    if not retries(fit.record):
        lines = ["No theta was tried more than once, so the bias of retries is absent."]
    elif worst > 0:
        lines = [
            f"Up to {worst:.1%} of theta were dropped in a round: a bias whose size is not known."
        ]
    else:
        lines = ["No theta was dropped, so the bias of dropping is absent."]
    failures = sum(r.failures for r in rounds) + fit.record.posterior.verdict.failures
    if failures:
        lines.append(f"{plural(failures, 'simulation')} gave no usable result and were left out.")
    return lines
