"""How each method is asked for a posterior: ABI, ABI as published, and every baseline."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators.custom import parameters_of

from ... import baselines, sampler
from ...baselines.inputs import encoder_for
from ...config import ABIConfig, Generator
from ...files.storage import load_state
from ...posterior import ABIPosterior
from ...quantiles.kernel import FixedKernel
from .reproductions import WARMUP_PROPOSALS, WARMUP_RETRIES, WARMUP_TOLERANCES, Reproduction

PAPER_GENERATORS: Mapping[str, Generator] = {
    "abi_paper": "flow",
    "abi_paper_potnet": "potnet",
    "abi_paper_mixture": "mixture",
    "abi_paper_wgan": "wgan",
}
"""ABI as published, by the generator that refines its proposal; the paper's is POTNet.

They are shown of x what the rivals are shown; the paper says of no experiment what it shows.
"""
RAW = "abi_paper_raw"
"""ABI as published, with POTNet, shown x as it is."""
UNCOUNTED = "abi_paper_uncounted"
"""ABI as published, with POTNet, as the paper counts: the budget is of pairs, retries are free."""

AMORTISED = ("abc_ss", "wgan_gp")
"""Baselines of which one fit serves every observation, as it does of one round of the others."""


@dataclass(frozen=True, eq=False)
class Method:
    """A method at one model.

    Attributes:
        fit: (x_o, budget, seed) -> a posterior.
        settings: what it is given besides, as JSON has it: other settings make another cell.
        amortised: whether one fit serves every observation.
    """

    fit: Callable[[Tensor, int, int], Any]
    settings: dict[str, Any]
    amortised: bool = False


@dataclass(frozen=True, eq=False)
class RoundByRound:
    """A posterior of ABI with the draws of its model after each round."""

    posterior: ABIPosterior
    by_round: tuple[Tensor, ...]
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def num_simulations(self) -> int:
        """Simulator calls really made."""
        return self.posterior.num_simulations

    def sample(self, sample_shape: Sequence[int], *, seed: int = 0) -> Tensor:
        """Draw (*sample_shape, d)."""
        return self.posterior.sample(sample_shape, seed=seed)


def methods_for(problem: Reproduction, num_samples: int) -> dict[str, Method]:
    """Every method by its name.

    ABI as published comes with each of :data:`PAPER_GENERATORS`, as :data:`UNCOUNTED` and
    as :data:`RAW`. A baseline that takes ``num_rounds`` runs those of the paper; under its name
    with ``_1`` it runs one, which is amortised.
    """
    found = {"abi": _abi(problem, num_samples)}
    if problem.name == "gaussian":
        found["abi_paper"] = _warmup(problem, num_samples)
    else:
        for name, generator in PAPER_GENERATORS.items():
            found[name] = _abi_paper(problem, num_samples, generator, problem.encoder)
        found[UNCOUNTED] = _abi_uncounted(problem, num_samples)
        if problem.encoder != "flat":
            found[RAW] = _abi_paper(problem, num_samples, "potnet", "flat")
    known: Any = baselines.METHODS
    for name, function in known.items():
        found[name] = _baseline(problem, name, function)
        if "num_rounds" in parameters_of(function):
            found[f"{name}_1"] = _baseline(problem, name, function, num_rounds=1)
    return found


def _abi(problem: Reproduction, num_samples: int) -> Method:
    return _of_abi(problem, num_samples, ABIConfig(), {}, lambda x_o, budget: {})


def _abi_paper(
    problem: Reproduction, num_samples: int, generator: Generator, encoder: str
) -> Method:
    config = ABIConfig.paper(generator=generator, encoder=encoder)
    rounds = {"num_rounds": problem.rounds}
    return _of_abi(problem, num_samples, config, rounds, lambda x_o, budget: rounds)


def _abi_uncounted(problem: Reproduction, num_samples: int) -> Method:
    config = ABIConfig.paper(generator="potnet", encoder=problem.encoder)
    rounds = {"num_rounds": problem.rounds}

    def asked(x_o: Tensor, budget: int) -> dict[str, Any]:
        return rounds | {
            "config": replace(config, pairs_per_round=budget // problem.rounds),
            "num_simulations": budget * config.max_retries,  # as many as it takes
        }

    settings = rounds | {"pairs_per_round": "budget / rounds"}
    return _of_abi(problem, num_samples, config, settings, asked)


def warmup_config() -> ABIConfig:
    """The constants of Appendix C.1: Gaussian proposals by their moments, given tolerances."""
    return ABIConfig.paper(
        tolerances=WARMUP_TOLERANCES,
        pairs_per_round=WARMUP_PROPOSALS,
        max_retries=WARMUP_RETRIES,
        generator="mixture",
        max_components=1,
    )


def _warmup(problem: Reproduction, num_samples: int) -> Method:
    rounds = {"num_rounds": len(WARMUP_TOLERANCES)}
    calls = len(WARMUP_TOLERANCES) * WARMUP_PROPOSALS * WARMUP_RETRIES  # as many as it takes

    def asked(x_o: Tensor, budget: int) -> dict[str, Any]:
        return rounds | {
            "distance": lambda x: (x - x_o).abs().sum(dim=1),
            "num_simulations": calls,
        }

    settings = rounds | {"distance": "|x - x_o|"}
    return _of_abi(problem, num_samples, warmup_config(), settings, asked)


def _of_abi(
    problem: Reproduction,
    num_samples: int,
    config: ABIConfig,
    settings: dict[str, Any],
    asked: Callable[[Tensor, int], dict[str, Any]],
) -> Method:
    """ABI at ``config``; ``asked``: (x_o, budget) -> what the fit is given besides."""

    def fit(x_o: Tensor, budget: int, seed: int) -> RoundByRound:
        known = {"config": config, "num_simulations": budget} | asked(x_o, budget)
        return _fit_abi(problem, num_samples, known, x_o, seed)

    return Method(fit, {"config": config.to_dict()} | settings)


def _fit_abi(
    problem: Reproduction,
    num_samples: int,
    asked: dict[str, Any],
    x_o: Tensor,
    seed: int,
) -> RoundByRound:
    task = problem.task
    distance = asked.get("distance")
    fixed = None if distance is None else FixedKernel(distance)
    with tempfile.TemporaryDirectory() as folder:
        posterior = sampler.fit(
            task.prior, task, x_o, seed=seed, run_dir=folder, progress=False, **asked
        )
        states = [
            load_state(path, posterior.x_o, posterior.config, fixed, None)
            for path in sorted(Path(folder).glob("round_*.safetensors"))
        ]
    by_round = tuple(state.model.sample(num_samples, seed) for state in states)
    rounds = [
        record.to_dict() | {"network": None, "generator": None} for record in states[-1].records
    ]
    return RoundByRound(posterior, by_round, {"rounds": rounds})


def _baseline(
    problem: Reproduction, name: str, function: Callable[..., Any], num_rounds: int | None = None
) -> Method:
    offered = parameters_of(function)
    wanted: dict[str, Any] = {
        "encoder": encoder_for(name, problem.encoder),
        "num_rounds": num_rounds or problem.rounds,
    }
    if name == "wabc":
        wanted["order"] = 2.0  # the paper's rival is the 2-Wasserstein distance
    settings = {key: value for key, value in wanted.items() if key in offered}

    def fit(x_o: Tensor, budget: int, seed: int) -> Any:
        task = problem.task
        return function(task.prior, task, x_o, num_simulations=budget, seed=seed, **settings)

    return Method(fit, settings, name in AMORTISED or settings.get("num_rounds") == 1)
