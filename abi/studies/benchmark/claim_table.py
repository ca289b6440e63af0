"""The table of a paper's statements beside what is seen here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def claim_table(claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """Lines of Markdown; a claim has ``says``, ``where``, ``ours`` and ``verdict``."""
    return [
        "| the paper | where | ours | verdict |",
        "|---|---|---|---|",
        *(f"| {c['says']} | {c['where']} | {c['ours']} | {c['verdict']} |" for c in claims),
    ]
