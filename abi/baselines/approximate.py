"""Approximate Bayesian computation: rejection, and sbi's sequential Monte Carlo.

The distance is Euclidean between the encoded, standardised x, the same form of x that the networks
see, or, for WABC, the Wasserstein distance between data sets (:mod:`abi.baselines.data_distance`).

Source: Pritchard et al. (1999); Beaumont, Cornuet, Marin & Robert (2009), sbi's variant C.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from simulators import Prior, sample_prior
from simulators.arguments import FRACTION, SHARE, count, optional
from simulators.random import as_count, child_seed

from ..encoders.choice import FIXED
from ..encoders.layout import Layout
from ..rounds.problem import Problem, pose
from ..training.torch_settings import usual_torch
from .calls import CountedSimulator
from .data_distance import DataDistance, View
from .guest import guest
from .inputs import Inputs, features
from .nearest import Nearest
from .reals import RealPrior, require_density
from .result import BaselinePosterior, resampled

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
    """Keep the prior draws whose x lies nearest to x_o.

    Args:
        prior: as for :func:`abi.fit`; no density is needed.
        simulator: theta (n, d) -> x (n, p).
        x_o: the observation, (p,).
        num_simulations: simulator calls.
        seed: of the simulations.
        encoder: ``"flat"``, ``"sorted"`` or another fixed one of :mod:`abi.encoders.choice`.
        accept_fraction: share of the draws that is kept, in (0, 1], at least 20 draws; when omitted
            as many as forecast pairs like x_o best (:mod:`abi.baselines.nearest`).
        parameter_names: d names.

    Raises:
        ValueError: if an argument is out of range, or the encoder has weights to learn.
    """
    started = time.process_time()
    optional(SHARE)(accept_fraction, "accept_fraction")
    _check_fixed(encoder)
    num_simulations = as_count(num_simulations, "num_simulations", 2)
    problem = pose(prior, simulator, x_o, parameter_names)
    calls = CountedSimulator(problem, num_simulations, child_seed(seed, 0))
    theta, x = calls.pairs(sample_prior(problem.prior, num_simulations, child_seed(seed, 1)))
    inputs, _ = features(encoder, x, problem.layout)
    nearest = Nearest(theta, inputs(x), accept_fraction, child_seed(seed, 2))
    distance, kept = nearest.to(inputs(problem.x_o[None])[0])
    return BaselinePosterior(
        method="rejection_abc",
        x_o=problem.x_o,
        parameter_names=problem.parameter_names,
        draw=resampled(kept, torch.ones(len(kept))),
        amortised=False,
        num_simulations=calls.made,
        cpu_seconds=time.process_time() - started,
        seed=seed,
        details={"tolerance": float(distance[-1]), "accepted": len(kept)},
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
    """Sequential Monte Carlo ABC as sbi offers it.

    Args:
        prior: as for :func:`abi.fit`, with ``log_prob``.
        simulator: theta (n, d) -> x (n, p).
        x_o: the observation, (p,).
        num_simulations: simulator calls.
        seed: of everything.
        encoder: ``"flat"``, ``"sorted"`` or another fixed one of :mod:`abi.encoders.choice`.
        num_particles: of a population; a hundredth of the calls when omitted.
        epsilon_decay: the next tolerance is this quantile of the population's distances.
        parameter_names: d names.

    Raises:
        ValueError: if the prior has no density, or the encoder has weights to learn.
    """
    return _sequential(
        "smc_abc",
        (prior, simulator, x_o, parameter_names),
        lambda problem: _Distance(encoder, problem.layout),
        num_simulations,
        seed,
        num_particles,
        epsilon_decay,
    )


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

    Differs from the paper: sbi's SMC-ABC in place of its r-hit kernel.

    Args:
        prior: as for :func:`abi.fit`, with ``log_prob``.
        simulator: theta (n, d) -> x (n, p); its ``item_dim`` or ``num_series`` says what is an
            item.
        x_o: the observation, (p,).
        num_simulations: simulator calls.
        seed: of everything.
        order: p of the distance between data sets; 1 in the paper's examples, 2 where Lu & Wong
            (2025) compare with it.
        view: ``"items"``, or ``"curve"`` or ``"delay"`` for series.
        lag: of the delay reconstruction.
        curve_weight: of the time in curve matching.
        num_particles: of a population; a hundredth of the calls when omitted.
        epsilon_decay: the next tolerance is this quantile of the population's distances.
        parameter_names: d names.

    Raises:
        ValueError: if the prior has no density, or constants are out of range.

    Source: Bernton, Jacob, Gerber & Robert (2019).
    """

    def data_distance(problem: Problem) -> DataDistance:
        distance = DataDistance(problem.layout, order, view, lag, curve_weight)
        distance(problem.x_o[None], problem.x_o[None])  # one that fails is not worth a simulation
        return distance

    return _sequential(
        "wabc",
        (prior, simulator, x_o, parameter_names),
        data_distance,
        num_simulations,
        seed,
        num_particles,
        epsilon_decay,
    )


