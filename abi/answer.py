"""From accepted pairs to a distribution: the next proposal, or the answer at x_o."""

from __future__ import annotations

from torch import Tensor

from .adjust import quantile_map
from .config import ABIConfig
from .generators.base import GenerativeModel, Progress
from .generators.flow import fit_flow
from .generators.mixture import fit_mixture
from .kernel import Kernel, LearnedKernel
from .problem import Problem
from .quantiles import InputScaling
from .training import TrainingLog

Fitted = tuple[Tensor, GenerativeModel, TrainingLog | None]


def fit_generator(
    kernel: Kernel,
    theta: Tensor,
    x: Tensor,
    problem: Problem,
    config: ABIConfig,
    seed: int,
    on_epoch: Progress,
) -> Fitted:
    """Step 9 of Algorithm 2: the generative model of the accepted theta (n, d), as they are."""
    if config.generator == "mixture":
        model = fit_mixture(theta, problem.support, max_components=config.max_components, seed=seed)
        return theta, model, None
    flow, log = fit_flow(
        theta,
        problem.support,
        settings=config.flow,
        training=config.generator_training,
        seed=seed,
        on_epoch=on_epoch,
    )
    return theta, flow, log


def fit_answer(
    kernel: Kernel,
    theta: Tensor,
    x: Tensor,
    problem: Problem,
    config: ABIConfig,
    seed: int,
    on_epoch: Progress,
) -> Fitted:
    """Step 12: the posterior at x_o, from accepted theta (n, d) and their x (n, p).

    A fixed kernel has no network to adjust by; its accepted draws are taken as they are.
    """
    if not isinstance(kernel, LearnedKernel) or config.adjustment == "none":
        return fit_generator(kernel, theta, x, problem, config, seed, on_epoch)
    if config.adjustment == "quantile":
        theta = quantile_map(kernel, theta, x, problem.support)
        return fit_generator(kernel, theta, x, problem, config, seed, on_epoch)
    encoded = kernel.encode(x)
    scaling = InputScaling(encoded)
    flow, log = fit_flow(
        theta,
        problem.support,
        settings=config.flow,
        training=config.generator_training,
        seed=seed,
        context=scaling(encoded),
        at=scaling(kernel.encode(problem.x_o[None]))[0],
        on_epoch=on_epoch,
    )
    return theta, flow, log
