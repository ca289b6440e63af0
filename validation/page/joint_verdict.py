"""One verdict over several validations, whatever the order in which they were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..words import listing, plural
from .blocks import Tone, Verdict
from .controls import doubt
from .validation_page import verdict_of

WORST_FIRST: tuple[Tone, ...] = ("rejected", "untested", "not-rejected")


def verdict_over(tests: Sequence[tuple[str, Mapping[str, Any]]]) -> Verdict:
    """The verdict over saved validations (name, data): that of the one, or one over all.

    Several are rejected where one is, and no better tested than the least tested of them: they
    may be of different posteriors.
    """
    verdicts = [(name, verdict_of(data)) for name, data in tests]
    if len(verdicts) == 1:
        return verdicts[0][1]
    tone = next(t for t in WORST_FIRST if any(v.tone == t for _, v in verdicts))
    counts = [len(data["rejected"]) for _, data in tests]
    total = plural(sum(len(data["results"]) for _, data in tests), "test")
    step = next((v.next_step for _, v in verdicts if v.tone == tone and v.next_step), None)
    if tone == "rejected":
        rejected = sum(count > 0 for count in counts)
        headline = f"Rejected in {rejected} of {len(tests)} validations: {sum(counts)} of {total}"
    else:
        headline = f"Not rejected in {len(tests)} validations: {total}"
    words = " ".join(
        f"{name}: {verdict.headline[0].lower()}{verdict.headline[1:]}."
        for name, verdict in verdicts
    )
    lines = [f"{name}: {line}" for name, verdict in verdicts for line in verdict.rests_on]
    meaning = _meaning(verdicts, tone)
    if tone == "untested":
        doubts = (doubt(data, f"the tests of {name}") for name, data in tests)
        meaning = " ".join([meaning, *filter(None, doubts)])
    return Verdict(tone, headline, f"{words} {meaning}", tuple(lines), step)


def _meaning(verdicts: Sequence[tuple[str, Verdict]], tone: Tone) -> str:
    """What the worst of the verdicts says of its files."""
    names = listing([name for name, verdict in verdicts if verdict.tone == tone])
    each = "The level holds over the tests of each file, not over all files."
    if tone == "rejected":
        return (
            f"The tests find that the posterior is not the true one in {names}: do not use its "
            f"intervals as they are. {each}"
        )
    return f"That is no proof of being right: small differences pass. {each}"
