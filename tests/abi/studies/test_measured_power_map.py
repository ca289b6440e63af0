"""The map in the README is the one that was measured, and can be drawn again from its JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from abi.studies.benchmark.results import markdown as experiment_table
from validation.page.power_map import check_power_map
from validation.perturbations import FAILURES

PAPER = Path(__file__).parents[3] / "examples/paper"
sys.path.insert(0, str(PAPER))

import power_map  # noqa: E402
from power_map_results import draw, markdown  # noqa: E402


@pytest.fixture(scope="module")
def values() -> dict[str, object]:
    return json.loads((PAPER / "power_map.json").read_text())


def test_every_cell_names_a_strength_of_its_grid_or_none(values: dict[str, object]) -> None:
    assert (values["format"], values["version"]) == ("power_map", 1)
    for failure in values["failures"]:
        assert failure in FAILURES
        for test in values["tests"]:
            cell = values["cells"][failure][test]
            assert cell["strength"] is None or cell["strength"] in values["grids"][failure]
            assert cell["seconds"] > 0
            assert cell["errors"] == []
            needed = values["power"] * values["repetitions"][test]
            if cell["strength"] is not None:
                assert cell["rejected"][f"{cell['strength']:g}"][0] >= needed


def test_the_table_is_that_of_the_measured_map(values: dict[str, object]) -> None:
    assert (PAPER / "power_map.md").read_text() == markdown(values)


def test_the_map_is_drawn(values: dict[str, object], tmp_path: Path) -> None:
    draw(values, tmp_path / "map.png")
    assert (tmp_path / "map.png").stat().st_size > 20_000


def test_the_report_takes_the_measured_map(values: dict[str, object]) -> None:
    check_power_map(values)


def test_one_column_measured_again_leaves_the_others(
    values: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, folder = tmp_path / "map.json", tmp_path / "cells"
    result.write_text(json.dumps(values))
    folder.mkdir()
    (folder / "one.json").write_text(json.dumps({"method": "sbc", "seconds": 3.0}))
    new = {"strength": None, "seconds": 0.5, "rejected": {}, "errors": []}
    monkeypatch.setattr(power_map, "RESULT", result)
    monkeypatch.setattr(power_map, "smallest_seen", lambda *_: new)
    monkeypatch.setattr(power_map.torch, "set_num_threads", lambda _: None)
    monkeypatch.setattr(sys, "argv", ["power_map.py", str(folder), "sbc"])
    power_map.main()
    found = json.loads(result.read_text())
    assert found["tests"] == values["tests"]
    assert found["cpu_seconds"] == values["cpu_seconds"] + 3
    for failure, row in values["cells"].items():
        assert found["cells"][failure] == row | {"sbc": new}
    # Columns of other settings do not stay.
    result.write_text(json.dumps(found | {"settings": found["settings"] | {"colt": "other"}}))
    power_map.main()
    left = [test for test in values["tests"] if test != "colt"]
    assert json.loads(result.read_text())["tests"] == left


@pytest.mark.parametrize("path", sorted((PAPER / "benchmark").glob("*.json")), ids=lambda p: p.stem)
def test_the_tables_of_the_papers_experiments_are_those_of_their_files(path: Path) -> None:
    values = json.loads(path.read_text())
    if values["name"] != "lc2st":
        assert experiment_table(values) == path.with_suffix(".md").read_text()
