"""A saved validation as a verdict and sections: never more is claimed than the tests can carry."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import NormalDist
from textwrap import fill
from typing import Any

from simulators.base import numbered_names

from ..words import listing, number, p_words, plural
from .blocks import Block, Code, Facts, Page, Section, Text, Verdict
from .controls import control_lines, doubt, doubt_headline, quoted, sharper
from .method_sections import TITLES, method_section, summary_table
from .rank_pictures import ks_width

_MOST_FAILURES = 4
"""In words at the top of a page."""


def validation_page(data: Mapping[str, Any], title: str) -> Page:
    """The page of one saved report alone."""
    return Page(
        title=title,
        subtitle="May this posterior be trusted?",
        verdict=verdict_of(data),
        facts=validation_facts(data),
        sections=validation_sections(data),
        made_by=f"abi-toolkit {data['versions'].get('abi-toolkit', '')}".strip(),
    )


def validation_facts(data: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The numbers at the top."""
    asked = data["asked"]
    pairs = asked.get("num_pairs")
    return (
        ("tests run", str(len(data["results"]))),
        ("tests that reject", str(len(data["rejected"]))),
        ("level over all", f"{data['alpha']:g}"),
        ("joint pairs", "not recorded" if pairs is None else number(pairs)),
        ("seed", str(data["seed"])),
    )


def verdict_of(data: Mapping[str, Any]) -> Verdict:
    """What the tests allow to say: green only where they reject what is wrong on purpose."""
    lines = [*_lines(data), *control_lines(data)]
    lines += [f"Not run: {name}: {reason}" for name, reason in data["skipped"].items()]
    if data["p_value"] <= data["alpha"]:
        headline, words = _rejected(data)
        return Verdict("rejected", headline, words, tuple(lines))
    headline, words = _not_rejected(data)
    headline += doubt_headline(data)
    if why := doubt(data):
        return Verdict("untested", headline, f"{words} {why}", tuple(lines), sharper(data))
    words += (
        " The same tests, with the same pairs, reject the pairs' prior in its place and the "
        "posterior 1.5 times too wide, as they should."
    )
    return Verdict("not-rejected", headline, words, tuple(lines))


def _rejected(data: Mapping[str, Any]) -> tuple[str, str]:
    rejected, results = data["rejected"], data["results"]
    shown = "Do not use its intervals as they are; the pictures below show what is wrong."
    if _has_panel(data):
        wrong = "; ".join(data["failures"][:_MOST_FAILURES])
        more = len(data["failures"]) - _MOST_FAILURES
        wrong += f"; and {plural(more, 'thing')} more" if more > 0 else ""
        headline = f"Rejected: {p_words(data['p_value'])} for this being the posterior"
        return headline, f"What is wrong: {wrong}. {shown}"
    many = len(rejected) > 1
    words = (
        f"{plural(len(rejected), 'test')} {'find' if many else 'finds'} that this posterior is "
        f"not the true one, at level {data['alpha']:g} over all {len(results)}. {shown}"
    )
    return f"Rejected by {len(rejected)} of {plural(len(results), 'test')}", words


def _not_rejected(data: Mapping[str, Any]) -> tuple[str, str]:
    results = data["results"]
    if _has_panel(data):
        headline = f"Not rejected: {p_words(data['p_value'])} for this being the posterior"
        return headline, f"The tests find no difference from the true posterior. {_reach(data)}"
    none = "None of the tests finds a" if len(results) > 1 else "The one test finds no"
    words = (
        f"{none} difference from the true posterior (level {data['alpha']:g} over all of them). "
        f"{_reach(data)}"
    )
    return f"Not rejected by {plural(len(results), 'test')}", words


def _has_panel(data: Mapping[str, Any]) -> bool:
    return any(row["method"] == "panel" for row in data["results"])


