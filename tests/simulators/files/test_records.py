"""Records of finished work: found again by what was asked, and never half."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulators.files.records import read_record, record_path, write_record


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = record_path(tmp_path, "a test: x", "asked")
    write_record(path, "kind", 2, {"p_values": [0.1, 1e-300], "error": None})
    assert read_record(path, "kind", 2) == {"p_values": [0.1, 1e-300], "error": None}
    assert [kept.name for kept in tmp_path.iterdir()] == [path.name]


def test_what_is_asked_differently_is_kept_elsewhere(tmp_path: Path) -> None:
    names = {record_path(tmp_path, "same words", asked).name for asked in ("a", "b", "c")}
    assert len(names) == 3
    assert record_path(tmp_path, "a/b c", "x").parent == tmp_path


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "{}", '{"format": "kind"}', '{"format": "other", "version": 2}']
)
def test_what_is_damaged_or_of_another_kind_is_no_record(tmp_path: Path, text: str) -> None:
    path = tmp_path / "record.json"
    assert read_record(path, "kind", 2) is None
    path.write_text(text)
    assert read_record(path, "kind", 2) is None


def test_bytes_that_are_no_text_are_no_record(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(b"\xff\xfe\x00")
    assert read_record(path, "kind", 2) is None
