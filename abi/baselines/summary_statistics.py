"""ABC with learned summaries: the posterior mean, estimated by a network, is what is compared.

    S(x) = an estimate of E[theta | x],   keep the theta whose |S(x) - S(x_o)| is least,

theta in the standard deviations of the prior's draws. One number a parameter is the least that
keeps the posterior mean right as the tolerance vanishes; what the mean does not tell, two modes of
opposite sign for one, is lost.

The budget is cut in two: half of the simulations train the network, the other half are compared
with x_o. The first half is not used again: its summaries were fitted to its own theta.

Source: Fearnhead & Prangle (2012), Section 2.3; Jiang, Wu, Zheng & Wong (2017), Algorithm 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from simulators import Prior, sample_prior
from simulators.arguments import SHARE, optional
from simulators.random import as_count, child_seed, torch_generator

from ..encoders.choice import features_of
from ..encoders.layout import Layout
from ..generators.base import units
from ..generators.pushforward import Conditioned
from ..rounds.problem import pose
from ..training.loop import TrainingLog, TrainingSettings, train
from ..training.torch_settings import usual_torch
from .calls import CountedSimulator
from .inputs import features, num_features
from .nearest import Nearest
from .result import BaselinePosterior

_HIDDEN = (128, 128, 128)  # as wide as ABI's quantile network
_LEAST_CALLS = 100


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
    """Keep the prior draws whose estimated posterior mean lies nearest to that of x_o.

    Args:
        prior: as for :func:`abi.fit`; no density is needed.
        simulator: theta (n, d) -> x (n, p).
        x_o: the observation, (p,).
        num_simulations: simulator calls, half of which train the summaries.
        seed: of simulations and training.
        encoder: a name of :mod:`abi.encoders.choice`, or a module x (n, p) -> features (n, k), a
            copy of which is trained along and is given x as it is.
        accept_fraction: share of the other half that is kept, in (0, 1], at least 20 draws; when
            omitted as many as forecast pairs like x_o best (:mod:`abi.baselines.nearest`).
        parameter_names: d names.

    Raises:
        ValueError: on arguments out of range.
    """
    started = time.process_time()
    optional(SHARE)(accept_fraction, "accept_fraction")
    if as_count(num_simulations, "num_simulations", 1) < _LEAST_CALLS:
        raise ValueError(
            f"`num_simulations` must be at least {_LEAST_CALLS}, for half of them train the "
            f"summaries; got {num_simulations}."
        )
    problem = pose(prior, simulator, x_o, parameter_names)
    calls = CountedSimulator(problem, num_simulations, child_seed(seed, 0))
    drawn = sample_prior(problem.prior, num_simulations, child_seed(seed, 1))
    half = num_simulations // 2
    summaries, log = _posterior_mean(
        *calls.pairs(drawn[:half]), encoder, problem.layout, child_seed(seed, 2)
    )
    theta, x = calls.pairs(drawn[half:])
    nearest = Nearest(theta, summaries(x), accept_fraction, child_seed(seed, 3))
    distance, kept = nearest.to(summaries(problem.x_o[None])[0])

    def draw(x_o: Tensor, num_samples: int, seed: int) -> Tensor:
        _, kept = nearest.to(summaries(x_o[None])[0])
        rows = torch.randint(len(kept), (num_samples,), generator=torch_generator(seed))
        return kept[rows]

    return BaselinePosterior(
        method="abc_ss",
        x_o=problem.x_o,
        parameter_names=problem.parameter_names,
        draw=draw,
        amortised=True,
        num_simulations=calls.made,
        cpu_seconds=time.process_time() - started,
        seed=seed,
        details={
            "training_simulations": half,
            "validation_loss": log.validation_loss,
            "tolerance": float(distance[-1]),
            "accepted": len(kept),
        },
    )


def _posterior_mean(
    theta: Tensor, x: Tensor, encoder: str | nn.Module, layout: Layout, seed: int
) -> tuple[Callable[[Tensor], Tensor], TrainingLog]:
    """Regress theta on x: x (n, p) -> an estimate of E[theta | x] in prior sds, (n, d).

    The mean is the function of x with the least mean squared error.
    """
    center, scale, _ = units(theta)
    inputs, embedding = features(encoder, x, layout, child_seed(seed, 0))
    width = num_features(inputs, embedding, x)
    network = Conditioned((width, *_HIDDEN, theta.shape[1]), seed=child_seed(seed, 1))
    module = nn.Sequential(embedding, network)

    def loss(target: Tensor, given: Tensor) -> Tensor:
        error: Tensor = ((module(given) - target) ** 2).mean()
        return error

    data = ((theta - center) / scale, inputs(x))
    log = train(module, loss, data, TrainingSettings(), child_seed(seed, 3))
    return lambda rows: features_of(module, inputs(rows)), log
