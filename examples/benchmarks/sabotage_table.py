"""The table of the sabotage study: how often each posterior is rejected, by what, why."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sabotage_cases import Case

from abi.studies.engine import tables
from validation.laboratory.rates import clopper_pearson

LEVEL = 0.05
HEADS = (
    "posterior", "simulator", "one p: N = 100", "300", "1,000", "Holm: 100", "300",
    "best single test: 100", "300", "what the report says is wrong, N = 1,000",
)  # fmt: skip
Cells = dict[str, Any]


def table(cases: Sequence[Case], report: dict[str, Any]) -> str:
    """Markdown of the kept result."""
    judged = [case for case in cases if case.name in report["cells"]]
    of_kind = {
        kind: [case for case in judged if case.kind in kinds]
        for kind, kinds in {
            "wrong": ("sabotage",),
            "honest": ("honest",),
            "right": ("exact", "own draws"),
        }.items()
    }
    parts = [
        f"# {len(of_kind['wrong'])} NPEs gone wrong: who is caught?",
        _about(report),
        _caught(of_kind["wrong"], report),
        "## Wrong",
        _rows(of_kind["wrong"], report),
        "## Honest: 10,000 simulations, 200 epochs at most",
        "Never exact: to reject them is right. The box's flow leaks over "
        "the prior's edges; sbi throws those draws away, which moves the rest inwards at an edge, "
        "so that the honest one is rejected more often than the one that leaks.",
        _rows(of_kind["honest"], report),
        "## Right",
        _rows(of_kind["right"], report),
        _false_alarms(of_kind["right"], report),
    ]
    return "\n\n".join(parts) + "\n"


def _about(report: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    left_out = " and ".join(report["not_under_holm"])
    return (
        f"Shares of sets of N fresh pairs that are rejected at {LEVEL}, the number of sets in "
        "brackets; sets of one N share no pair, posteriors of one simulator share their sets. "
        f'"One p" is `validate(q, theta, x)`; "Holm" all other tests at once but {left_out}: '
        f"the draws kept, {report['draws_a_pair']} a pair, have no density, and full CoLT is slow; "
        "of ten parameters CoLT's identity form is out too: its frame takes as many draws. "
        "Mistakes in the use of a posterior (units, columns, tails, x, sds) are made with the "
        "honest one of the same simulator and share its faults. Best single test: that of the "
        "panel that rejects most by its own p-value, chosen afterwards, which flatters it. "
        f"Seeds: {report['seeds']}. {report['machine']}; {versions}."
    )


def _caught(cases: list[Case], report: dict[str, Any]) -> str:
    """How many of the wrong ones are caught in most sets, and always."""
    heads = "of the wrong ones", "N", "caught in at least half of the sets", "in all", "mean share"
    rows = []
    for way, sizes in {"one": (100, 300, 1_000), "holm": (100, 300)}.items():
        for size in sizes:
            shares = [_share(_p_values(report, case, way, size)) for case in cases]
            known = [share for share in shares if share is not None]
            if known:
                half, always = sum(s >= 0.5 for s in known), sum(s == 1.0 for s in known)
                label = {"one": "one p", "holm": "Holm"}[way]
                mean = f"{sum(known) / len(known):.2f}"
                rows.append([label, f"{size:,}", f"{half} of {len(known)}", always, mean])
    return "\n".join(tables.table(heads, rows))


def _rows(cases: list[Case], report: dict[str, Any]) -> str:
    rows = []
    for case in cases:
        shares = [
            _shown(_p_values(report, case, way, size))
            for way, size in
            (("one", 100), ("one", 300), ("one", 1_000), ("holm", 100), ("holm", 300))
        ]  # fmt: skip
        best = [_best(_cells(report, case, "one", size)) for size in (100, 300)]
        said = _said(_cells(report, case, "one", 1_000))
        rows.append([case.what, case.problem.name, *shares, *best, said])
    return "\n".join(tables.table(HEADS, rows))


def _false_alarms(cases: list[Case], report: dict[str, Any]) -> str:
    parts = []
    for size in (100, 300, 1_000):
        p_values = [p for case in cases for p in _p_values(report, case, "one", size)]
        if p_values:
            share, low, high = _share(p_values), *_interval(p_values)
            parts.append(f"{share:.3f} [{low:.3f}, {high:.3f}] of {len(p_values)} at N = {size:,}")
    return f"Rejected of all right ones by the one p, with 95% intervals: {'; '.join(parts)}."


def _interval(p_values: list[float]) -> tuple[float, float]:
    return clopper_pearson(sum(p <= LEVEL for p in p_values), len(p_values))


def _cells(report: dict[str, Any], case: Case, way: str, size: int) -> list[Cells]:
    cells = report["cells"][case.name]
    return [cell for name, cell in cells.items() if name.startswith(f"{way}/{size}/")]


def _p_values(report: dict[str, Any], case: Case, way: str, size: int) -> list[float]:
    return [cell["p_value"] for cell in _cells(report, case, way, size)]


def _share(p_values: list[float]) -> float | None:
    return sum(p <= LEVEL for p in p_values) / len(p_values) if p_values else None


def _shown(p_values: list[float]) -> str:
    share = _share(p_values)
    return "" if share is None else f"{share:.2f} ({len(p_values)})"


def _best(cells: list[Cells]) -> str:
    """The tests that reject most, and how often."""
    if not cells:
        return ""
    shares = {
        name: _share([cell["p_values"][name] for cell in cells]) for name in cells[0]["p_values"]
    }
    most = max(share or 0.0 for share in shares.values())
    names = [name for name, share in shares.items() if share == most]
    others = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return f"{most:.2f} {', '.join(names[:2])}{others}" if most else "0"


def _said(cells: list[Cells]) -> str:
    """The sentence that comes most often whatever its numbers are, as it stands in one set."""
    sayings = [(_without_numbers(line), line) for cell in cells for line in cell["failures"]]
    if not sayings:
        return "nothing"
    kind, times = Counter(kind for kind, _ in sayings).most_common(1)[0]
    example = next(line for each, line in sayings if each == kind)
    return (
        f"{example} ({times} of {len(cells)} sets; {len(sayings) / len(cells):.0f} findings a set)"
    )


def _without_numbers(line: str) -> str:
    """The numbers of parameters and columns stay."""
    return re.sub(r"(?<![\w.])\d+(\.\d+)?", "#", line)
