"""What a saved validation holds of its controls and of what it is of, and what older files lack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from one_look import exact
from pages import checked

from simulators.random import isolated_rng
from validation import Report, load_report
from validation.results.report_file import FORMAT_VERSION

OF = {"calls": 2_000, "seed": 3, "config": {"num_flows": 2, "hidden": (64, 64)}}


@pytest.fixture(scope="module")
def report() -> Report:
    with isolated_rng(0):
        return checked(exact, ["sbc", "hpd"], 40, controls=True)


def test_controls_and_what_was_validated_come_back_as_they_were(
    report: Report, tmp_path: Path
) -> None:
    report.save(tmp_path / "v.json", of=OF)
    data = load_report(tmp_path / "v.json")
    assert data["controls"] == {name: dict(p) for name, p in report.controls.items()}
    assert data["of"] == {**OF, "config": {"num_flows": 2, "hidden": [64, 64]}}
    report.save(tmp_path / "v.json")
    assert load_report(tmp_path / "v.json")["of"] is None


def test_a_file_of_version_1_is_read_as_one_without_controls(
    report: Report, tmp_path: Path
) -> None:
    report.save(tmp_path / "v.json")
    data = json.loads((tmp_path / "v.json").read_text())
    assert data["version"] == FORMAT_VERSION
    del data["controls"], data["of"], data["p_value"], data["failures"]
    (tmp_path / "v.json").write_text(json.dumps({**data, "version": 1}))
    old = load_report(tmp_path / "v.json")
    assert (old["controls"], old["of"], old["failures"]) == ({}, None, [])
    assert old["p_value"] == min(row["p_value_adjusted"] for row in data["results"])


@pytest.mark.parametrize(
    ("of", "came"),
    [
        ({"calls": "many"}, "got {'calls': 'many'}"),
        ({"fit": 3}, "got {'fit': 3}"),
        ({}, "got {}"),
        (7, "got 7"),
    ],
)
def test_what_was_validated_is_calls_constants_and_a_seed(
    report: Report, tmp_path: Path, of: Any, came: str
) -> None:
    with pytest.raises(ValueError, match='`of` must map "calls" to a number') as refused:
        report.save(tmp_path / "v.json", of=of)
    assert came in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "v.json").exists()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"controls": [1]}, "`controls` must hold p-values by test"),
        ({"controls": {"prior": {"sbc": "low"}}}, "`controls` must hold p-values by test"),
        ({"of": {"calls": None}}, "v.json: `of` must map"),
    ],
)
def test_damaged_controls_are_refused_in_one_line(
    report: Report, tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    report.save(tmp_path / "v.json")
    data = json.loads((tmp_path / "v.json").read_text())
    (tmp_path / "v.json").write_text(json.dumps(data | changes))
    with pytest.raises(ValueError, match=words):
        load_report(tmp_path / "v.json")
