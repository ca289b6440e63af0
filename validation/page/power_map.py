"""A power map: which test sees which failure, from what strength on, and in how many seconds.

The file is plain JSON, and anything that measures power can write one:

    {"format": "power_map", "version": 1,
     "tests": ["sbc", "c2st"], "failures": ["too wide", "correlated"],
     "cells": {"too wide": {"sbc": {"strength": 1.2, "seconds": 0.02}, ...}, ...}}

A cell's ``strength`` is the smallest at which the test has power 0.8, and null where it had less
at every strength that was tried; a cell that is absent was not run. Strengths are in the units of
their failure, so they are compared along a row and never down a column.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..words import listing, number, plural
from .blocks import Cell, Section, Shade, Table, Text, Verdict

FORMAT, VERSION = "power_map", 1
POWER = 0.8
_TIMES = (1.0, 1.5, 3.0)  # the row's smallest strength; up to these multiples a shade lighter each
LEGEND = (
    ("heat4", "the smallest strength of its row"),
    ("heat3", "up to 1.5 times that"),
    ("heat2", "up to 3 times"),
    ("heat1", "more"),
)


def is_power_map(path: Path) -> bool:
    """Whether the file says of itself that it is a power map."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and data.get("format") == FORMAT


def load_power_map(path: str | Path) -> dict[str, Any]:
    """Read a power map.

    Raises:
        ValueError: if the file is none, is from a newer version, or cannot be drawn.
    """
    data: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        check_power_map(data)
    except ValueError as error:
        raise ValueError(f"`path`: {path}: {error}") from error
    return data


def check_power_map(data: Mapping[str, Any]) -> None:
    """Refuse what cannot be drawn.

    Raises:
        ValueError: in one line that names the entry.
    """
    if data.get("format") != FORMAT:
        raise ValueError(f"`format` must be {FORMAT!r}; got {data.get('format')!r}.")
    if data.get("version") != VERSION:
        raise ValueError(
            f"`version` must be {VERSION}; got {data.get('version')!r}. A newer abi-toolkit may "
            "read it."
        )
    for name in ("tests", "failures"):
        words = data.get(name)
        if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
            raise ValueError(f"`{name}` must be a list of one name or more; got {words!r}.")
    cells = data.get("cells")
    if not isinstance(cells, dict):
        raise ValueError("`cells` must map each failure to its tests.")
    for failure, row in cells.items():
        if not isinstance(row, dict):
            raise ValueError(f"`cells`: {failure!r} must map tests to their cells; got {row!r}.")
        for test, cell in row.items():
            if failure not in data["failures"] or test not in data["tests"]:
                raise ValueError(
                    f"`cells` holds {failure!r} x {test!r}, which `failures` and `tests` do not "
                    "both name."
                )
            _check_cell(cell, f"{failure!r} x {test!r}")


def _check_cell(cell: Any, where: str) -> None:
    if not isinstance(cell, dict):
        raise ValueError(f"`cells`: {where} must hold 'strength' and 'seconds'; got {cell!r}.")
    strength, seconds = (cell.get(name, math.nan) for name in ("strength", "seconds"))
    if strength is not None and not (_is_number(strength) and strength > 0.0):
        raise ValueError(f"`cells`: the strength of {where} must be positive or null.")
    if not (_is_number(seconds) and seconds >= 0.0):
        raise ValueError(f"`cells`: the seconds of {where} must be 0 or more.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def power_map_section(data: Mapping[str, Any], key: str, title: str) -> Section:
    """The map with its legend, and what each test misses."""
    table = Table(
        f"Smallest strength that each test sees with power {POWER:g}, and its seconds",
        ("failure", *data["tests"]),
        tuple(_row(data, failure) for failure in data["failures"]),
        sortable=True,
        legend=LEGEND,
    )
    return Section(
        key,
        title,
        (
            Text(
                "Read along a row: the stronger the colour, the smaller the failure that the test "
                "sees. Every row has its own unit of strength, so rows cannot be compared."
            ),
            table,
            Text(_misses(data)),
        ),
    )


def _row(data: Mapping[str, Any], failure: str) -> tuple[Cell, ...]:
    cells = data["cells"].get(failure, {})
    seen = [cell["strength"] for cell in cells.values() if cell["strength"] is not None]
    return (failure, *(_shade(cells.get(test), min(seen, default=None)) for test in data["tests"]))


def _shade(cell: Mapping[str, Any] | None, smallest: float | None) -> Shade:
    if cell is None:
        return Shade("not run", "", 0)
    seconds = f"{number(float(cell['seconds']), 2)} s"
    if cell["strength"] is None or smallest is None:
        return Shade("not seen", seconds, 0)
    strength = float(cell["strength"])
    level = 4 - sum(strength > times * smallest for times in _TIMES)
    return Shade(number(strength, 3), seconds, level, strength)


def _misses(data: Mapping[str, Any]) -> str:
    """One sentence a test that misses a failure it was tried on."""
    sentences = []
    for test in data["tests"]:
        column = {name: data["cells"].get(name, {}).get(test) for name in data["failures"]}
        missed = [name for name, cell in column.items() if cell and cell["strength"] is None]
        if missed:
            sentences.append(f"{test} does not see {listing(missed, 'or')}.")
    return " ".join(sentences) or "Each test sees every failure that it was tried on."


def power_map_facts(data: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """The numbers at the top of a page that holds a map alone."""
    cells = [cell for row in data["cells"].values() for cell in row.values()]
    return (
        ("tests", str(len(data["tests"]))),
        ("failures", str(len(data["failures"]))),
        ("cells run", str(len(cells))),
        ("cells seen", str(sum(cell["strength"] is not None for cell in cells))),
    )


def power_map_verdict(data: Mapping[str, Any]) -> Verdict:
    """A map judges tests; it judges no posterior."""
    return Verdict(
        "untested",
        "No posterior is judged here",
        f"This page shows what {plural(len(data['tests']), 'test')} can see of "
        f"{plural(len(data['failures']), 'failure')}: choose a test by the failure you fear.",
        (),
    )
