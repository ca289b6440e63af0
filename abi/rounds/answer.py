"""From a round's pairs to a distribution: the next proposal, or the answer at x_o."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import cast

from torch import Tensor

from simulators.random import child_seed

from ..config import ABIConfig, Encoder
from ..encoders.choice import LEARNED
from ..generators import pool
from ..generators.base import GenerativeModel, Past, Progress
from ..generators.flow import FlowModel
from ..generators.flow_training import Conditioning, fit_flow
from ..generators.mixture import fit_mixture
from ..generators.push_forward.potnet import fit_potnet
from ..generators.push_forward.wgan import fit_wgan
from ..quantiles.adjustment import quantile_map
from ..quantiles.kernel import Kernel, LearnedKernel, train_kernel
from ..training.loop import TrainingLog
from .problem import Problem
from .regions.region import AnyRegion, inside_all, is_pooled

Fitted = tuple[Tensor, GenerativeModel, TrainingLog | None]
"""The accepted theta (k, d) as the model sees them, the model, and what its training did."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The pairs of a round, inside A_{t-1}, and which of them lie inside A_t.

    Attributes:
        theta: (n, d).
        x: (n, p).
        accepted: score within the tolerance eps_t, (n,).
        past: theta and x of earlier rounds' pairs that are none of these.
    """

    theta: Tensor
    x: Tensor
    accepted: Tensor
    past: Past | None = None


def fit_answer(
    kernel: Kernel,
    pairs: Pairs,
    problem: Problem,
    config: ABIConfig,
    seed: int,
    on_epoch: Progress,
    *,
    last: bool = True,
) -> Fitted:
    """Step 12: the posterior at x_o, adjusted as :mod:`abi.quantiles.adjustment` explains.

    A fixed kernel has no network to adjust by; its accepted draws are taken as they are. A learned
    encoder goes on learning with the flows: in the ``last`` round, beside another one; before, if
    it is the user's.
    """
    theta, x = pairs.theta[pairs.accepted], pairs.x[pairs.accepted]
    if not isinstance(kernel, LearnedKernel) or config.adjustment == "none":
        return fit_generator(theta, problem, config, seed, on_epoch)
    if config.adjustment == "quantile":
        moved = quantile_map(kernel, theta, x, problem.support)
        return fit_generator(moved, problem, config, seed, on_epoch)
    given = Conditioning(
        kernel.network.encoder,
        x,
        problem.x_o,
        kernel.encoder,
        kernel.layout,
        taught=last or kernel.encoder not in LEARNED,
        curved=problem.asked is not None,
    )
    training = config.generator_training
    if last:
        training = training.for_rows(len(theta))
        given = _with_another(given, theta, problem, config, child_seed(seed, config.num_flows + 1))
    flow, log = fit_flow(
        theta,
        problem.support,
        settings=config.flow,
        training=training,
        seed=seed,
        num_flows=config.num_flows,
        given=given,
        on_epoch=on_epoch,
    )
    return theta, flow, log


def _with_another(
    given: Conditioning, theta: Tensor, problem: Problem, config: ABIConfig, seed: int
) -> Conditioning:
    """With a second encoder, begun by a brief quantile network, where encoders learn."""
    if not given.learns or config.num_flows < 2:
        return given
    if problem.encoder is None:
        config = replace(config, encoder=cast("Encoder", given.name))
    kernel, _ = train_kernel(
        theta, given.x, given.x_o, config, seed,
        support=problem.support, layout=given.layout, own=problem.encoder, extent="encoder",
    )  # fmt: skip
    return replace(given, another=kernel.network.encoder)


def pool_answer(
    model: GenerativeModel,
    pairs: Pairs,
    regions: tuple[AnyRegion, ...],
    problem: Problem,
    config: ABIConfig,
    seed: int,
    on_epoch: Progress,
    *,
    last: bool = True,
) -> GenerativeModel:
    """The answer, with a likelihood where pairs held out gain by it.

    A likelihood must see all that was simulated at a theta, and the pairs must be the prior's
    inside their regions. ``seed`` is that of :func:`fit_answer`. Before the ``last`` round, where
    it only says where to simulate, that of many measured values is, as long as regions gain by it.
    """
    if not last and (problem.asked is None or (regions and not is_pooled(regions[-1]))):
        return model
    of_prior = config.proposal == "truncated" and pairs.accepted.all()
    if not (config.likelihood and of_prior and isinstance(model, FlowModel)):
        return model
    return pool.pooled(
        model,
        pairs.x,
        pairs.theta,
        problem.x_o,
        problem.prior,
        partial(inside_all, regions),
        settings=config.flow,
        training=config.generator_training,
        seed=seed,
        on_epoch=on_epoch,
        for_region=not last,
        before=regions[-1].model if regions else None,
        past=pairs.past,
    )


def fit_generator(
    theta: Tensor, problem: Problem, config: ABIConfig, seed: int, on_epoch: Progress
) -> Fitted:
    """Step 9 of Algorithm 2: the configured generative model of accepted theta (k, d)."""
    support = problem.support
    model: GenerativeModel
    log: TrainingLog | None = None
    match config.generator:
        case "mixture":
            model = fit_mixture(theta, support, max_components=config.max_components, seed=seed)
        case "potnet":
            model, log = fit_potnet(
                theta, support, settings=config.potnet, seed=seed, on_epoch=on_epoch
            )
        case "wgan":
            model, log = fit_wgan(
                theta, support, settings=config.wgan, seed=seed, on_epoch=on_epoch
            )
        case "flow":
            model, log = fit_flow(
                theta,
                support,
                settings=config.flow,
                training=config.generator_training,
                seed=seed,
                on_epoch=on_epoch,
            )
    return theta, model, log
