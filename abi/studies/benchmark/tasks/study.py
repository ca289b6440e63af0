"""The cells of the study: a task, an observation nobody chose, a budget and a method.

Observation k of a task is row k of ten simulated at draws of its prior, by a seed that is not that
of the fits. C2ST is that of sbibm: its network, z-scored by the exact draws, five folds, 10,000
draws a side. W1 is in exact sds and between 2,000 of them, so that it has a floor, that between two
independent exact samples. The C2ST of those is 0.5 but for chance, and is not measured.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators import TASKS
from simulators.files.disk import whole_file

from .... import metrics
from ....files.versions import versions
from ....metrics.moments import extreme_moments
from ...engine.cells import Cell, CellFolder
from ...engine.study import FLOOR, ExactPosterior, Study, Worked, drawn_observations, planned
from .methods import FOR_ONE_X_O, METHODS, OURS

OBSERVATIONS_SEED = 2031
NUM_OBSERVATIONS = 10
NUM_DRAWS = 10_000
MANY_CALLS = 100_000
MANY_CALLS_OF = ("two_moons", "slcp", "sir")
_NUM_W1 = 2_000  # W1 by an exact assignment, which grows with the cube
_SEED = 2025  # of the classifier's folds and weights


@dataclass(frozen=True)
class TaskStudy:
    """The study with the folder of its cells, which also keeps exact draws."""

    folder: Path
    num_draws: int = NUM_DRAWS

    def run(self, cells: Sequence[Cell], minutes: float, say: Callable[[str], None]) -> list[Cell]:
        """The cells that are finished, worked as far as the time allows."""

        def amortised(cell: Cell) -> bool:
            return cell.method not in FOR_ONE_X_O

        study = Study(observations, self._fit, self._judge, amortised, self.num_draws)
        return study.run(cells, self, minutes, say)

    def find(self, cell: Cell) -> Cell | None:
        """The finished cell; None where it is to be worked."""
        return self._cells.find(cell, {})

    def keep(self, worked: Worked) -> Cell:
        """Write a cell."""
        self._cells.keep(worked.cell, {}, {})
        return worked.cell

    def exact(self, model: str, observation: int, seed: int) -> Tensor:
        """Draws (n, d) of an exact posterior; seed 0 is the reference, seed 1 gives the floor."""
        from safetensors.torch import load_file, save

        path = self.folder / "exact" / f"{model}--x{observation}--{self.num_draws}--seed{seed}"
        if not path.is_file():
            x_o = observations(model)[observation]
            draws = TASKS[model].reference_posterior(x_o, self.num_draws, seed=seed)
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as file:
                file.write(save({"theta": draws.float().contiguous()}))
        return load_file(path)["theta"]

    @property
    def _cells(self) -> CellFolder:
        known = {"draws": self.num_draws, "observations": OBSERVATIONS_SEED, "made": versions()}
        return CellFolder(self.folder, known)

    def _fit(self, cell: Cell, x_o: Tensor) -> Any:
        if cell.method == FLOOR:
            return ExactPosterior(lambda _: self.exact(cell.model, cell.observation, 1))
        return METHODS[cell.method](TASKS[cell.model], x_o, cell.budget, cell.seed)

    def _judge(self, cell: Cell, x_o: Tensor, samples: Tensor) -> dict[str, float]:
        exact = self.exact(cell.model, cell.observation, 0)
        step = max(1, self.num_draws // _NUM_W1)
        scores = {"normalised_w1": metrics.normalised_wasserstein(samples[::step], exact[::step])}
        if cell.method != FLOOR:
            scores["c2st"] = metrics.c2st(samples, exact, seed=_SEED)
        return scores | extreme_moments(samples, exact)


def observations(model: str) -> Tensor:
    """The observations of a task, (10, p)."""
    task = TASKS[model]
    return drawn_observations(task.prior, task, NUM_OBSERVATIONS, OBSERVATIONS_SEED)


def plan(
    models: Sequence[str], methods: Sequence[str], budgets: Sequence[int], count: int, seed: int
) -> list[Cell]:
    """Our cells by observation, budget and task, each observation's floors first; then rivals'.

    The largest budget is of three tasks, and of ours alone: rivals would take hours for a cell.
    """

    def by(names: Sequence[str], k: int) -> list[Cell]:
        def asked(model: str) -> list[int]:
            large = model in MANY_CALLS_OF and names == [OURS]
            return [calls for calls in budgets if calls < MANY_CALLS or large]

        return planned(models, lambda _: names, asked, [k], [seed])

    rivals = [name for name in METHODS if name != OURS]
    cells = [cell for names in ([OURS], rivals) for k in range(count) for cell in by(names, k)]
    once = {cell.key: cell for cell in cells if cell.method in methods}
    return list(once.values())
