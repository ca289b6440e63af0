"""The cells of the accuracy study: kept as they come in one file, and written as a table."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

import abi
from abi.cli.reproduce.cells import Cell
from abi.cli.reproduce.tables import Floors, score_table

MACHINE = "2 shared x86-64 cores, one thread"
SHOWN = {"w1": "W1", "normalised_w1": "nW1", "c2st": "C2ST", "c2st_rf": "C2ST (forest)"}


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
        "2,000 draws. The forest knows SMC-ABC by its resampled particles, which come twice.\n"
    ]
    for model, budget in sorted({(c.model, c.budget) for c in cells if c.method != "floor"}):
        here = [c for c in cells if (c.model, c.budget) == (model, budget)]
        parts.append(_table(model, budget, here, floors))
    path.write_text("\n".join(parts))


def _table(model: str, budget: int, cells: list[Cell], floors: Floors) -> str:
    lines = [f"## {model}, {budget:,} calls\n", *score_table(cells, SHOWN, floors, "w1")]
    errors = sorted({f"- {c.method}: {c.error}" for c in cells if c.error})
    return "\n".join([*lines, *([""] if errors else []), *errors]) + "\n"
