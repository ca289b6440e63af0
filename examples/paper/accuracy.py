"""ABI and its rivals at equal simulator calls, against exact posteriors.

Observation k of a model is row k of ``x = task(theta, seed=child_seed(SEED, 1))`` with
``theta = sample_prior(task.prior, 5, seed=child_seed(SEED, 0))``: nobody chose them. A cell is one
fit of one method, at one budget and seed, read at one observation. Distances are between 2,000
draws of the fit and 2,000 of the exact posterior; the floor of an observation is that between two
independent samples of the exact posterior. "exact_particles" is the exact posterior by as many
draws as SMC-ABC and WABC have particles at that budget, drawn from with replacement as theirs are:
what so few cost by themselves. Fits that hold for any observation (SNPE and SNLE of one round,
ABC-SS and WGAN-GP) are trained once a seed and budget.

    python examples/paper/accuracy.py --minutes 60
    python examples/paper/accuracy.py --models MultimodalGaussian --methods abi snpe_1 --seeds 0
    python examples/paper/accuracy.py --table

Cells are kept in accuracy.json as they come, failures with their reason; what is there is not run
again. The order is seed, observation, budget, model, method, so that a study that is stopped has a
balanced table. accuracy.md is the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accuracy_results import ABOUT, page
from torch import Tensor

import abi
from abi.config import Generator
from abi.generators.push_forward.wgan import WGANSettings
from abi.metrics.moments import extreme_moments
from abi.studies.engine.cell_file import CellFile
from abi.studies.engine.cells import Cell
from abi.studies.engine.study import FLOOR, ExactPosterior, Study, drawn_observations, planned
from abi.studies.reproduce.methods import AMORTISED as BASELINES_FOR_ALL
from abi.studies.reproduce.methods import PAPER_GENERATORS, RAW, RoundByRound, baseline
from abi.studies.reproduce.reproductions import Reproduction, reproduction
from abi.studies.reproduce.scores import distances
from simulators import TwoMoons
from simulators.random import torch_generator

HERE = Path(__file__).parent
SEED = 2025
NUM_OBSERVATIONS = 5
DRAWS = 2_000
# What the rivals are shown of x: of the fixed encoders that ABI chooses from, the one it takes
# most; SNLE sees x as it is where the features have no density. The learned encoder that ABI may
# take on the queue has a row of its own, snpe_1_both_orders.
MODELS = {
    "MultimodalGaussian": reproduction("multimodal"),
    "MG1": reproduction("mg1"),
    "Cosine": reproduction("cosine"),
    "TwoMoons": Reproduction("two-moons", "Two moons", "", TwoMoons(), 10_000, 10_000, rounds=2),
}
BUDGETS = {
    "MultimodalGaussian": [20_000, 10_000, 40_000],
    "MG1": [40_000, 20_000, 10_000],
    "Cosine": [15_000, 10_000, 20_000, 40_000],
    "TwoMoons": [10_000],
}

Fit = Callable[[str, Tensor, int, int], Any]


def abi_with(**changes: Any) -> Fit:
    """A fit of ABI with settings changed."""
    return _abi(lambda problem: {"config": abi.ABIConfig(**changes)})


def abi_paper(generator: Generator, encoder: str = "") -> Fit:
    """ABI as published, with the paper's number of rounds and the encoder of the model."""

    def settings(problem: Reproduction) -> dict[str, Any]:
        config = abi.ABIConfig.paper(generator=generator, encoder=encoder or problem.encoder)
        return {"config": config, "num_rounds": problem.rounds}

    return _abi(settings)


def _abi(settings: Callable[[Reproduction], dict[str, Any]]) -> Fit:
    def fit(model: str, x_o: Tensor, budget: int, seed: int) -> Any:
        task = MODELS[model].task
        known = {"num_simulations": budget, "seed": seed, "progress": False}
        # Rivals keep no calls for a check: all have the same to learn from.
        known["check_fraction"] = 0.0
        posterior = abi.fit(task.prior, task, x_o, **known | settings(MODELS[model]))
        encoders = [record.encoder for record in posterior.rounds]
        return RoundByRound(posterior, (), {"encoders": encoders})

    return fit


def rival(name: str, encoder: str = "", **keywords: Any) -> Fit:
    """A fit of a baseline, with the encoder of the model or another."""

    def fit(model: str, x_o: Tensor, budget: int, seed: int) -> Any:
        return baseline(MODELS[model], name, encoder, **keywords).fit(x_o, budget, seed)

    return fit


