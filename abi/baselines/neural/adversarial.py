"""A conditional Wasserstein GAN with gradient penalty: a network of noise and x that draws theta.

Trained on pairs of prior and simulator as :mod:`abi.generators.push_forward.wgan` tells, theta on
the real line (:mod:`abi.generators.support`) in the prior's standard deviations, x through its
encoder beside the noise and beside what the critic judges. A tenth of the pairs is held out, and
the weights are kept that give these the best energy score: the critic's loss says nothing about the
quality of the draws, and adversarial training does not end where it is best. How long to train
differs by model: 1,500 steps are doubled while the held-out score gains by it, to 12,000 at most.

Source: Gulrajani et al. (2017); as a posterior, Wang & Rockova (2022), "Adversarial Bayesian
simulation".
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from simulators.random import child_seed, isolated_rng, torch_generator

from ...generators.push_forward.model import Conditioned, noise_dim, standardised
from ...generators.push_forward.wgan import WGANSettings, train_wgan
from ...rounds.problem import Problem
from ...training.loop import TrainingLog
from ..inputs import Inputs, num_features
from ..reals import draw_inside


def fit_generator(
    problem: Problem,
    theta: Tensor,
    x: Tensor,
    inputs: Inputs,
    embedding: nn.Module,
    seed: int,
    settings: WGANSettings,
) -> Generator:
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
    return Generator(problem, network, inputs, center, scale, log, settings.num_steps)


def longest(fits: Iterable[Generator]) -> Generator:
    """Of ever longer trainings, made as they are asked for, the last that the score gains by."""
    trials = iter(fits)
    best = next(trials)
    for longer in trials:
        if longer.log.validation_loss >= best.log.validation_loss:
            break
        best = longer
    return best


@dataclass(frozen=True, eq=False)
class Generator:
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