def _sequential(
    method: str,
    asked: tuple[Any, Any, Tensor, Sequence[str] | None],
    distance_of: Callable[[Problem], Callable[[Tensor, Tensor], Tensor]],
    num_simulations: int,
    seed: int,
    num_particles: int | None,
    epsilon_decay: float,
) -> BaselinePosterior:
    """SMC-ABC of sbi for any distance; ``distance_of`` takes what is asked."""
    started = time.process_time()
    problem = pose(*asked)
    require_density(asked[0], method)
    FRACTION(epsilon_decay, "epsilon_decay")
    num_simulations = as_count(num_simulations, "num_simulations", 2)
    particles = optional(count(2))(num_particles, "num_particles")
    particles = particles or max(_LEAST_PARTICLES, num_simulations // 100)
    if particles >= num_simulations:
        raise ValueError(
            f"`num_simulations` must be more than the {particles} particles of a population; got "
            f"{num_simulations}."
        )
    calls = CountedSimulator(problem, num_simulations, child_seed(seed, 0))
    with guest(child_seed(seed, 2)):
        z, summary = _run(problem, calls, distance_of(problem), particles, epsilon_decay)
    tolerances = [float(e) for e in summary["epsilons"]]
    if not math.isfinite(tolerances[-1]):
        raise ValueError(
            f"`simulator` gave fewer finite x than the {particles} particles of a population, so "
            f"that {method} accepted every theta; mend it, or raise num_simulations."
        )
    weights = summary["weights"][-1].exp()  # sbi's are logarithms
    return BaselinePosterior(
        method=method,
        x_o=problem.x_o,
        parameter_names=problem.parameter_names,
        draw=resampled(problem.support.from_real(z), weights),
        amortised=False,
        num_simulations=calls.made,
        cpu_seconds=time.process_time() - started,
        seed=seed,
        details={"tolerances": tolerances, "particles": particles},
    )


def _run(
    problem: Problem,
    calls: CountedSimulator,
    distance: Callable[[Tensor, Tensor], Tensor],
    particles: int,
    epsilon_decay: float,
) -> tuple[Tensor, dict[str, Any]]:
    """The last population of sbi's SMC-ABC on the real line (n, d), and what led to it."""
    from sbi.inference import SMCABC

    run = SMCABC(
        lambda z: calls(problem.support.from_real(z)),
        RealPrior(problem.prior, problem.support),
        distance=distance,
        requires_iid_data=False,
        simulation_batch_size=None,
        show_progress_bars=False,
    )
    z, summary = run(
        problem.x_o[None],
        num_particles=particles,
        num_initial_pop=min(calls.budget, _INITIAL_FACTOR * particles),
        num_simulations=calls.budget,
        epsilon_decay=epsilon_decay,
        distance_based_decay=True,
        ess_min=0.5,
        return_summary=True,
    )
    return z, summary


class _Distance:
    """Euclidean in the units of the first simulations it is shown; infinite where x is not."""

    def __init__(self, encoder: str, layout: Layout):
        _check_fixed(encoder)
        self.encoder, self.layout = encoder, layout
        self.inputs: Inputs | None = None

    def __call__(self, x_o: Tensor, x: Tensor) -> Tensor:
        """Distance of each row of x (n, p) to x_o (1, p): (n,)."""
        finite = torch.isfinite(x).all(dim=1)
        if self.inputs is None:
            self.inputs, _ = features(self.encoder, x[finite], self.layout)
        gap = self.inputs(torch.where(finite[:, None], x, x_o)) - self.inputs(x_o)
        return torch.where(finite, gap.norm(dim=1), torch.inf)


def _check_fixed(encoder: str) -> None:
    if encoder not in FIXED:
        names = ", ".join(FIXED)
        raise ValueError(
            f"`encoder` of a distance must be one of {names}; got {encoder!r}. A distance has "
            "no network that could teach another."
        )
