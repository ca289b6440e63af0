"""May tests that do not reject turn a page green? Only where they reject what is wrong on purpose.

The same tests, at the same number of pairs, see the pairs' prior in its place, and the
posterior spread 1.5 times (:mod:`validation.posteriors.shared_draws`). Where one of the two passes
them, or they were not tried, that a posterior passes says nothing, and the page says that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..controls import CONTROLS
from ..words import listing, p_words
from .blocks import Code
from .method_sections import TITLES

_PRIOR_PASSES = frozenset({"sbc", "tarp", "hpd", "local_hpd"})
"""Tests that the prior passes in the posterior's place, whatever the number of pairs."""
_NEITHER = {
    "prior": "neither is the pairs' prior",
    "wide": "neither is one 1.5 times too wide",
    "both": "neither are posteriors that are wrong",
}


def unseen(data: Mapping[str, Any]) -> list[str]:
    """Which of the wrong posteriors no test rejects; all of them where none was tried."""
    tried = data.get("controls") or {}
    return [
        name
        for name in CONTROLS
        if not any(p <= data["alpha"] for p in tried.get(name, {}).values())
    ]


def doubt(data: Mapping[str, Any], tests: str = "these tests") -> str:
    """Why a posterior that ``tests`` do not reject is not shown to be right; empty where it is."""
    missed, tried = unseen(data), data.get("controls") or {}
    if not missed:
        return ""
    if not tried:
        text = (
            f"Whether {tests} would have seen anything was not tried: they were not run on "
            f"{listing(list(CONTROLS.values()))}."
        )
        if {row["method"] for row in data["results"]} <= _PRIOR_PASSES:
            text += f" And the pairs' prior itself would pass {tests}, however many the pairs."
        return text
    pairs = data["asked"].get("num_pairs")
    many = "" if pairs is None else f" with {pairs:,} pairs"
    least = [f"{CONTROLS[name]} ({_least(tried.get(name, {}))})" for name in missed]
    return (
        f"But {tests},{many}, do not reject {listing(least, 'or')} either: that the posterior "
        "passes them says little."
    )


def doubt_headline(data: Mapping[str, Any]) -> str:
    """The same as the end of a headline."""
    missed = unseen(data)
    if not missed:
        return ""
    if not data.get("controls"):
        return ", untried on a wrong posterior"
    return f", but {_NEITHER['both' if len(missed) > 1 else missed[0]]}"


def sharper(data: Mapping[str, Any]) -> Code:
    """What to run where the tests saw too little."""
    pairs = data["asked"].get("num_pairs")
    more = "the same joint pairs, or more"
    if data.get("controls") and pairs:
        more = f"more joint pairs, {2 * pairs:,} say"
    return Code(
        f"# q: the posterior under test; theta, x: {more}\n"
        "report = validation.validate(q, theta, x, controls=True)\n"
        'report.save("validation.json")',
        "To try it with the panel, which sees most, and that on posteriors wrong on purpose:",
    )


def quoted(words: Sequence[str]) -> str:
    """A list of names as code."""
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def control_lines(data: Mapping[str, Any]) -> list[str]:
    """One line a wrong posterior: which tests reject it."""
    lines = []
    for name, p_values in (data.get("controls") or {}).items():
        seen = [
            f"{TITLES.get(test, test)} ({p_words(p)})"
            for test, p in p_values.items()
            if p <= data["alpha"]
        ]
        said = f"rejected by {listing(seen)}" if seen else f"not rejected ({_least(p_values)})"
        lines.append(f"Wrong on purpose, {CONTROLS.get(name, name)}: {said}.")
    return lines


def _least(p_values: Mapping[str, float]) -> str:
    return p_words(min(p_values.values(), default=1.0))
