"""A power map is drawn as its file says, row by row, and refused in one line where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pages import Outline
from power_maps import MAP
from typer.testing import CliRunner

from abi.cli.app import app
from validation.page import Section, Shade, Table, Text
from validation.page.power_map import check_power_map, load_power_map, power_map_section


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "power.json"
    path.write_text(json.dumps(MAP))
    return path


def table_of(section: Section) -> Table:
    return next(block for block in section.blocks if isinstance(block, Table))


def test_rows_are_failures_columns_tests_and_the_smallest_strength_is_darkest() -> None:
    table = table_of(power_map_section(MAP, "map", "Power map"))
    assert table.columns == ("failure", *MAP["tests"])
    wide, correlated = (row[1:] for row in table.rows)
    assert [row[0] for row in table.rows] == MAP["failures"]
    # 0.5 is 2.5 times 0.2, and 0.25 is 1.25 times: two shades lighter, and one.
    assert [(c.words, c.level) for c in wide if isinstance(c, Shade)] == [
        ("0.2", 4),
        ("0.5", 2),
        ("0.25", 3),
    ]
    # A row's shades are its own: 12 is the smallest there is in this one.
    assert [(c.words, c.level) for c in correlated if isinstance(c, Shade)] == [
        ("not seen", 0),
        ("12", 4),
        ("not run", 0),
    ]


def test_what_a_test_misses_is_said_in_words_too() -> None:
    words = [b.text for b in power_map_section(MAP, "m", "t").blocks if isinstance(b, Text)]
    assert words[-1] == "sbc does not see correlated <0.7>."


def test_a_page_of_a_map_alone_judges_no_posterior(file: Path) -> None:
    out = file.with_suffix(".html")
    done = CliRunner().invoke(app, ["report", str(file), "-o", str(out), "--json"])
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert said["verdict"]["headline"] == "No posterior is judged here"
    assert said["power_maps"] == [str(file)]
    page = out.read_text(encoding="utf-8")
    outline = Outline(page)
    assert "correlated <0.7>" in outline.text
    assert page.count('class="heat heat4"') == 2
    heads = [attrs for tag, attrs in outline.tags if tag == "th"]
    assert [attrs["scope"] for attrs in heads] == 4 * ["col"] + 2 * ["row"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "`version` must be 1; got 2"),
        ({"tests": []}, "`tests` must be a list of one name or more"),
        ({"cells": []}, "`cells` must map each failure to its tests"),
        ({"cells": {"too wide": {"tarp": {}}}}, "'too wide' x 'tarp', which `failures` and"),
        (
            {"cells": {"too wide": {"sbc": {"strength": 0.0, "seconds": 1.0}}}},
            "strength of 'too wide' x 'sbc' must be positive or null",
        ),
        (
            {"cells": {"too wide": {"sbc": {"strength": 0.1}}}},
            "seconds of 'too wide' x 'sbc' must be 0 or more",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(
    file: Path, changes: dict[str, Any], message: str
) -> None:
    file.write_text(json.dumps({**MAP, **changes}))
    with pytest.raises(ValueError, match=r"power\.json") as refused:
        load_power_map(file)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_mapping_of_another_kind_is_no_power_map() -> None:
    with pytest.raises(ValueError, match="`format` must be 'power_map'; got None"):
        check_power_map({})
