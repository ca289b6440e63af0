"""The cells of the accuracy study: kept as they come in one file, and written as a table."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

import abi
from abi.cli.reproduce.cells import Cell
from abi.cli.reproduce.tables import Floors, average, failed_row, mean, ranked, row

MACHINE = "2 shared x86-64 cores, one thread"


class Results:
    """One JSON file, a line a cell; several processes may add to it."""

    def __init__(self, path: Path):
        self.path = path
        self.cells = self._read()

    def has(self, cell: Cell) -> bool:
        return cell.key in self.cells

    def add(self, cell: Cell) -> None:
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self.cells = self._read() | {cell.key: cell}
            self._write()
        finally:
            os.close(folder)  # and the lock with it

    def _read(self) -> dict[tuple[Any, ...], Cell]:
        if not self.path.exists():
            return {}
        cells = [Cell(**values) for values in json.loads(self.path.read_text())["cells"]]
        return {cell.key: cell for cell in cells}

    def _write(self) -> None:
        head = {
            "what": "ABI and its rivals at equal simulator calls, against exact posteriors",
            "machine": MACHINE,
            "versions": {"abi-toolkit": abi.__version__, "torch": torch.__version__},
        }
        lines = ",\n".join(json.dumps(asdict(self.cells[key])) for key in sorted(self.cells))
        text = json.dumps(head)[:-1] + ',\n"cells": [\n' + lines + "\n]}\n"
        fresh = self.path.with_suffix(".new")
        fresh.write_text(text)
        os.replace(fresh, self.path)


def write_table(results: Results, path: Path) -> None:
    """Markdown: a table a model and budget, a row a method."""
    cells = list(results.cells.values())
    floors = {(c.model, c.observation): c for c in cells if c.method == "floor"}
    parts = [
        "Mean over observations and seeds; +- is half of a 95% t interval over the observations' "
        "means. Excess: less the floor of the same observation. CPU seconds: of a fit, and of "
        "2,000 draws.\n"
    ]
    for model, budget in sorted({(c.model, c.budget) for c in cells if c.method != "floor"}):
        here = [c for c in cells if (c.model, c.budget) == (model, budget)]
        parts.append(_table(model, budget, here, floors))
    path.write_text("\n".join(parts))


def _table(model: str, budget: int, cells: list[Cell], floors: Floors) -> str:
    used = [
        floors[model, k] for k in sorted({c.observation for c in cells}) if (model, k) in floors
    ]
    head = (
        "| method | cells | W1 | W1 excess | nW1 | nW1 excess | C2ST | C2ST (forest) | calls "
        "| fit s | draw s |"
    )
    rows = [f"## {model}, {budget:,} calls\n", head, "|---" * 11 + "|"]
    floor = [str(len(used)), _score(used, "w1"), "", _score(used, "normalised_w1"), ""]
    floor += [_score(used, "c2st"), _score(used, "c2st_rf"), "", "", ""]
    rows.append(row(["floor", *floor]))
    for method in ranked(cells, "w1", floors):
        mine = [c for c in cells if c.method == method]
        good = [c for c in mine if not c.error]
        failed = sorted({c.error for c in mine if c.error})
        if not good:
            rows.append(failed_row(method, mine, 11))
            continue
        columns = [
            method, f"{len(good)}" + (f" of {len(mine)}" if failed else ""),
            _score(good, "w1"), _score(good, "w1", floors),
            _score(good, "normalised_w1"), _score(good, "normalised_w1", floors),
            _score(good, "c2st"), _score(good, "c2st_rf"),
            f"{max(c.calls for c in good):,}",
            f"{average([c.fit_seconds for c in good]):.0f}",
            f"{average([c.draw_seconds for c in good]):.0f}",
        ]  # fmt: skip
        rows.append(row(columns))
        rows += [f"| | | {error} |" + " |" * 8 for error in failed]
    return "\n".join(rows) + "\n"


def _score(cells: Sequence[Cell], name: str, floors: Floors | None = None) -> str:
    return str(mean(cells, name, floors))
