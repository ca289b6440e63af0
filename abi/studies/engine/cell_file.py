"""The cells of a study in one JSON file, a line each, with their tables beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from simulators.files.disk import whole_file

from .cells import Cell
from .study import Worked


class CellFile:
    """A store of finished cells, failures with their reason; several processes may add to it.

    Args:
        path: of the JSON; the tables have its name and .md.
        about: what the file says before its cells.
        page: the cells -> the tables, Markdown.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], page: Callable[[Sequence[Cell]], str]):
        self.path = path
        self._about, self._page = about, page
        self._cells = self._read()

    @property
    def cells(self) -> list[Cell]:
        """By their key: what is added up rounds by its order."""
        return [self._cells[key] for key in sorted(self._cells)]

    def find(self, cell: Cell) -> Cell | None:
        """The finished cell; None where it is to be worked."""
        return self._cells.get(cell.key)

    def keep(self, worked: Worked) -> Cell:
        """Add a cell to those on the disk, and write the tables."""
        with _alone_in(self.path.parent):
            self._cells = self._read() | {worked.cell.key: worked.cell}
            lines = ",\n".join(json.dumps(asdict(cell)) for cell in self.cells)
            text = json.dumps(self._about)[:-1] + ',\n"cells": [\n' + lines + "\n]}\n"
            with whole_file(self.path) as file:
                file.write(text.encode())
            self.write_page()
        return worked.cell

    def write_page(self) -> None:
        """The tables of what there is."""
        self.path.with_suffix(".md").write_text(self._page(self.cells))

    def _read(self) -> dict[tuple[Any, ...], Cell]:
        if not self.path.exists():
            return {}
        cells = [Cell(**values) for values in json.loads(self.path.read_text())["cells"]]
        return {cell.key: cell for cell in cells}


def kept(path: Path, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The values that a JSON file holds, worked first where there is none."""
    if not path.is_file():
        text = json.dumps(work())
        with whole_file(path) as file:
            file.write(text.encode())
    values: dict[str, Any] = json.loads(path.read_text())
    return values


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """One process at a time; on Windows, which has no such lock, whoever comes."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)  # and the lock with it
