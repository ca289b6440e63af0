"""Cells in one file: found again, added to by several, failures kept with their reason."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from abi.studies.engine.cell_file import CellFile
from abi.studies.engine.cells import Cell
from abi.studies.engine.study import Worked

CELLS = [Cell("M", k, 0, "abi", 1_000).done({"c2st": 0.5 + 0.1 * k}) for k in range(3)]


def page(cells: Sequence[Cell]) -> str:
    return "".join(f"{cell.line()}\n" for cell in cells)


def opened(folder: Path) -> CellFile:
    return CellFile(folder / "study.json", {"machine": "a machine"}, page)


def test_several_stores_add_to_one_file(tmp_path: Path) -> None:
    first, second = opened(tmp_path), opened(tmp_path)
    assert first.find(CELLS[0]) is None
    second.keep(Worked(CELLS[2]))
    first.keep(Worked(CELLS[0]))
    second.keep(Worked(CELLS[1].failed(ValueError("of two\nlines"))))
    found = opened(tmp_path)
    assert found.cells == [CELLS[0], CELLS[1].failed(ValueError("of two lines")), CELLS[2]]
    assert found.find(Cell("M", 2, 0, "abi", 1_000)) == CELLS[2]
    assert (tmp_path / "study.md").read_text() == page(found.cells)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["study.json", "study.md"]


def test_a_cell_is_a_line_of_the_file(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for cell in CELLS:
        store.keep(Worked(cell))
    text = (tmp_path / "study.json").read_text()
    assert json.loads(text)["machine"] == "a machine"
    assert sum(line.startswith('{"model"') for line in text.splitlines()) == len(CELLS)
