"""The trained rows of the contract table: posteriors of sbi, zuko, lampe and nflows."""

from __future__ import annotations

import contextlib
import copy
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import torch
from contract_posteriors import PRIOR, Specimen, pairs

from simulators.random import isolated_rng
from validation import as_posterior


@contextlib.contextmanager
def training() -> Iterator[None]:
    """Seeded, in a folder for sbi's logs, without its warnings of trainings so short."""
    with (
        tempfile.TemporaryDirectory() as logs,
        contextlib.chdir(logs),
        isolated_rng(0),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        yield


# --- sbi ------------------------------------------------------------------------------------------

CHAINS = {
    "mcmc_parameters": {"num_chains": 1, "warmup_steps": 3, "thin": 1, "init_strategy": "proposal"}
}
REJECTION = {
    "rejection_sampling_parameters": {"num_samples_to_find_max": 500, "num_iter_to_find_max": 5}
}
TRAINERS: dict[str, dict[str, Any]] = {
    "NPE": {"density_estimator": "maf"},
    "NPE_A": {"num_components": 1},
    "NLE": {"density_estimator": "mdn"},
    "NRE": {"classifier": "linear"},
    "FMPE": {},
    "NPSE": {},
}


@cache
def trainer(method: str, x: str = "vectors") -> Any:
    """An sbi trainer after three epochs with 200 pairs."""
    with training():
        from sbi import inference
        from sbi.neural_nets import posterior_nn

        keywords = dict(TRAINERS[method])
        if method == "NPE" and x in ("images", "trials"):
            net = embedding(x)
            keywords["density_estimator"] = posterior_nn("maf", embedding_net=net)
        trained = getattr(inference, method)(PRIOR, show_progress_bars=False, **keywords)
        trained.append_simulations(*pairs(x, 200, 1)).train(max_num_epochs=3)
        return trained


def embedding(x: str) -> Any:
    from sbi.neural_nets import embedding_nets

    if x == "images":
        return embedding_nets.CNNEmbedding(
            (8, 8), num_conv_layers=1, out_channels_per_layer=[2], num_linear_units=8
        )
    one = embedding_nets.FCEmbedding(2, output_dim=4, num_hiddens=8)
    return embedding_nets.PermutationInvariantEmbedding(one, trial_net_output_dim=4)


def built(method: str, way: str | None = None, x: str = "vectors", **keywords: Any) -> Any:
    """What the trainer's ``build_posterior`` gives, sampled in this way."""
    asked = keywords if way is None else {"sample_with": way, **copy.deepcopy(keywords)}
    trained = trainer(method, x)
    with training():
        return trained.build_posterior(**asked)


def likelihood(x: str = "vectors") -> Any:
    """The density estimator of NLE, which draws x."""
    with training():
        from sbi.inference import NLE

        trained = NLE(PRIOR, show_progress_bars=False, **TRAINERS["NLE"])
        return trained.append_simulations(*pairs(x, 200, 1)).train(max_num_epochs=3)


def weighted() -> Any:
    posterior = built("NRE", "importance")
    posterior.method = "importance"  # it gives pairs of draws and weights
    return posterior


def variational() -> Any:
    """A VIPosterior whose ``train()`` is short, for it is trained at each x."""
    from sbi.inference import VIPosterior

    class Brief(VIPosterior):
        def train(self, x: Any = None, **keywords: Any) -> Any:
            brief = {"max_num_iters": 3, "warm_up_rounds": 2, "quality_control": False}
            return super().train(x, **brief, **keywords)

    posterior = built("NRE", "vi")
    posterior.__class__ = Brief
    return posterior


def ensemble(*components: Callable[[], Any]) -> Any:
    from sbi.inference import EnsemblePosterior

    return EnsemblePosterior([component() for component in components])


def sbi_rows() -> list[Specimen]:
    row = partial(Specimen, library="sbi")
    direct, looped = partial(built, "NPE"), partial(built, "NRE", "importance")
    rows = [
        row("NPE", build=direct),
        row("NPE, bound `sample_batched`", build=lambda: direct().sample_batched),
        row("NPE, its estimator", build=lambda: direct().posterior_estimator),
        row("NPE, images, CNN", build=partial(built, "NPE", x="images"), x="images"),
        row("NPE, trials, permutation-invariant", build=partial(built, "NPE", x="trials"),
            x="trials"),
        row("NLE, its estimator, x as wide as theta", build=likelihood),
        row("NPE-A", build=partial(built, "NPE_A")),
        row("FMPE", build=partial(built, "FMPE"), shared=True),
        row("FMPE, SDE", build=partial(built, "FMPE", "sde"), shared=True),
        row("NPSE", build=partial(built, "NPSE"), shared=True),
        row("NPSE, ODE", build=partial(built, "NPSE", "ode"), shared=True),
        row("ensemble", build=partial(ensemble, direct, direct)),
        row("ensemble, one looped over", build=partial(ensemble, direct, looped), shared=True),
        row("NRE, importance weights", build=weighted, shared=True),
        row("NRE, variational", build=variational, shared=True),
        row("NLE, importance, trials", build=partial(built, "NLE", "importance"), x="trials",
            shared=True),
    ]  # fmt: skip
    ways: dict[str, dict[str, Any]] = {
        "MCMC": {"way": "mcmc", "mcmc_method": "slice_np_vectorized", **CHAINS},
        "MCMC not vectorised": {"way": "mcmc", "mcmc_method": "slice_np", **CHAINS},
        "rejection": {"way": "rejection", **REJECTION},
        "importance": {"way": "importance"},
    }
    for method in ("NLE", "NRE"):
        for name, keywords in ways.items():
            build = partial(built, method, **keywords)
            rows.append(row(f"{method}, {name}", build=build, shared=True))
    return rows


# --- zuko, lampe, nflows --------------------------------------------------------------------------


def trained_flow(flow: Any, steps: int = 100) -> Any:
    """A flow with ``flow(x).log_prob(theta)`` after so many steps of Adam."""
    theta, x = pairs("vectors", 500, 2)
    adam = torch.optim.Adam(flow.parameters(), lr=1e-2)
    for _ in range(steps):
        adam.zero_grad()
        (-flow(x).log_prob(theta).mean()).backward()
        adam.step()
    return flow.requires_grad_(False)


def of_zuko(kind: str, steps: int = 100, **keywords: Any) -> Any:
    with training():
        import zuko

        return trained_flow(getattr(zuko.flows, kind)(2, 2, **keywords), steps)


def of_lampe(kind: str) -> Any:
    with training():
        import lampe.inference

        estimator = getattr(lampe.inference, kind)(2, 2)
        if kind == "NPE":
            trained_flow(estimator.flow)
        return estimator


def of_nflows() -> Any:
    """A flow whose ``sample(num_samples, context)`` gives the observations first."""
    with training():
        from nflows import distributions, flows, transforms

        layer = transforms.MaskedAffineAutoregressiveTransform(2, 8, context_features=2)
        return flows.Flow(layer, distributions.StandardNormal([2])).requires_grad_(False)


def flow_rows() -> list[Specimen]:
    kinds = ("MAF", "NSF", "NICE", "GMM", "BPF", "SOSPF", "NCSF")
    return [
        *(Specimen(kind, "zuko", partial(of_zuko, kind)) for kind in kinds),
        Specimen("CNF", "zuko", partial(of_zuko, "CNF", 5), shared=True),
        Specimen("NPE", "lampe", partial(of_lampe, "NPE")),
        Specimen("FMPE", "lampe", partial(of_lampe, "FMPE"), shared=True),
        Specimen("flow, layout said", "nflows",
                 lambda: as_posterior(of_nflows(), layout="observations_first")),
    ]  # fmt: skip
