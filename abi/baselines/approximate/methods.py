"""Approximate Bayesian computation: rejection, also by learned summaries, and sequential.

The distance is Euclidean between the encoded, standardised x, the same form of x that the networks
see, or, for ABC-SS, between estimates of the posterior mean (:mod:`.summary_statistics`), or, for
WABC, the Wasserstein distance between data sets (:mod:`.data_distance`).

Source: Pritchard et al. (1999); Beaumont, Cornuet, Marin & Robert (2009), sbi's variant C.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from simulators import Prior
from simulators.arguments import FRACTION, SHARE, count, optional
from simulators.random import as_count, child_seed, torch_generator

from ...encoders.layout import Layout
from ...training.torch_settings import usual_torch
from ..frame import Run, begin
from ..guest import guest
from ..inputs import Inputs, features, require_fixed
from ..reals import RealPrior, require_density
from ..result import BaselinePosterior, resampled
from .data_distance import DataDistance, View
from .nearest import Nearest
from .summary_statistics import posterior_mean

_LEAST_CALLS = 100  # of ABC-SS
_INITIAL_FACTOR = 5  # simulations a particle of the first population
_LEAST_PARTICLES = 50


@usual_torch()
def rejection_abc(
    prior: Prior | Callable[[int], Any],
    simulator: Callable[..., Any],
    x_o: Tensor,
    *,
    num_simulations: int = 10_000,
    seed: int = 0,
    encoder: str = "flat",
    accept_fraction: float | None = None,
    parameter_names: Sequence[str] | None = None,
) -> BaselinePosterior:
    """Rejection ABC: keep the prior draws whose x lies nearest to x_o.

    Args:
        prior: as for :func:`abi.fit`; no density is needed.
        simulator: theta (n, d) -> x (n, p).
        x_o: the observation, (p,).
        num_simulations: simulator calls.
        seed: of the simulations.
        encoder: ``"flat"``, ``"sorted"`` or another that is fixed.
        accept_fraction: share of the draws to keep, in (0, 1], at least 20 draws; when omitted the
            one that predicts pairs near x_o best (:mod:`abi.baselines.approximate.nearest`).
        parameter_names: d names.

    Raises:
        ValueError: if an argument is out of range, or the encoder has weights to learn.
    """
    optional(SHARE)(accept_fraction, "accept_fraction")
    require_fixed(encoder)
    run = begin("rejection_abc", (prior, simulator, x_o, parameter_names), num_simulations, seed)
    theta, x = run.calls.pairs(run.drawn(run.calls.budget))
    inputs, _ = features(encoder, x, run.problem.layout)
    nearest = Nearest(theta, inputs(x), accept_fraction, child_seed(seed, 2))
    distance, kept = nearest.to(inputs(run.problem.x_o[None])[0])
    return run.posterior(
        resampled(kept, torch.ones(len(kept))),
        amortised=False,
        tolerance=float(distance[-1]),
        accepted=len(kept),
    )


@usual_torch()
def abc_ss(
    prior: Prior | Callable[[int], Any],
    simulator: Callable[..., Any],
    x_o: Tensor,
    *,
    num_simulations: int = 10_000,
    seed: int = 0,
    encoder: str | nn.Module = "flat",
    accept_fraction: float | None = None,
    parameter_names: Sequence[str] | None = None,
) -> BaselinePosterior:
    """ABC with learned summaries: keep the prior draws whose posterior mean is near that of x_o.

    A network, trained on half of the calls, estimates the posterior mean from x.

    Args:
        prior: as for :func:`abi.fit`; no density is needed.
        simulator: theta (n, d) -> x (n, p).
        x_o: the observation, (p,).
        num_simulations: simulator calls, half of which train the summaries.
        seed: of simulations and training.
        encoder: a name, or a module, a copy of which is trained.
        accept_fraction: share of the other half to keep, as for :func:`rejection_abc`.
        parameter_names: d names.

    Raises:
        ValueError: if an argument is out of range.
    """
    optional(SHARE)(accept_fraction, "accept_fraction")
    if as_count(num_simulations, "num_simulations", 1) < _LEAST_CALLS:
        raise ValueError(
            f"`num_simulations` must be at least {_LEAST_CALLS}, for half of them train the "
            f"summaries; got {num_simulations}."
        )
    run = begin("abc_ss", (prior, simulator, x_o, parameter_names), num_simulations, seed)
    drawn = run.drawn(num_simulations)
    half = num_simulations // 2
    summaries, log = posterior_mean(
        *run.calls.pairs(drawn[:half]), encoder, run.problem.layout, child_seed(seed, 2)
    )
    theta, x = run.calls.pairs(drawn[half:])
    nearest = Nearest(theta, summaries(x), accept_fraction, child_seed(seed, 3))
    distance, kept = nearest.to(summaries(run.problem.x_o[None])[0])

    def draw(x_o: Tensor, num_samples: int, seed: int) -> Tensor:
        _, kept = nearest.to(summaries(x_o[None])[0])
        rows = torch.randint(len(kept), (num_samples,), generator=torch_generator(seed))
        return kept[rows]

    return run.posterior(
        draw,
        amortised=True,
        training_simulations=half,
        validation_loss=log.validation_loss,
        tolerance=float(distance[-1]),
        accepted=len(kept),
    )


@usual_torch()
def smc_abc(
    prior: Prior | Callable[[int], Any],
    simulator: Callable[..., Any],
    x_o: Tensor,
    *,
    num_simulations: int = 10_000,
    seed: int = 0,
    encoder: str = "flat",
    num_particles: int | None = None,
    epsilon_decay: float = 0.5,
    parameter_names: Sequence[str] | None = None,
) -> BaselinePosterior:
    """Sequential Monte Carlo ABC, by sbi: populations of theta with ever smaller tolerances.

    Args:
        prior: as for :func:`abi.fit`, with ``log_prob``.
        simulator: theta (n, d) -> x (n, p).
        x_o: the observation, (p,).
        num_simulations: simulator calls.
        seed: of everything.
        encoder: ``"flat"``, ``"sorted"`` or another that is fixed.
        num_particles: theta in a population; a hundredth of the calls when omitted.
        epsilon_decay: the next tolerance is this quantile of the population's distances, in (0, 1).
        parameter_names: d names.

    Raises:
        ValueError: if the prior has no density, or the encoder has weights to learn.
    """
    require_density(prior, "smc_abc")
    run = begin("smc_abc", (prior, simulator, x_o, parameter_names), num_simulations, seed)
    distance = _FeatureDistance(encoder, run.problem.layout)
    return _sequential(run, distance, num_particles, epsilon_decay)


@usual_torch()
def wabc(
    prior: Prior | Callable[[int], Any],
    simulator: Callable[..., Any],
    x_o: Tensor,
    *,
    num_simulations: int = 10_000,
    seed: int = 0,
    order: float = 1.0,
    view: View = "items",
    lag: int = 1,
    curve_weight: float | None = None,
    num_particles: int | None = None,
    epsilon_decay: float = 0.5,
    parameter_names: Sequence[str] | None = None,
) -> BaselinePosterior:
    """Sequential Monte Carlo ABC with the Wasserstein distance between data sets.

    Differs from the paper: it uses sbi's SMC-ABC, not the paper's r-hit kernel.

    Args:
        prior: as for :func:`abi.fit`, with ``log_prob``.
        simulator: theta (n, d) -> x (n, p); its attribute ``item_dim`` or ``num_series`` says
            how x is made up.
        x_o: the observation, (p,).
        num_simulations: simulator calls.
        seed: of everything.
        order: p of the distance between data sets; 1 in the paper's examples, 2 where Lu & Wong
            (2025) compare with it.
        view: how a data set is compared: as ``"items"`` in any order, or a series as a ``"curve"``
            over time or by its ``"delay"`` reconstruction.
        lag: of the delay reconstruction.
        curve_weight: of the time in curve matching.
        num_particles: theta in a population; a hundredth of the calls when omitted.
        epsilon_decay: the next tolerance is this quantile of the population's distances, in (0, 1).
        parameter_names: d names.

    Raises:
        ValueError: if the prior has no density, or constants are out of range.

    Source: Bernton, Jacob, Gerber & Robert (2019).
    """
    require_density(prior, "wabc")
    run = begin("wabc", (prior, simulator, x_o, parameter_names), num_simulations, seed)
    distance = DataDistance(run.problem.layout, order, view, lag, curve_weight)
    distance(run.problem.x_o[None], run.problem.x_o[None])  # a failure is not worth a simulation
    return _sequential(run, distance, num_particles, epsilon_decay)


def _sequential(
    run: Run,
    distance: Callable[[Tensor, Tensor], Tensor],
    num_particles: int | None,
    epsilon_decay: float,
) -> BaselinePosterior:
    """SMC-ABC of sbi for any distance."""
    FRACTION(epsilon_decay, "epsilon_decay")
    budget = run.calls.budget
    particles = optional(count(2))(num_particles, "num_particles")
    particles = particles or max(_LEAST_PARTICLES, budget // 100)
    if particles >= budget:
        raise ValueError(
            f"`num_simulations` must be more than the {particles} particles of a population; got "
            f"{budget}."
        )
    with guest(child_seed(run.seed, 2)):
        z, summary = _last_population(run, distance, particles, epsilon_decay)
    tolerances = [float(e) for e in summary["epsilons"]]
    if not math.isfinite(tolerances[-1]):
        raise ValueError(
            f"`simulator` gave fewer finite x than the {particles} particles of a population, so "
            f"that {run.method} accepted every theta; correct it, or raise num_simulations."
        )
    weights = summary["weights"][-1].exp()  # sbi's are logarithms
    draw = resampled(run.problem.support.from_real(z), weights)
    return run.posterior(draw, amortised=False, tolerances=tolerances, particles=particles)


def _last_population(
    run: Run,
    distance: Callable[[Tensor, Tensor], Tensor],
    particles: int,
    epsilon_decay: float,
) -> tuple[Tensor, dict[str, Any]]:
    """The last population of sbi's SMC-ABC on the real line (n, d), and what led to it."""
    from sbi.inference import SMCABC

    problem, budget = run.problem, run.calls.budget
    sampler = SMCABC(
        lambda z: run.calls(problem.support.from_real(z)),
        RealPrior(problem.prior, problem.support),
        distance=distance,
        requires_iid_data=False,
        simulation_batch_size=None,
        show_progress_bars=False,
    )
    z, summary = sampler(
        problem.x_o[None],
        num_particles=particles,
        num_initial_pop=min(budget, _INITIAL_FACTOR * particles),
        num_simulations=budget,
        epsilon_decay=epsilon_decay,
        distance_based_decay=True,
        ess_min=0.5,
        return_summary=True,
    )
    return z, summary


class _FeatureDistance:
    """Euclidean in the units of the first simulations it is shown; infinite where x is not."""

    def __init__(self, encoder: str, layout: Layout):
        require_fixed(encoder)
        self.encoder, self.layout = encoder, layout
        self.inputs: Inputs | None = None

    def __call__(self, x_o: Tensor, x: Tensor) -> Tensor:
        """Distance of each row of x (n, p) to x_o (1, p): (n,)."""
        finite = torch.isfinite(x).all(dim=1)
        if self.inputs is None:
            self.inputs, _ = features(self.encoder, x[finite], self.layout)
        gap = self.inputs(torch.where(finite[:, None], x, x_o)) - self.inputs(x_o)
        return torch.where(finite, gap.norm(dim=1), torch.inf)
