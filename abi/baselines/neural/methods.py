"""Networks that learn a posterior, or a likelihood, from pairs: SNPE, FMPE, NPSE, SNLE, WGAN-GP.

What each trains is told, with its source, in :mod:`.posterior_estimation`, :mod:`.vector_fields`,
:mod:`.likelihood_estimation` and :mod:`.adversarial`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, get_args

from torch import Tensor, nn

from simulators import Prior
from simulators.arguments import choice
from simulators.random import as_count, child_seed

from ...generators.push_forward.wgan import WGANSettings
from ...training.torch_settings import usual_torch
from ..calls import calls_per_round
from ..frame import begin
from ..guest import guest, training_limits
from ..inputs import features, with_density
from ..reals import require_density
from ..result import BaselinePosterior
from .adversarial import fit_generator, longest
from .likelihood_estimation import LikelihoodTrainer
from .posterior_estimation import PosteriorTrainer, Proposal
from .vector_fields import Method, VectorFieldTrainer, require_fields

_STEPS = (1_500, 3_000, 6_000, 12_000)  # of WGAN-GP, tried in turn


@usual_torch()
def snpe(
    prior: Prior | Callable[[int], Any],
    simulator: Callable[..., Any],
    x_o: Tensor,
    *,
    num_simulations: int = 10_000,
    num_rounds: int = 1,
    seed: int = 0,
    encoder: str | nn.Module = "flat",
    proposal: Proposal = "atomic",
    num_networks: int = 1,
    max_epochs: int | None = None,
    parameter_names: Sequence[str] | None = None,
) -> BaselinePosterior:
    """Sequential neural posterior estimation: train a flow q(theta | x) on pairs (theta, x).

    Args:
        prior: as for :func:`abi.fit`; two rounds need its ``log_prob``.
        simulator: theta (n, d) -> x (n, p).
        x_o: the observation, (p,).
        num_simulations: simulator calls, shared equally by the rounds.
        num_rounds: after one round the fit answers for any x, after more for ``x_o`` alone.
        seed: of simulations, training and proposals.
        encoder: a name, or a module, a copy of which is trained.
        proposal: how later rounds choose theta. Measured once, on the multimodal Gaussian with
            20,000 calls: W1, less that between two exact samples, is 0.15 for atomic (618 CPU
            seconds) and 0.19 for truncated (455).
        num_networks: flows of an ensemble in equal parts; with truncated proposals this is TSNPE
            as Deistler, Goncalves & Macke (2022) use it.
        max_epochs: most passes over the pairs; when omitted, training stops by itself.
        parameter_names: d names.

    Raises:
        ValueError: if more than one round is asked for and the prior has no density, or on
            arguments out of range.
    """
    per_round = calls_per_round(num_simulations, num_rounds)
    choice(*get_args(Proposal))(proposal, "proposal")
    as_count(num_networks, "num_networks", 1)
    limits = training_limits(max_epochs)
    if num_networks > 1 and num_rounds > 1 and proposal == "atomic":
        raise ValueError('`num_networks` must be 1 for atomic proposals; use proposal="truncated".')
    if num_rounds > 1:
        require_density(prior, "a second round of snpe")
    run = begin("snpe", (prior, simulator, x_o, parameter_names), num_simulations, seed)
    theta, x = run.calls.pairs(run.drawn(per_round))
    inputs, embedding = features(encoder, x, run.problem.layout, child_seed(seed, 3))
    with guest(child_seed(seed, 2)):
        trainer = PosteriorTrainer(run.problem, inputs, embedding, proposal, num_networks, limits)
        trainer.add(theta, x)
        for _ in range(1, num_rounds):
            theta = run.problem.support.from_real(trainer.propose(per_round))
            trainer.add(*run.calls.pairs(theta))
    return run.posterior(
        trainer.draw, amortised=num_rounds == 1, rounds=trainer.records, proposal=proposal
    )


@usual_torch()
def fmpe(
    prior: Prior | Callable[[int], Any],
    simulator: Callable[..., Any],
    x_o: Tensor,
    *,
    num_simulations: int = 10_000,
    seed: int = 0,
    encoder: str | nn.Module = "flat",
    max_epochs: int | None = None,
    parameter_names: Sequence[str] | None = None,
) -> BaselinePosterior:
    """Flow matching posterior estimation: a velocity field from noise to theta given x.

    Args:
        prior: as for :func:`abi.fit`; no density is needed.
        simulator: theta (n, d) -> x (n, p).
        x_o: the observation, (p,).
        num_simulations: simulator calls.
        seed: of simulations, training and noise.
        encoder: a name, or a module, a copy of which is trained.
        max_epochs: most passes over the pairs; when omitted, training stops by itself.
        parameter_names: d names.

    Raises:
        ValueError: if an argument is out of range.
        ImportError: if sbi is older than 0.25.
    """
    asked = (prior, simulator, x_o, parameter_names)
    return _by_vector_field("fmpe", asked, num_simulations, seed, encoder, max_epochs)


@usual_torch()
def npse(
    prior: Prior | Callable[[int], Any],
    simulator: Callable[..., Any],
    x_o: Tensor,
    *,
    num_simulations: int = 10_000,
    seed: int = 0,
    encoder: str | nn.Module = "flat",
    max_epochs: int | None = None,
    parameter_names: Sequence[str] | None = None,
) -> BaselinePosterior:
    """Neural posterior score estimation: the score of theta given x under added noise.

    The arguments are those of :func:`fmpe`, theta (n, d) and x (n, p) as there.

    Raises:
        ValueError: if an argument is out of range.
        ImportError: if sbi is older than 0.25.
    """
    asked = (prior, simulator, x_o, parameter_names)
    return _by_vector_field("npse", asked, num_simulations, seed, encoder, max_epochs)


def _by_vector_field(
    method: Method,
    asked: tuple[Any, Any, Tensor, Sequence[str] | None],
    num_simulations: int,
    seed: int,
    encoder: str | nn.Module,
    max_epochs: int | None,
) -> BaselinePosterior:
    calls_per_round(num_simulations, num_rounds=1)
    limits = training_limits(max_epochs)
    require_fields(method)
    run = begin(method, asked, num_simulations, seed)
    theta, x = run.calls.pairs(run.drawn(num_simulations))
    inputs, embedding = features(encoder, x, run.problem.layout, child_seed(seed, 3))
    with guest(child_seed(seed, 2)):
        trainer = VectorFieldTrainer(method, run.problem, inputs, embedding, limits)
        trainer.add(theta, x)
    return run.posterior(trainer.draw, amortised=True, rounds=trainer.records)


@usual_torch()
def snle(
    prior: Prior | Callable[[int], Any],
    simulator: Callable[..., Any],
    x_o: Tensor,
    *,
    num_simulations: int = 10_000,
    num_rounds: int = 1,
    seed: int = 0,
    encoder: str | nn.Module = "flat",
    flow: Literal["maf", "nsf"] = "maf",
    num_chains: int = 200,
    warmup_steps: int = 10,
    thin: int = 5,
    max_epochs: int | None = None,
    parameter_names: Sequence[str] | None = None,
) -> BaselinePosterior:
    """Sequential neural likelihood estimation: train a flow q(x | theta), then sample by MCMC.

    Args:
        prior: as for :func:`abi.fit`, with ``log_prob``.
        simulator: theta (n, d) -> x (n, p).
        x_o: the observation, (p,).
        num_simulations: simulator calls, shared equally by the rounds.
        num_rounds: after one round the fit answers for any x, after more for ``x_o`` alone.
        seed: of simulations, training and chains.
        encoder: ``"flat"``; ``"sorted"``, items in the order of their first coordinate; or
            ``"moments"``, mean and covariance in place of x.
        flow: ``"maf"``, masked autoregressive, or ``"nsf"``, a spline flow.
        num_chains: chains of the vectorised slice sampler.
        warmup_steps: draws of each chain that are thrown away, ``thin`` sweeps each, after fifty
            sweeps that tune the sampler.
        thin: sweeps between two draws of a chain.
        max_epochs: most passes over the pairs; when omitted, training stops by itself.
        parameter_names: d names.

    Raises:
        ValueError: if the prior has no density, the encoder is another, or an argument is out of
            range.
    """
    per_round = calls_per_round(num_simulations, num_rounds)
    chains = {
        "num_chains": as_count(num_chains, "num_chains", 1),
        "warmup_steps": as_count(warmup_steps, "warmup_steps", 0),
        "thin": as_count(thin, "thin", 1),
    }
    choice("maf", "nsf")(flow, "flow")
    limits = training_limits(max_epochs)
    require_density(prior, "snle")
    run = begin("snle", (prior, simulator, x_o, parameter_names), num_simulations, seed)
    theta, x = run.calls.pairs(run.drawn(per_round))
    inputs = with_density(encoder, x, run.problem.layout)
    with guest(child_seed(seed, 2)):
        trainer = LikelihoodTrainer(run.problem, inputs, flow, chains, limits)
        trainer.add(theta, x)
        for number in range(1, num_rounds):
            theta = trainer.draw(run.problem.x_o, per_round, child_seed(seed, 3, number))
            trainer.add(*run.calls.pairs(theta))
    return run.posterior(trainer.draw, amortised=num_rounds == 1, rounds=trainer.records, flow=flow)


@usual_torch()
def wgan_gp(
    prior: Prior | Callable[[int], Any],
    simulator: Callable[..., Any],
    x_o: Tensor,
    *,
    num_simulations: int = 10_000,
    seed: int = 0,
    encoder: str | nn.Module = "flat",
    settings: WGANSettings | None = None,
    parameter_names: Sequence[str] | None = None,
) -> BaselinePosterior:
    """A Wasserstein GAN with gradient penalty: a generator of theta given x, against a critic.

    Args:
        prior: as for :func:`abi.fit`; no density is needed.
        simulator: theta (n, d) -> x (n, p).
        x_o: the observation, (p,).
        num_simulations: simulator calls.
        seed: of simulations, training and noise.
        encoder: a name, or a module; generator and critic train a copy each.
        settings: of the training; when omitted, the usual ones with the number of steps chosen
            as :mod:`.adversarial` says.
        parameter_names: d names.

    Raises:
        ValueError: if an argument is out of range.
    """
    calls_per_round(num_simulations, num_rounds=1)
    run = begin("wgan_gp", (prior, simulator, x_o, parameter_names), num_simulations, seed)
    theta, x = run.calls.pairs(run.drawn(num_simulations))
    inputs, embedding = features(encoder, x, run.problem.layout, child_seed(seed, 3))
    fit = partial(fit_generator, run.problem, theta, x, inputs, embedding, child_seed(seed, 2))
    if settings is None:
        trained = longest(fit(WGANSettings(num_steps=steps)) for steps in _STEPS)
    else:
        trained = fit(settings)
    return run.posterior(
        trained.draw,
        amortised=True,
        num_steps=trained.num_steps,
        epochs=trained.log.epochs,
        energy_score=trained.log.validation_loss,
        training_energy_score=trained.log.train_loss,
    )
