"""Work cells: fit, draw, judge, with failures as answers and amortised fits made once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from simulators import Prior, SeededSimulator, sample_prior
from simulators.random import child_seed

from .cells import Cell

FLOOR = "floor"
"""The method whose draws are those of the exact posterior, with a seed of its own."""


class Worked(NamedTuple):
    """A finished cell, its posterior and its draws (n, d); neither where it failed."""

    cell: Cell
    posterior: Any = None
    samples: Tensor | None = None


class Store(Protocol):
    """Where the cells of a study are kept."""

    def find(self, cell: Cell) -> Cell | None:
        """The finished cell; None where it is to be worked."""

    def keep(self, worked: Worked) -> Cell:
        """Write a worked cell; what is told of it."""


@dataclass(frozen=True, eq=False)
class ExactPosterior:
    """Draws of the exact posterior behind the interface of a fit, for the floor."""

    draw: Callable[[int], Tensor]

    def sample(self, sample_shape: tuple[int, ...], *, seed: int = 0) -> Tensor:
        """Draw (n, d)."""
        return self.draw(sample_shape[0])


@dataclass(frozen=True, eq=False)
class Study:
    """How the cells of a study are worked.

    Attributes:
        observations: model -> x (m, p).
        fit: (cell, x_o) -> what has ``sample`` and, where amortised, ``at``.
        judge: (cell, x_o, samples) -> scores by name.
        amortised: whether one fit of the cell's method serves every observation.
        num_samples: draws of each fit.
    """

    observations: Callable[[str], Tensor]
    fit: Callable[[Cell, Tensor], Any]
    judge: Callable[[Cell, Tensor, Tensor], dict[str, float]]
    amortised: Callable[[Cell], bool]
    num_samples: int

    def run(
        self, cells: Sequence[Cell], store: Store, minutes: float, say: Callable[[str], None]
    ) -> list[Cell]:
        """The cells that are finished: those kept, and as many more as the time allows."""
        finished: dict[tuple[Any, ...], Cell] = {}

        def waits(cell: Cell) -> bool:
            if cell.key not in finished and (kept := store.find(cell)) is not None:
                finished[cell.key] = kept
            return cell.key not in finished

        for cell in cells:  # those kept are counted from the first line on
            waits(cell)
        stop = time.monotonic() + 60.0 * minutes
        for cell in cells:
            if not waits(cell) or time.monotonic() > stop:
                continue
            for worked in self.work(self._group(cell, cells, waits)):
                kept = store.keep(worked)
                finished[kept.key] = kept
                say(f"{len(finished)}/{len(cells)}  {kept.line()}")
        return [finished[cell.key] for cell in cells if cell.key in finished]

    def _group(
        self, cell: Cell, cells: Sequence[Cell], waits: Callable[[Cell], bool]
    ) -> list[Cell]:
        """The cells that wait and that the fit of ``cell`` serves, itself first."""
        if not self.amortised(cell):
            return [cell]
        others = (c for c in cells if c is not cell and c.shares_fit_with(cell))
        return [cell, *filter(waits, others)]

    def work(self, group: Sequence[Cell]) -> Iterator[Worked]:
        """Fit once for the group, then draw and judge at the observation of each cell."""
        first = group[0]
        all_x = self.observations(first.model)
        started = time.process_time()
        try:
            posterior = self.fit(first, all_x[first.observation])
        except Exception as error:  # the table tells which methods cannot
            yield from (Worked(member.failed(error)) for member in group)
            return
        fit_seconds = time.process_time() - started
        for member in group:
            x_o = all_x[member.observation]
            try:
                started = time.process_time()
                read = posterior.at(x_o) if self.amortised(member) else posterior
                samples = read.sample((self.num_samples,), seed=member.seed)
                draw_seconds = time.process_time() - started
                scores = self.judge(member, x_o, samples)
            except Exception as error:
                yield Worked(member.failed(error))
                continue
            finished = member.done(
                scores,
                calls=getattr(posterior, "num_simulations", 0),
                fit_seconds=round(fit_seconds, 1),
                draw_seconds=round(draw_seconds, 1),
                details=getattr(posterior, "details", {}),
            )
            yield Worked(finished, posterior, samples)


def drawn_observations(
    prior: Prior, simulator: SeededSimulator, num_observations: int, seed: int
) -> Tensor:
    """Observations (n, p) that nobody chose: data at draws of the prior."""
    theta = sample_prior(prior, num_observations, seed=child_seed(seed, 0))
    return simulator(theta, seed=child_seed(seed, 1))


def planned(
    models: Sequence[str],
    methods: Callable[[str], Sequence[str]],
    budgets: Callable[[str], Sequence[int]],
    observations: Sequence[int],
    seeds: Sequence[int],
) -> list[Cell]:
    """Every cell, floors first, then in an order that is balanced when cut."""
    cells = [Cell(model, k, 0, FLOOR, 0) for k in observations for model in models]
    depth = max(len(budgets(model)) for model in models)
    for seed in seeds:
        for k in observations:
            for place in range(depth):
                for model in models:
                    if place < len(budgets(model)):
                        budget = budgets(model)[place]
                        cells += [Cell(model, k, seed, name, budget) for name in methods(model)]
    return cells