def exact_particles(model: str, x_o: Tensor, budget: int, seed: int) -> Any:
    """A hundredth of the calls' number of exact draws, as the particles of a population."""
    generator = torch_generator(seed)
    particles = exact_draws(model, x_o, seed=2 + seed)[: budget // 100]
    return ExactPosterior(
        lambda count: particles[torch.randint(len(particles), (count,), generator=generator)]
    )


METHODS: dict[str, Fit] = {
    "exact_particles": exact_particles,
    "abi": abi_with(),
    "snpe_1": rival("snpe", num_rounds=1),
    "snpe_1_both_orders": rival("snpe", "both_orders", num_rounds=1),
    "snpe_2": rival("snpe", num_rounds=2),
    "snle_1": rival("snle", num_rounds=1),
    "snle_2": rival("snle", num_rounds=2),
    "smc_abc": rival("smc_abc"),
    "wabc": rival("wabc", view="items"),
    "wabc_curve": rival("wabc", view="curve"),
    "wabc_delay": rival("wabc", view="delay"),
    "rejection_abc": rival("rejection_abc"),
    "abc_ss": rival("abc_ss"),
    "wgan_gp": rival("wgan_gp"),
    "wgan_gp_1500": rival("wgan_gp", settings=WGANSettings(num_steps=1_500)),
    "abi_none": abi_with(adjustment="none"),
    "abi_quantile": abi_with(adjustment="quantile"),
    "abi_conditional": abi_with(adjustment="conditional"),
    **{name: abi_paper(generator) for name, generator in PAPER_GENERATORS.items()},
    RAW: abi_paper("potnet", "flat"),
}
ONLY = {"snpe_1_both_orders": ("MG1",), "wabc_curve": ("Cosine",), "wabc_delay": ("Cosine",)}
AMORTISED = ("snpe_1", "snpe_1_both_orders", "snle_1", "wgan_gp_1500", *BASELINES_FOR_ALL)


def observations(model: str) -> Tensor:
    """The five observations of a model, (5, p)."""
    task = MODELS[model].task
    return drawn_observations(task.prior, task, NUM_OBSERVATIONS, SEED)


def measure(samples: Tensor, exact: Tensor) -> dict[str, float]:
    """The distances of the table."""
    return distances(samples, exact) | extreme_moments(samples, exact)


def exact_draws(model: str, x_o: Tensor, seed: int) -> Tensor:
    """Draws of the exact posterior; seed 0 is the reference, seed 1 gives the floor."""
    draws: Tensor = MODELS[model].task.reference_posterior(x_o, DRAWS, seed=seed)
    return draws


def fitted(cell: Cell, x_o: Tensor) -> Any:
    """The posterior of a cell's method."""
    if cell.method == FLOOR:
        return ExactPosterior(lambda num_samples: exact_draws(cell.model, x_o, seed=1))
    return METHODS[cell.method](cell.model, x_o, cell.budget, cell.seed)


def judged(cell: Cell, x_o: Tensor, samples: Tensor) -> dict[str, float]:
    """The scores of a cell's draws."""
    return measure(samples, exact_draws(cell.model, x_o, seed=0))


STUDY = Study(observations, fitted, judged, lambda cell: cell.method in AMORTISED, DRAWS)


def plan(arguments: argparse.Namespace) -> list[Cell]:
    """Every cell asked for, floors first, then in an order that is balanced when cut."""
    return planned(
        arguments.models,
        lambda model: [name for name in arguments.methods if model in ONLY.get(name, MODELS)],
        lambda model: arguments.budgets or BUDGETS[model],
        arguments.observations,
        arguments.seeds,
    )


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--budgets", nargs="+", type=int, help="instead of each model's own")
    parser.add_argument("--observations", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no cell after")
    parser.add_argument("--out", type=Path, default=HERE / "accuracy.json")
    parser.add_argument("--table", action="store_true", help="write the table of what is there")
    return parser.parse_args()


def main() -> None:
    torch.set_num_threads(1)
    arguments = parse()
    kept = CellFile(arguments.out, ABOUT, page)
    if arguments.table:
        kept.write_page()
    else:
        STUDY.run(plan(arguments), kept, arguments.minutes, partial(print, flush=True))


if __name__ == "__main__":
    main()
