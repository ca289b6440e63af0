"""The cells of the accuracy study: kept as they come in one file, and written as a table."""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

import abi

MACHINE = "2 shared x86-64 cores, one thread"


@dataclass(frozen=True)
class Cell:
    """One method at one budget and seed, read at one observation of one model."""

    model: str
    observation: int
    seed: int
    method: str
    budget: int
    scores: dict[str, float] = field(default_factory=dict)
    calls: int = 0
    fit_seconds: float = 0.0
    draw_seconds: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)
    error: str = ""

    @property
    def key(self) -> tuple[str, int, int, str, int]:
        return (self.model, self.observation, self.seed, self.method, self.budget)

    def shares_fit_with(self, other: Cell) -> bool:
        """Whether an amortised fit serves both."""
        return replace(self, observation=0).key == replace(other, observation=0).key

    def done(self, scores: dict[str, float], **values: Any) -> Cell:
        return replace(self, scores={k: round(v, 5) for k, v in scores.items()}, **values)

    def failed(self, error: Exception) -> Cell:
        return replace(self, error=f"{type(error).__name__}: {error}")

    def line(self) -> str:
        what = self.error or "  ".join(f"{k} {v:.3f}" for k, v in self.scores.items())
        seconds = f"{self.fit_seconds:.0f}+{self.draw_seconds:.0f} s"
        name = f"{self.model} x{self.observation} seed {self.seed} {self.method} {self.budget}"
        return f"{name}: {what}  calls {self.calls}  {seconds}"


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


_COLUMNS = ("w1", "normalised_w1", "c2st", "c2st_rf")


def _table(model: str, budget: int, cells: list[Cell], floors: dict[tuple[str, int], Cell]) -> str:
    used = [
        floors[model, k] for k in sorted({c.observation for c in cells}) if (model, k) in floors
    ]
    head = (
        "| method | cells | W1 | W1 excess | nW1 | nW1 excess | C2ST | C2ST (forest) | calls "
        "| fit s | draw s |"
    )
    rows = [f"## {model}, {budget:,} calls\n", head, "|---" * 11 + "|"]
    rows.append(
        f"| floor | {len(used)} | "
        + " | ".join(
            [
                _mean(used, "w1"), "", _mean(used, "normalised_w1"), "",
                _mean(used, "c2st"), _mean(used, "c2st_rf"), "", "", "",
            ]
        )
        + " |"
    )  # fmt: skip
    methods = sorted({c.method for c in cells}, key=lambda name: _rank(name, cells, floors))
    for method in methods:
        mine = [c for c in cells if c.method == method]
        good = [c for c in mine if not c.error]
        failed = sorted({c.error for c in mine if c.error})
        if not good:
            rows.append(f"| {method} | 0 of {len(mine)} | {'; '.join(failed)} |" + " |" * 8)
            continue
        columns = [
            method, f"{len(good)}" + (f" of {len(mine)}" if failed else ""),
            _mean(good, "w1"), _mean(good, "w1", floors),
            _mean(good, "normalised_w1"), _mean(good, "normalised_w1", floors),
            _mean(good, "c2st"), _mean(good, "c2st_rf"),
            f"{max(c.calls for c in good):,}",
            f"{_average([c.fit_seconds for c in good]):.0f}",
            f"{_average([c.draw_seconds for c in good]):.0f}",
        ]  # fmt: skip
        rows.append("| " + " | ".join(columns) + " |")
        rows += [f"| | | {error} |" + " |" * 8 for error in failed]
    return "\n".join(rows) + "\n"


def _rank(method: str, cells: list[Cell], floors: dict[tuple[str, int], Cell]) -> tuple[float, str]:
    values = _values([c for c in cells if c.method == method and not c.error], "w1", floors)
    flat = [v for group in values.values() for v in group]
    return (_average(flat) if flat else math.inf, method)


def _values(
    cells: Sequence[Cell], name: str, floors: dict[tuple[str, int], Cell] | None = None
) -> dict[int, list[float]]:
    """Values by observation, less the floors if given."""
    found: dict[int, list[float]] = {}
    for cell in cells:
        floor = floors.get((cell.model, cell.observation)) if floors is not None else None
        less = floor.scores[name] if floor is not None else 0.0
        found.setdefault(cell.observation, []).append(cell.scores[name] - less)
    return found


def _mean(
    cells: Sequence[Cell], name: str, floors: dict[tuple[str, int], Cell] | None = None
) -> str:
    groups = [_average(group) for group in _values(cells, name, floors).values()]
    mean = _average([v for group in _values(cells, name, floors).values() for v in group])
    if len(groups) < 2:
        return f"{mean:.3f}"
    from scipy.stats import t

    center = _average(groups)
    spread = math.sqrt(sum((g - center) ** 2 for g in groups) / (len(groups) - 1))
    half = float(t.ppf(0.975, len(groups) - 1)) * spread / math.sqrt(len(groups))
    return f"{mean:.3f} +- {half:.3f}"


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values)
