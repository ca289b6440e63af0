"""One verdict over fits and validations: green only where all that a page shows allows it.

A validation speaks for a fit whose calls and constants it has (:mod:`.validated`); for one fit its
own check speaks, or a validation of this very fit, and neither where its x_o is implausible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from validation.page import Code, Tone, Verdict
from validation.page.joint_verdict import WORST_FIRST, verdict_over
from validation.words import listing, plural

from .fit_page import Fit
from .fit_verdict import fit_verdict
from .observation import plausible
from .validated import Belonging, belonging

Named = Sequence[tuple[str, Mapping[str, Any]]]
"""(path, what its file holds)."""
_HEADLINES: Mapping[Tone, str] = {
    "rejected": "Fails",
    "untested": "Cannot tell",
    "not-rejected": "Passes",
}


def page_verdict(fits: Sequence[Fit], tests: Named) -> Verdict:
    """The verdict of a page of fits, of validations, or of both."""
    if not fits:
        return verdict_over(tests)
    unfinished = [fit for fit in fits if not fit.record.finished]
    found = _with_tests(fits, tests) if tests else _of_fits(fits)
    if not unfinished or (len(fits) == 1 and not tests):
        return found
    words = f"{_interrupted(unfinished)} {found.words}"
    if found.tone == "rejected":
        return Verdict(found.tone, found.headline, words, found.rests_on, found.next_step)
    first = fit_verdict(unfinished[0])
    headline = first.headline
    if len(fits) > 1:
        headline = f"Unfinished: {listing([fit.record.name for fit in unfinished])}"
    return Verdict("untested", headline, words, found.rests_on, first.next_step)


def progress(fit: Fit) -> str:
    """Rounds done of those asked for."""
    done = len(fit.record.posterior.rounds)
    return f"{done} of {plural(fit.record.num_rounds, 'round')}"


def _of_fits(fits: Sequence[Fit]) -> Verdict:
    """That of the one fit, or one over several, whose tone is that of the worst."""
    verdicts = [(fit.record.name, fit_verdict(fit)) for fit in fits]
    if len(fits) == 1:
        return verdicts[0][1]
    tone = _worst([verdict.tone for _, verdict in verdicts])
    those = [name for name, verdict in verdicts if verdict.tone == tone]
    which = "all" if len(those) == len(fits) and tone != "untested" else listing(those)
    words = (
        f"{len(fits)} fits side by side, each judged by its own check. That two of them agree "
        "shows that they agree."
    )
    lines = tuple(f"{name}: {verdict.headline}" for name, verdict in verdicts)
    step = next((v.next_step for _, v in verdicts if v.tone == tone and v.next_step), None)
    return Verdict(tone, f"{_HEADLINES[tone]} for {which}", words, lines, step)


def _with_tests(fits: Sequence[Fit], tests: Named) -> Verdict:
    """The worst of the tests' verdict, the fits' own, and whether they belong together."""
    over = verdict_over(tests)
    related = [(name, _best(data, fits)) for name, data in tests]
    strangers = [(name, found) for name, found in related if not found.counts]
    own = [fit_verdict(fit) for fit in fits]
    # A validation of this very fit speaks for it where its check could not, but not against x_o.
    spoken = over.tone == "not-rejected" and len(fits) == 1 and not strangers
    spoken = spoken and any(found.relation == "this fit" for _, found in related)
    left = [
        verdict
        for fit, verdict in zip(fits, own, strict=True)
        if verdict.tone == "rejected" or not (spoken and plausible(fit) and not _far(fit))
    ]
    stranger: list[Tone] = ["untested"] if strangers else []
    tone = _worst([over.tone, *stranger, *(verdict.tone for verdict in left)])
    if passed := tone == "not-rejected" and len(fits) == 1 and own[0].tone == tone:
        said = _lower(over.headline).replace(": ", ", ", 1)
        sentences = [own[0].words, f"{_beside(tests)}: {said}."]
    else:
        sentences = [over.words, *(f"{name} {found.why}." for name, found in strangers)]
        sentences += _own_prior(fits, tests) if over.tone == "untested" else []
        sentences += [
            f"{_whose(fits, fit)} own check: {_lower(verdict.headline)}."
            for fit, verdict in zip(fits, own, strict=True)
        ]
    lines = list(own[0].rests_on if len(fits) == 1 else ())
    lines += () if passed else over.rests_on  # which the tables below tell
    step = over.next_step
    if tone == "untested" and over.tone == "not-rejected":
        step = _record_it() if strangers else next((v.next_step for v in left if v.next_step), None)
    headline = own[0].headline if passed else _headline(tone, over, strangers, own, left)
    return Verdict(tone, headline, " ".join(sentences), tuple(lines), step)


def _headline(
    tone: Tone,
    over: Verdict,
    strangers: Sequence[tuple[str, Belonging]],
    own: Sequence[Verdict],
    left: Sequence[Verdict],
) -> str:
    """What decides the tone comes first."""
    if over.tone == tone and tone != "not-rejected":
        return over.headline
    if tone == "not-rejected":
        passes = all(verdict.tone == tone for verdict in own)
        return f"Passes its check; {_lower(over.headline)}" if passes else over.headline
    if strangers and tone == "untested":
        which = "of another fit"
        if all(found.relation == "not recorded" for _, found in strangers):
            which = "of a fit that is not recorded"
        return f"{over.headline}, {which}"
    return next(verdict.headline for verdict in left if verdict.tone == tone)


def _best(data: Mapping[str, Any], fits: Sequence[Fit]) -> Belonging:
    """How a validation stands to the fit that it is nearest to."""
    found = [belonging(data, fit.record) for fit in fits]
    order = ("this fit", "its method", "another", "not recorded")
    return min(found, key=lambda one: order.index(one.relation))


def _own_prior(fits: Sequence[Fit], tests: Named) -> list[str]:
    """What the prior is of which a validation of a fit at x_o by its own pairs speaks."""
    at_x_o = [fit for fit in fits if not fit.record.posterior.verdict.everywhere]
    tried = (data for _, data in tests if data.get("controls"))
    if not any(
        belonging(data, fit.record).relation == "this fit" for data in tried for fit in at_x_o
    ):
        return []
    return [
        "The pairs of a fit’s own check come from the prior cut to the region where its answer "
        "lies: that is the prior spoken of here."
    ]


def _far(fit: Fit) -> bool:
    return fit.distance is not None and fit.distance.far


def _record_it() -> Code:
    return Code(
        'of = {"calls": num_simulations, "config": config.to_dict()}\n'
        'report.save("validation.json", of=of)',
        "To write down with a validation what it is of, config being the fit’s abi.ABIConfig:",
    )


def _beside(tests: Named) -> str:
    """What else was tested."""
    return "A validation beside it" if len(tests) == 1 else f"{len(tests)} validations beside it"


def _whose(fits: Sequence[Fit], fit: Fit) -> str:
    return "The fit’s" if len(fits) == 1 else f"{fit.record.name}, by its"


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def _worst(tones: Sequence[Tone]) -> Tone:
    return next(tone for tone in WORST_FIRST if tone in tones)


def _interrupted(fits: Sequence[Fit]) -> str:
    """Which runs did not come to their end, and what that means for what is shown."""
    parts = [f"{fit.record.name} was interrupted after {progress(fit)}" for fit in fits]
    return (
        f"{listing(parts)}: what is shown of an interrupted run is the proposal of its last "
        "finished round, which is not the answer."
    )
