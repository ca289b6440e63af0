"""The contract table in Markdown, and below it every line that a test refused with."""

from __future__ import annotations

import re
from typing import Any

from abi.studies.engine import tables

HEADS = {
    "panel": "panel", "sbc": "sbc", "tarp": "tarp", "hpd": "hpd", "c2st": "c2st",
    "conformal_c2st": "conf. c2st", "conformal_multiple": "conf. multiple",
    "discriminative_calibration": "discr. cal.", "score_rank": "score rank",
    "colt_identity": "colt id.", "colt": "colt", "lc2st": "lc2st", "local_hpd": "local hpd",
}  # fmt: skip
Lines = dict[str, tuple[int, str]]
"""An error without its numbers -> its number in the table, and how it reads."""


def table(result: dict[str, Any]) -> str:
    rows = result["rows"]
    right = [row for row in rows if not row["misuse"]]
    wrong = [row for row in rows if row["misuse"]]
    lines = number_of_lines(wrong)
    parts = [
        "# Anybody's posterior: an answer or one line in every cell",
        about(result),
        "## Posteriors",
        "Those in italics are exact; the others are trained for seconds and may be rejected. "
        "\\* marks what is slow to sample: drawn once, shared by all tests.",
        grid(right, lines),
        levels(right),
        "## What is no posterior, or not for these pairs",
        "(k): refused, with line k below; its numbers are those of the first test.",
        grid(wrong, lines),
        "\n".join(f"{number}. {line}" for number, line in lines.values()),
    ]
    return "\n\n".join(parts) + "\n"


def about(result: dict[str, Any]) -> str:
    cells = [cell for row in result["rows"] for cell in row["cells"].values()]
    count = {kind: sum(kind in cell for cell in cells) for kind in ("p", "error", "red")}
    used = ", ".join(f"{name} {number}" for name, number in result["versions"].items())
    return (
        f"{len(result['rows'])} classes by {len(HEADS)} tests: {count['p']} p-values, "
        f"{count['error']} one-line errors, {count['red']} red. {result['pairs']} pairs, "
        f"{result['draws']} draws an observation. {used}."
    )


def grid(rows: list[dict[str, Any]], lines: Lines) -> str:
    heads = ["posterior", *HEADS.values()]
    entries = []
    for row in rows:
        name = f"{row['library']}: {row['class']}"
        name = f"*{name}*" if row["exact"] else name
        cells = [said(row["cells"][test], lines) for test in HEADS]
        entries.append([name + "\\*" * row["shared"], *cells])
    return "\n".join(tables.table(heads, entries))


def said(cell: dict[str, Any], lines: Lines) -> str:
    if "red" in cell:
        return "**RED**"
    return f"{cell['p']:.2g}" if "p" in cell else f"({lines[kind_of(cell['error'])][0]})"


def levels(rows: list[dict[str, Any]]) -> str:
    """Whether the exact ones are rejected as often as they should be."""
    p_values = [cell["p"] for row in rows if row["exact"] for cell in row["cells"].values()
                if "p" in cell]  # fmt: skip
    low = sum(p <= 0.05 for p in p_values)
    return (
        f"Exact: {low} of {len(p_values)} p-values are .05 or less, the least is "
        f"{min(p_values):.2g}. They share their pairs, so they are no independent trials."
    )


def number_of_lines(rows: list[dict[str, Any]]) -> Lines:
    """Every error once, numbered as they come; those that differ by numbers alone are one."""
    errors = [cell["error"] for row in rows for cell in row["cells"].values() if "error" in cell]
    first: dict[str, str] = {}
    for error in errors:
        first.setdefault(kind_of(error), error)
    return {kind: (k, error) for k, (kind, error) in enumerate(first.items(), 1)}


def kind_of(error: str) -> str:
    return re.sub(r"\d+", "#", error)
