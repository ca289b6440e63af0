"""A cell of a study: one method, at one budget and seed, read at one observation of one model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators.files.disk import whole_file
from simulators.files.records import read_record, record_path, write_record

_KIND, _VERSION = "reproduce_cell", 1
_REFUSALS = ("ValueError", "NotImplementedError")


@dataclass(frozen=True)
class Cell:
    """What is asked, and, once it is worked, what came of it."""

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
        """What makes it another cell."""
        return (self.model, self.observation, self.seed, self.method, self.budget)

    @property
    def refused(self) -> bool:
        """Whether the method said that it cannot, and did not merely break."""
        return self.error.startswith(_REFUSALS)

    def shares_fit_with(self, other: Cell) -> bool:
        """Whether an amortised fit serves both."""
        return replace(self, observation=0).key == replace(other, observation=0).key

    def done(self, scores: dict[str, float], **values: Any) -> Cell:
        """The worked cell."""
        return replace(self, scores={k: round(v, 5) for k, v in scores.items()}, **values)

    def failed(self, error: Exception) -> Cell:
        """The cell whose method raised."""
        return replace(self, error=f"{type(error).__name__}: {' '.join(str(error).split())}")

    def line(self) -> str:
        """The cell in one line, for the terminal."""
        what = self.error or "  ".join(f"{k} {v:.3f}" for k, v in self.scores.items())
        seconds = f"{self.fit_seconds:.0f}+{self.draw_seconds:.0f} s"
        name = f"{self.model} x{self.observation} seed {self.seed} {self.method} {self.budget}"
        return f"{name}: {what}  calls {self.calls}  {seconds}"


@dataclass(frozen=True)
class CellFolder:
    """Finished cells on the disk, a JSON file each, and their draws beside it.

    A cell is found again only for the same settings of its method and in the same context, the
    versions and sizes of the study: anything else is another cell.
    """

    path: Path
    context: Mapping[str, Any]

    def find(self, cell: Cell, settings: Mapping[str, Any]) -> Cell | None:
        """The finished cell, or None. One that broke is worked again; a refusal is an answer."""
        values = read_record(self._file(cell, settings), _KIND, _VERSION)
        if values is None:
            return None
        try:
            kept = Cell(**values["cell"])
        except (KeyError, TypeError):
            return None
        return None if kept.error and not kept.refused else kept

    def keep(self, cell: Cell, settings: Mapping[str, Any], draws: Mapping[str, Tensor]) -> None:
        """Write a cell and its draws, (n, d) each."""
        from safetensors.torch import save

        path = self._file(cell, settings)
        path.parent.mkdir(parents=True, exist_ok=True)
        if draws:  # before the cell, which says that they are there
            with whole_file(path.with_suffix(".safetensors")) as file:
                file.write(save({k: v.float().contiguous() for k, v in draws.items()}))
        values = {
            "context": dict(self.context),
            "settings": dict(settings),
            "cell": asdict(cell),
        }
        write_record(path, _KIND, _VERSION, values)

    def draws(self, cell: Cell, settings: Mapping[str, Any]) -> dict[str, Tensor]:
        """The draws kept with a cell; none where it failed."""
        from safetensors.torch import load_file

        path = self._file(cell, settings).with_suffix(".safetensors")
        return load_file(path) if path.is_file() else {}

    def _file(self, cell: Cell, settings: Mapping[str, Any]) -> Path:
        asked = json.dumps([cell.key, dict(settings), dict(self.context)], sort_keys=True)
        words = f"{cell.model}--x{cell.observation}--{cell.method}--{cell.budget}--seed{cell.seed}"
        return record_path(self.path, words, asked)
