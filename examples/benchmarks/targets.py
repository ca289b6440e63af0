"""Narrow, wide and few: the defaults beside exact posteriors where a fit has little to go by.

    python examples/benchmarks/targets.py                     some two hours on one core
    python examples/benchmarks/targets.py --rows queue wave
    python examples/benchmarks/targets.py --table             only the table of what there is

Every row has the same target: each mean within .15 exact sds, each sd within 15%. Observation k of
a row is row k of data simulated at draws of its prior (of the narrow wave: at the parameters of the
ABI paper, whose posterior is about a 300th of the prior in frequency), by a seed that is not that
of the fits: nobody chose them. Cells are kept in targets.json as they come and are not run again.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import measure
import torch
from torch import Tensor
from torch.distributions import Independent, Normal

import abi
from abi import metrics
from abi.metrics.moments import extreme_moments
from abi.studies.engine.cell_file import CellFile
from abi.studies.engine.cells import Cell
from abi.studies.engine.study import Study, drawn_observations
from abi.studies.engine.tables import average, table
from abi.studies.reproduce.intractable import CountedPopulations
from simulators import MG1, SIR, Cosine, GaussianLinear, TwoMoons
from simulators.random import torch_generator

HERE = Path(__file__).parent
SEED, DRAWS = 2035, 10_000
MOST_BIAS, MOST_SD = 0.15, 0.15


class CauchyItems:
    """Thirty looks at a place through Cauchy noise: x (n, 30) has no mean.

    The exact posterior of (place, log scale) is drawn from a grid of 601 by 601 cells.
    """

    prior = Independent(Normal(torch.zeros(2), torch.tensor([5.0, 1.0])), 1)
    x_dim = 30

    def __call__(self, theta: Tensor, seed: int | None = None) -> Tensor:
        """Simulate theta (n, 2) -> x (n, 30)."""
        generator = None if seed is None else torch_generator(seed)
        angle = math.pi * (torch.rand(len(theta), self.x_dim, generator=generator) - 0.5)
        return theta[:, :1] + theta[:, 1:].exp() * angle.tan()

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, 2) from the exact posterior."""
        x, spread = x_o.double(), 4.0
        centre = torch.stack([x.median(), (x - x.median()).abs().median().log()])
        width = torch.stack([spread * centre[1].exp(), torch.tensor(0.4 * spread).double()])
        grid = torch.linspace(-1.0, 1.0, 601, dtype=torch.float64)
        cells = torch.cartesian_prod(grid, grid)
        place, log_scale = (centre + width * cells).T
        log_p = self.prior.log_prob(torch.stack([place, log_scale], dim=1).float()).double()
        for value in x:
            log_p -= log_scale + torch.log1p(((value - place) / log_scale.exp()) ** 2)
        generator = torch_generator(seed)
        chosen = torch.multinomial(
            (log_p - log_p.max()).exp(), num_samples, replacement=True, generator=generator
        )
        within = torch.rand(num_samples, 2, generator=generator, dtype=torch.float64) - 0.5
        return (centre + width * (cells[chosen] + within * (grid[1] - grid[0]))).float()


@dataclass(frozen=True)
class Row:
    """A model, its calls and how many observations; all at the model's true parameters if so."""

    what: str
    task: Any
    calls: int
    observations: int
    at_truth: bool = False


ROWS = {
    "queue": Row("M/G/1 queue", MG1(), 40_000, 10),
    "wave": Row("noisy wave", Cosine(), 15_000, 10),
    "narrow wave": Row("the wave of the ABI paper", Cosine(), 15_000, 3, at_truth=True),
    "20 Gaussians": Row("linear Gaussian, 20 parameters", GaussianLinear(20), 10_000, 3),
    "50 Gaussians": Row("linear Gaussian, 50 parameters", GaussianLinear(50), 10_000, 3),
    "few: Gaussian": Row("linear Gaussian, 2 parameters", GaussianLinear(2, 1.0, 1.0), 500, 5),
    "few: moons": Row("two moons", TwoMoons(), 500, 5),
    "few: epidemic": Row("SIR", SIR(), 500, 5),
    "no density": Row("a prior that is a sampler", CountedPopulations(), 10_000, 5),
    "heavy tails": Row("30 values with Cauchy noise", CauchyItems(), 5_000, 5),
}


