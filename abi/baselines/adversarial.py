"""A conditional Wasserstein GAN with gradient penalty: a network of noise and x that draws theta.

Trained on pairs of prior and simulator as :mod:`abi.generators.wgan` tells, theta on the real line
(:mod:`abi.generators.support`) in the prior's standard deviations, x through its encoder beside the
noise and beside what the critic judges. A tenth of the pairs is held out, and the weights are kept
that give these the best energy score: the critic's loss says nothing about the quality of the
draws, and adversarial training does not end where it is best. How long to train differs by model:
1,500 steps are doubled while the held-out score gains by it, to 12,000 at most.

Source: Gulrajani et al. (2017); as a posterior, Wang & Rockova (2022), "Adversarial Bayesian
simulation".
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from simulators import Prior, sample_prior
from simulators.random import child_seed, isolated_rng, torch_generator

from ..generators.pushforward import Conditioned, noise_dim, standardised
from ..generators.wgan import WGANSettings, train_wgan
from ..rounds.problem import Problem, pose
from ..training.loop import TrainingLog
from ..training.torch_settings import usual_torch
from .calls import CountedSimulator, calls_per_round
from .inputs import Inputs, features, num_features
from .reals import draw_inside
from .result import BaselinePosterior

_STEPS = (1_500, 3_000, 6_000, 12_000)


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
    """Train a generator of theta given x against a critic.

    Args:
        prior: as for :func:`abi.fit`; no density is needed.
        simulator: theta (n, d) -> x (n, p).
        x_o: the observation, (p,).
        num_simulations: simulator calls.
        seed: of simulations, training and noise.
        encoder: a name of :mod:`abi.encoders.choice`, or a module x (n, p) -> features (n, k),
            which is given x as it is; generator and critic train a copy each.
        settings: constants of the training; when omitted the usual ones, and steps as told above.
        parameter_names: d names.

    Raises:
        ValueError: on arguments out of range.
    """
    started = time.process_time()
    calls_per_round(num_simulations, num_rounds=1)
    problem = pose(prior, simulator, x_o, parameter_names)
    calls = CountedSimulator(problem, num_simulations, child_seed(seed, 0))
    theta, x = calls.pairs(sample_prior(problem.prior, num_simulations, child_seed(seed, 1)))
    inputs, embedding = features(encoder, x, problem.layout, child_seed(seed, 3))

    def fit(settings: WGANSettings) -> _Generator:
        return _fit(problem, theta, x, inputs, embedding, settings, child_seed(seed, 2))

    trained = _longest(fit) if settings is None else fit(settings)
    return BaselinePosterior(
        method="wgan_gp",
        x_o=problem.x_o,
        parameter_names=problem.parameter_names,
        draw=trained.draw,
        amortised=True,
        num_simulations=calls.made,
        cpu_seconds=time.process_time() - started,
        seed=seed,
        details={
            "num_steps": trained.num_steps,
            "epochs": trained.log.epochs,
            "energy_score": trained.log.validation_loss,
            "training_energy_score": trained.log.train_loss,
        },
    )


def _longest(fit: Callable[[WGANSettings], _Generator]) -> _Generator:
    """The fit with the most steps that pairs held out gain by."""
    best = fit(WGANSettings(num_steps=_STEPS[0]))
    for num_steps in _STEPS[1:]:
        longer = fit(WGANSettings(num_steps=num_steps))
        if longer.log.validation_loss >= best.log.validation_loss:
            break
        best = longer
    return best


def _fit(
    problem: Problem,
    theta: Tensor,
    x: Tensor,
    inputs: Inputs,
    embedding: nn.Module,
    settings: WGANSettings,
    seed: int,
) -> _Generator:
    """A generator trained on pairs theta (n, d), x (n, p)."""
    u, center, scale = standardised(theta, problem.support)
    width, d = num_features(inputs, embedding, x), theta.shape[1]
    network, critic = (
        Conditioned(widths, copy.deepcopy(embedding), width, seed=child_seed(seed, player))
        for player, widths in enumerate(
            [(noise_dim(d), *settings.hidden, d), (d, *settings.hidden, 1)]
        )
    )
    with isolated_rng(child_seed(seed, 2)):  # a module of the user's may draw, to drop values out
        log = train_wgan(network, critic, (u, inputs(x)), settings, child_seed(seed, 3))
    return _Generator(problem, network, inputs, center, scale, log, settings.num_steps)


@dataclass(frozen=True, eq=False)
class _Generator:
    """A trained network of noise and x, and the units of its output."""

    problem: Problem
    network: Conditioned
    inputs: Inputs
    center: Tensor
    scale: Tensor
    log: TrainingLog
    num_steps: int

    @torch.no_grad()
    def draw(self, x_o: Tensor, num_samples: int, seed: int) -> Tensor:
        """Draw theta (n, d) given x_o (p,), within the prior."""
        random, given = torch_generator(seed), self.inputs(x_o[None])

        def propose(count: int) -> Tensor:
            noise = torch.randn(count, noise_dim(len(self.center)), generator=random)
            u: Tensor = self.network(noise, given.expand(count, -1))
            return u * self.scale + self.center

        return draw_inside(self.problem, propose, num_samples, "wgan_gp")
