"""One experiment at work: its cells, found or worked, and what belongs to each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from simulators import sample_prior
from simulators.random import child_seed

from ... import metrics
from ...files.versions import versions
from ...metrics.moments import extreme_moments
from ..engine.cells import Cell, CellFolder
from ..engine.study import FLOOR, ExactPosterior, Study, Worked, drawn_observations
from .methods import Method, methods_for
from .reproductions import Reproduction
from .scores import against_truth, distances, further_distances, moments

NUM_DRAWN = 20
_SEED = 2025
_PREDICTIONS = 200
_BY_ROUND = 500  # draws behind the distance after each round
_PACKAGES = ("abi-toolkit", "torch", "numpy", "zuko")  # on which the numbers depend


@dataclass(frozen=True, eq=False)
class Experiment:
    """A reproduction with the folder of its cells.

    Observation 0 is the paper's; observation k of 1 ... 20 is simulated at the k-th of twenty
    draws of the prior, which nobody chose.
    """

    problem: Reproduction
    folder: CellFolder
    num_samples: int
    references: dict[int, Tensor] = field(default_factory=dict)

    @cached_property
    def methods(self) -> dict[str, Method]:
        """Every method by its name."""
        return methods_for(self.problem, self.num_samples)

    @cached_property
    def observations(self) -> Tensor:
        """x_o by number, (21, p)."""
        task = self.problem.task
        drawn = drawn_observations(task.prior, task, NUM_DRAWN, _SEED)
        return torch.cat([task.observation[None], drawn])

    def truth(self, observation: int) -> Tensor | None:
        """The parameters behind an observation, (d,), where it was simulated."""
        if observation == 0:
            return self.problem.true_theta
        drawn = sample_prior(self.problem.task.prior, NUM_DRAWN, seed=child_seed(_SEED, 0))
        return drawn[observation - 1]

    def settings(self, cell: Cell) -> dict[str, Any]:
        """What the cell's method is given."""
        return {} if cell.method == FLOOR else self.methods[cell.method].settings

    def draws(self, cell: Cell) -> dict[str, Tensor]:
        """Draws kept with a cell: ``samples`` (n, d) and, of ABI, those after each round."""
        return self.folder.draws(cell, self.settings(cell))

    def exact(self, observation: int) -> Tensor | None:
        """The reference of an observation, (n, d): kept with its floor."""
        if not self.problem.has_exact:
            return None
        kept = self._floor_draws(observation).get("reference")
        return self._reference(observation) if kept is None else kept

    def floor_by_round(self, observation: int) -> float | None:
        """What a round's W1 is between two samples of the exact posterior, where both are kept."""
        kept = self._floor_draws(observation)
        if not {"samples", "reference"} <= kept.keys():
            return None
        return _w1_by_round([kept["samples"]], kept["reference"])[0]

    def predicted(self, samples: Tensor) -> Tensor:
        """Data simulated at the first draws, (k, p), failures left out."""
        x: Tensor = self.problem.task(samples[:_PREDICTIONS], _SEED)
        return x[torch.isfinite(x).all(dim=1)]

    def run(self, cells: Sequence[Cell], minutes: float, say: Callable[[str], None]) -> list[Cell]:
        """The cells that are finished, worked as far as the time allows."""
        study = Study(
            lambda model: self.observations, self._fit, self._judge, self._amortised,
            self.num_samples,
        )  # fmt: skip
        wanted = [c for c in cells if c.method != FLOOR or self.problem.has_exact]
        return study.run(wanted, self, minutes, say)

    def find(self, cell: Cell) -> Cell | None:
        """The finished cell; None where it is to be worked."""
        return self.folder.find(cell, self.settings(cell))

    def _amortised(self, cell: Cell) -> bool:
        return cell.method != FLOOR and self.methods[cell.method].amortised

    def _fit(self, cell: Cell, x_o: Tensor) -> Any:
        if cell.method == FLOOR:
            task = self.problem.task
            return ExactPosterior(lambda num: task.reference_posterior(x_o, num, seed=1))
        return self.methods[cell.method].fit(x_o, cell.budget, cell.seed)

    def _judge(self, cell: Cell, x_o: Tensor, samples: Tensor) -> dict[str, float]:
        exact = self.exact(cell.observation)
        if exact is not None:
            return (
                distances(samples, exact)
                | further_distances(samples, exact)
                | extreme_moments(samples, exact)
                | moments(samples, exact)
            )
        prior = sample_prior(self.problem.task.prior, 2_000, seed=_SEED)
        truth = self.truth(cell.observation)
        return against_truth(samples, truth, prior, self.predicted(samples), x_o)

    def keep(self, worked: Worked) -> Cell:
        """Write a cell with its draws, its moments and, of ABI, its way there."""
        cell, posterior, samples = worked
        draws: dict[str, Tensor] = {}
        if samples is not None:
            draws["samples"] = samples
            details = dict(cell.details) | {
                "mean": samples.mean(dim=0).tolist(),
                "sd": samples.std(dim=0).tolist(),
            }
            by_round = getattr(posterior, "by_round", ())
            draws |= {f"round_{t:02d}": part for t, part in enumerate(by_round, start=1)}
            exact = self.exact(cell.observation)
            if exact is not None:
                details["w1_by_round"] = _w1_by_round(by_round, exact)
                if cell.method == FLOOR:
                    draws["reference"] = exact
            cell = replace(cell, details=details)
        self.folder.keep(cell, self.settings(cell), draws)
        return cell

    def _floor_draws(self, observation: int) -> dict[str, Tensor]:
        """Two samples of the exact posterior, (n, d) each, where the floor was worked."""
        return self.draws(Cell(self.problem.name, observation, 0, FLOOR, 0))

    def _reference(self, observation: int) -> Tensor:
        """Drawn once where no floor keeps it: Gibbs and tempering take their time."""
        if observation not in self.references:
            x_o, task = self.observations[observation], self.problem.task
            self.references[observation] = task.reference_posterior(x_o, self.num_samples, seed=0)
        return self.references[observation]


def _w1_by_round(parts: Sequence[Tensor], exact: Tensor) -> list[float]:
    """W1, in exact sds, of the first draws of each round to as many of the reference."""
    return [metrics.normalised_wasserstein(part[:_BY_ROUND], exact[:_BY_ROUND]) for part in parts]


def context(num_samples: int) -> dict[str, Any]:
    """What makes a cell another one besides its settings."""
    from importlib.metadata import version

    known = versions()
    return {
        "num_samples": num_samples,
        "versions": {name: known[name] for name in _PACKAGES} | {"sbi": version("sbi")},
    }
