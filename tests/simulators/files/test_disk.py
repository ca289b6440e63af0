"""Files are on the disk whole or not at all, and a write that fails leaves nothing behind."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from simulators.files.disk import whole_file


def write_half(path: Path) -> None:
    """Begin to write a file on a disk that turns out to be full."""
    with whole_file(path) as file:
        file.write(b"half of")
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_write_that_fails_names_its_file_and_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "round_01.safetensors"
    path.write_bytes(b"before")
    with pytest.raises(OSError, match=r"No space left .*round_01\.safetensors'$"):
        write_half(path)
    assert path.read_bytes() == b"before"
    assert [kept.name for kept in tmp_path.iterdir()] == [path.name]


def test_a_place_that_cannot_be_written_is_named_as_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "x.json"
    with pytest.raises(FileNotFoundError, match=r"x\.json'$"), whole_file(path):
        pass