def validation_sections(data: Mapping[str, Any], prefix: str = "") -> tuple[Section, ...]:
    """Tests at a glance, each test, and how to repeat them."""
    names = parameter_names(data)
    blocks: list[Block] = [summary_table(data)]
    if data["skipped"]:
        items = tuple((name, str(reason)) for name, reason in data["skipped"].items())
        blocks += [Text("Left out, with the reason:"), Facts(items)]
    parts = tuple(
        method_section(row, names, data["alpha"], f"{prefix}test-{row['method']}")
        for row in data["results"]
    )
    return (
        Section(f"{prefix}tests", "Tests", tuple(blocks), parts),
        Section(f"{prefix}repeat-tests", "To repeat the tests", _repeat(data)),
    )


def parameter_names(data: Mapping[str, Any]) -> list[str]:
    """The names given, or theta_1 ... theta_d as far as the evidence tells d."""
    if data.get("parameter_names"):
        return list(data["parameter_names"])
    width = data["asked"].get("theta_dim")
    if width is None:
        width = max(_width(row.get("evidence", {})) for row in data["results"])
    return list(numbered_names(int(width)))


def _width(evidence: Mapping[str, Any]) -> int:
    if "ball" in evidence:
        return len(evidence["ball"]["point"])
    if "draws" in evidence:
        return len(evidence["draws"]["theta"][0])
    return len(evidence["ranks"]["gaps"]) if "ranks" in evidence else 1


def _lines(data: Mapping[str, Any]) -> list[str]:
    """Which tests reject and which do not, with adjusted p-values, and from how much data."""
    lines = []
    for verdict, rejects in (("Rejects", True), ("Does not reject", False)):
        rows = [row for row in data["results"] if row["rejected"] is rejects]
        if rows:
            parts = [
                f"{TITLES.get(row['method'], row['method'])} ({p_words(row['p_value_adjusted'])})"
                for row in rows
            ]
            lines.append(f"{verdict}: {listing(parts)}.")
    pairs = data["asked"].get("num_pairs")
    if pairs is not None:
        how = "p-values adjusted for the number of tests (Holm)"
        if len(data["results"]) == 1 and _has_panel(data):
            how = "the p-value is exact over all tests of the panel"
        lines.append(f"{plural(pairs, 'joint pair')} of parameters and data; {how}.")
    return lines


def _reach(data: Mapping[str, Any]) -> str:
    """How small a difference could still hide: that of two unit normals with this KS distance."""
    pairs = data["asked"].get("num_pairs")
    if pairs is None:
        return "That is no proof of being right: small differences pass."
    width = ks_width(int(pairs), data["alpha"])
    shift = 2.0 * NormalDist().inv_cdf(0.5 * (1.0 + min(width, 0.99)))
    return (
        f"That is no proof of being right: with {plural(int(pairs), 'pair')} a rank test may miss "
        f"a mean that is off by less than about {number(shift, 1)} sd."
    )


def _repeat(data: Mapping[str, Any]) -> tuple[Block, ...]:
    asked = data["asked"]
    methods = [row["method"] for row in data["results"]]
    words = [f"alpha={data['alpha']:g}", f"seed={data['seed']}"]
    words += ["controls=True"] if data.get("controls") else []
    if asked.get("num_samples"):
        words.insert(0, f"num_samples={asked['num_samples']}")
    listed = fill(quoted(methods), 84, initial_indent="    ", subsequent_indent="     ")
    function = "validate_at" if asked.get("at_x_o") else "validate"
    observed = "    x_o,\n" if asked.get("x_o") else ""
    in_order = f"{observed}{listed},\n" if asked.get("at_x_o") else f"{listed},\n{observed}"
    code = (
        "import validation\n\n"
        f"# q: the posterior under test; theta, x: the {asked.get('num_pairs', '')} joint pairs\n"
        f"report = validation.{function}(\n    q, theta, x,\n{in_order}"
        f"    {', '.join(words)},\n)\n"
        'report.save("validation.html")'
    )
    versions = tuple((name, str(value)) for name, value in data["versions"].items())
    return (
        Text(
            "Posterior and pairs are not stored in a report; with the same ones, the seed "
            "reproduces every number."
        ),
        Code(code, "Python"),
        Facts(versions, folded="Versions"),
    )
