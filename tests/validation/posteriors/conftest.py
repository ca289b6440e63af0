"""Posteriors of every kind, trained tiny once: theta given x is about N(x / 2, 1/2) a parameter."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from simulators.random import isolated_rng

# As little as their samplers run on: the law of the draws is compared with sbi's own by the same.
CHAINS = {
    "mcmc_parameters": {"num_chains": 1, "warmup_steps": 3, "thin": 1, "init_strategy": "proposal"}
}
REJECTION = {
    "rejection_sampling_parameters": {"num_samples_to_find_max": 500, "num_iter_to_find_max": 5}
}


@dataclass(frozen=True)
class Specimen:
    """A posterior as its user holds it, and draws (K, d) of it at one x (1, p) in their words."""

    posterior: Any
    own: Callable[[int, Tensor], Tensor]


def of_sbi(posterior: Any, **keywords: Any) -> Specimen:
    return Specimen(
        posterior,
        lambda num, x: posterior.sample((num,), x=x, show_progress_bars=False, **keywords),
    )


@pytest.fixture(scope="session")
def sbi_trainers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One trained trainer of each method."""
    logs = tmp_path_factory.mktemp("sbi")  # sbi writes its training logs where it runs
    with isolated_rng(0), contextlib.chdir(logs), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inference = pytest.importorskip("sbi.inference")
        prior = MultivariateNormal(torch.zeros(2), torch.eye(2))
        theta = prior.sample((200,))
        x = theta + torch.randn(200, 2)
        trained = {}
        for name, keywords in (
            ("NPE", {"density_estimator": "maf"}),
            ("NPE_A", {"num_components": 1}),
            ("NLE", {"density_estimator": "mdn"}),
            ("NRE", {"classifier": "linear"}),
            ("FMPE", {}),
            ("NPSE", {}),
        ):
            trainer = getattr(inference, name)(prior, show_progress_bars=False, **keywords)
            trainer.append_simulations(theta, x).train(max_num_epochs=3)
            trained[name] = trainer
        return trained


# How each is built: trainer, the way of sampling, what that takes; None is the trainer's default.
BUILT: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "direct": ("NPE", None, {}),
    "NPE-A": ("NPE_A", None, {}),
    "FMPE": ("FMPE", None, {}),
    "FMPE, SDE": ("FMPE", "sde", {}),
    "NPSE": ("NPSE", None, {}),
    "NPSE, ODE": ("NPSE", "ode", {}),
}
for _trained in ("NLE", "NRE"):
    BUILT |= {
        f"{_trained}, MCMC": (_trained, "mcmc", {"mcmc_method": "slice_np_vectorized", **CHAINS}),
        f"{_trained}, MCMC not vectorised": (
            _trained,
            "mcmc",
            {"mcmc_method": "slice_np", **CHAINS},
        ),
        f"{_trained}, rejection": (_trained, "rejection", REJECTION),
        f"{_trained}, importance": (_trained, "importance", {}),
    }


@pytest.fixture(scope="session")
def sbi_posteriors(sbi_trainers: dict[str, Any]) -> dict[str, Specimen]:
    """Every posterior that these trainers build, but for variational ones."""
    with isolated_rng(0), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from sbi.inference import EnsemblePosterior

        found = {}
        for name, (trainer, way, keywords) in BUILT.items():
            asked = keywords if way is None else {"sample_with": way, **copy.deepcopy(keywords)}
            with contextlib.suppress(NotImplementedError):  # FMPE by SDE, in sbi 0.24
                found[name] = of_sbi(sbi_trainers[trainer].build_posterior(**asked))
        direct, looped = found["direct"].posterior, found["NRE, importance"].posterior
        found["ensemble"] = of_sbi(EnsemblePosterior([direct, direct]))
        found["ensemble, one looped"] = of_sbi(EnsemblePosterior([direct, looped]))
        estimator = direct.posterior_estimator
        found["estimator"] = Specimen(
            estimator, lambda num, x: estimator.sample((num,), x)[:, 0].detach()
        )
        weighted = sbi_trainers["NRE"].build_posterior(sample_with="importance")
        weighted.method = "importance"  # gives pairs of draws and weights
        found["NRE, weights"] = of_sbi(weighted, method="sir")
        return found
