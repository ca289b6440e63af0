"""Finished pieces of long work: JSON files that are found again by what was asked, whole or not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from .disk import whole_file


def record_path(folder: Path, words: str, asked: str) -> Path:
    """Where a record is kept: readable, and different for whatever was asked differently.

    Args:
        folder: of the records.
        words: for people; what file systems may not like becomes an underscore.
        asked: everything that the answer depends on, in one text.
    """
    plain = "".join(c if c.isalnum() or c in "-_." else "_" for c in words)
    return folder / f"{plain}--{hashlib.sha256(asked.encode()).hexdigest()[:8]}.json"


def read_record(path: Path, kind: str, version: int) -> dict[str, Any] | None:
    """What was kept; None where there is no such file, a damaged one, or one of another kind."""
    try:
        values = json.loads(path.read_text())
        if (values.pop("format"), values.pop("version")) != (kind, version):
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    found: dict[str, Any] = values
    return found


def write_record(path: Path, kind: str, version: int, values: dict[str, Any]) -> None:
    """Keep ``values``, of JSON's types; the file is there whole or not at all."""
    record = {"format": kind, "version": version, **values}
    with whole_file(path) as file:
        file.write((json.dumps(record, indent=1) + "\n").encode())
