"""How each method is asked for a posterior: ABI, ABI as published, and every baseline."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators.given.reads import parameters_of

from ... import baselines, sampler
from ...baselines.inputs import encoder_for
from ...config import ABIConfig, Generator
from ...files.storage import load_state
from ...posterior import ABIPosterior
from ...quantiles.kernel import FixedKernel
from ...rounds.record import RoundState
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
    rounds = {"num_rounds": problem.rounds}
    found = {"abi": _abi(problem, num_samples, ABIConfig(), {})}
    if problem.name == "gaussian":
        found["abi_paper"] = _warmup(problem, num_samples)
    else:
        for name, generator in PAPER_GENERATORS.items():
            config = ABIConfig.paper(generator=generator, encoder=problem.encoder)
            found[name] = _abi(problem, num_samples, config, rounds)
        found[UNCOUNTED] = _abi_uncounted(problem, num_samples)
        if problem.encoder != "flat":
            config = ABIConfig.paper(generator="potnet", encoder="flat")
            found[RAW] = _abi(problem, num_samples, config, rounds)
    for name in baselines.METHODS:
        found[name] = baseline(problem, name)
        if "num_rounds" in found[name].settings:
            found[f"{name}_1"] = baseline(problem, name, num_rounds=1)
    return found


def _abi_uncounted(problem: Reproduction, num_samples: int) -> Method:
    config = ABIConfig.paper(generator="potnet", encoder=problem.encoder)
    rounds = {"num_rounds": problem.rounds}

    def asked(x_o: Tensor, budget: int) -> dict[str, Any]:
        pairs = budget // problem.rounds
        calls = budget * config.max_retries  # as many as it takes
        return rounds | {
            "config": replace(config, pairs_per_round=pairs), "num_simulations": calls,
        }  # fmt: skip

    settings = rounds | {"pairs_per_round": "budget / rounds"}
    return _abi(problem, num_samples, config, settings, asked)


def warmup(retries: int = WARMUP_RETRIES) -> dict[str, Any]:
    """Appendix C.1 as arguments of a fit: Gaussian proposals by moments, the given tolerances."""
    config = ABIConfig.paper(
        tolerances=WARMUP_TOLERANCES,
        pairs_per_round=WARMUP_PROPOSALS,
        max_retries=retries,
        generator="mixture",
        max_components=1,
    )
    calls = len(WARMUP_TOLERANCES) * WARMUP_PROPOSALS * retries  # as many as it takes
    return {"config": config, "num_rounds": len(WARMUP_TOLERANCES), "num_simulations": calls}


def _warmup(problem: Reproduction, num_samples: int) -> Method:
    known = warmup()

    def asked(x_o: Tensor, budget: int) -> dict[str, Any]:
        return known | {"distance": lambda x: (x - x_o).abs().sum(dim=1)}

    settings = {"num_rounds": known["num_rounds"], "distance": "|x - x_o|"}
    return _abi(problem, num_samples, known["config"], settings, asked)


def _abi(
    problem: Reproduction,
    num_samples: int,
    config: ABIConfig,
    settings: dict[str, Any],
    asked: Callable[[Tensor, int], dict[str, Any]] | None = None,
) -> Method:
    """ABI at ``config``, given ``settings`` or what ``asked`` makes of x_o and the budget."""

    def fit(x_o: Tensor, budget: int, seed: int) -> RoundByRound:
        more = settings if asked is None else asked(x_o, budget)
        known = {"config": config, "num_simulations": budget, "progress": False} | more
        posterior, states = fit_in_rounds(problem.task, x_o, seed=seed, **known)
        by_round = tuple(state.model.sample(num_samples, seed) for state in states)
        records = [record.to_dict() for record in states[-1].records]
        rounds = [record | {"network": None, "generator": None} for record in records]
        return RoundByRound(posterior, by_round, {"rounds": rounds})

    return Method(fit, {"config": config.to_dict()} | settings)


def fit_in_rounds(task: Any, x_o: Tensor, **asked: Any) -> tuple[ABIPosterior, list[RoundState]]:
    """A fit of ABI, and its state after each round."""
    distance = asked.get("distance")
    fixed = None if distance is None else FixedKernel(distance)
    with tempfile.TemporaryDirectory() as folder:
        # Rivals keep no calls for a check: all have the same to learn from.
        posterior = sampler.fit(task.prior, task, x_o, run_dir=folder, check_fraction=0.0, **asked)
        paths = sorted(Path(folder).glob("round_*.safetensors"))
        config = posterior.config
        return posterior, [
            load_state(path, posterior.observation, config, fixed, None) for path in paths
        ]


def baseline(problem: Reproduction, name: str, encoder: str = "", **keywords: Any) -> Method:
    """A baseline with the encoder and the rounds of the problem where it takes them, or others."""
    function: Any = baselines.METHODS[name]
    own = {"encoder": encoder_for(name, encoder or problem.encoder), "num_rounds": problem.rounds}
    offered = parameters_of(function)
    settings: dict[str, Any] = {key: own[key] for key in own if key in offered} | keywords
    if name == "wabc":
        settings["order"] = 2.0  # the paper's rival is the 2-Wasserstein distance

    def fit(x_o: Tensor, budget: int, seed: int) -> Any:
        task = problem.task
        return function(task.prior, task, x_o, num_simulations=budget, seed=seed, **settings)

    return Method(fit, settings, name in AMORTISED or settings.get("num_rounds") == 1)