def observations(name: str) -> Tensor:
    """The observations of a row, (m, p)."""
    row = ROWS[name]
    if row.at_truth:
        return row.task(row.task.true_theta.repeat(row.observations, 1), seed=SEED)
    return drawn_observations(row.task.prior, row.task, row.observations, SEED)


def fitted(cell: Cell, x_o: Tensor) -> Any:
    """The answer of the defaults."""
    task = ROWS[cell.model].task
    return abi.fit(
        task.prior, task, x_o, num_simulations=cell.budget, seed=cell.seed, progress=False
    )


def judged(cell: Cell, x_o: Tensor, samples: Tensor) -> dict[str, float]:
    """How far off means and sds are, and C2ST."""
    exact = ROWS[cell.model].task.reference_posterior(x_o, DRAWS, seed=0)
    c2st = metrics.c2st(samples[::2], exact[::2], seed=SEED)
    return {"c2st": c2st} | extreme_moments(samples, exact)


def on_target(cell: Cell) -> bool:
    """Whether each mean and each sd is as near as asked."""
    scores = cell.scores
    within = max(1.0 - scores["smallest_sd_ratio"], scores["largest_sd_ratio"] - 1.0) <= MOST_SD
    return within and scores["largest_mean_bias"] <= MOST_BIAS


def page(cells: Sequence[Cell]) -> str:
    """The table: a row a model."""
    heads = [
        "row", "model", "calls", "C2ST", "largest error of a mean, exact sds", "worst",
        "sds over exact", "on target", "CPU s",
    ]  # fmt: skip
    lines = []
    for name, row in ROWS.items():
        mine = [cell for cell in cells if cell.model == name and not cell.error]
        if mine:
            biases = [cell.scores["largest_mean_bias"] for cell in mine]
            least = min(cell.scores["smallest_sd_ratio"] for cell in mine)
            most = max(cell.scores["largest_sd_ratio"] for cell in mine)
            c2st = average([cell.scores["c2st"] for cell in mine])
            lines.append([
                name, row.what, f"{row.calls:,}", f"{c2st:.2f}", f"{average(biases):.2f}",
                f"{max(biases):.2f}", f"{least:.2f} to {most:.2f}",
                f"{sum(map(on_target, mine))} of {len(mine)}",
                f"{average([cell.fit_seconds for cell in mine]):.0f}",
            ])  # fmt: skip
    about = (
        "The defaults of `abi.fit`, the verdict's calls included, beside exact posteriors. Target: "
        f"each mean within {MOST_BIAS} exact sds and each sd within {MOST_SD:.0%}. C2ST: sbibm's "
        f"classifier, {DRAWS // 2:,} draws a side. Largest error of a mean over parameters: its "
        "mean over observations, and the worst; sds: the extremes over parameters and observations."
    )
    failed = [f"- {cell.line()}" for cell in cells if cell.error]
    return "\n".join([about, "", *table(heads, lines), *failed]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no cell after")
    parser.add_argument("--out", type=Path, default=HERE / "targets.json")
    parser.add_argument("--table", action="store_true", help="write the table of what is there")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    kept = CellFile(arguments.out, {"machine": measure.MACHINE}, page)
    if arguments.table:
        kept.write_page()
        return
    cells = [
        Cell(name, k, 0, "abi", ROWS[name].calls)
        for k in range(max(ROWS[name].observations for name in arguments.rows))
        for name in arguments.rows
        if k < ROWS[name].observations
    ]
    study = Study(observations, fitted, judged, lambda cell: False, DRAWS)
    study.run(cells, kept, arguments.minutes, lambda line: print(line, flush=True))


if __name__ == "__main__":
    main()
