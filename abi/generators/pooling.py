"""Whether an answer gains by a likelihood, and how much that counts.

The likelihood is learned from the pairs that the answer's flows were trained on, by flows of the
features given theta, and pooled with these (:mod:`.pooled`). The first flow of either holds out the
same pairs: their log density under the pool of these two, cut to the region that the pairs come
from, is what powers are compared by. The power taken has the highest mean gain, less its standard
error; without a gain none is taken, nor a second flow of the likelihood trained. At x_o the weights
must leave a tenth of the draws' worth: where flows and likelihood contradict each other, the power
is lowered until they do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import torch
from torch import Tensor, nn

from simulators import Prior, sample_prior
from simulators.random import child_seed

from ..encoders.choice import build_encoder, features_of_pairs
from ..training.loop import TrainingSettings
from .base import Progress
from .conditional import ConditionalFlows
from .flow import FlowModel
from .flow_network import FlowSettings, build_flow
from .flow_training import Conditioning, fit_flow
from .pooled import Likelihood, PooledFlows, numbers_of
from .support import Support, has_density, prior_log_prob
from .trend import fit_trend

Inside = Callable[[Tensor], Tensor]

_POWERS = (0.25, 0.5, 0.75, 1.0)
_FEATURES_EACH = 5  # at most, for each parameter
_LEAST_HELD, _MOST_HELD = 20, 300
_DRAWS = 128  # of the flow, at the x of each pair held out
_LEAST_INSIDE = 0.2  # of these, in the region
_DRAWS_AT_X_O, _WORTH = 2_000, 0.1  # and the share of them that weights must leave
_PRIOR_DRAWS, _PRIOR_STEPS = 10_000, 1 / 3
_NOISE = 2.0  # times that of a trend found from the draws of a normal prior


def pooled(
    flows: FlowModel,
    x: Tensor,
    theta: Tensor,
    prior: Prior,
    inside: Inside,
    *,
    settings: FlowSettings,
    training: TrainingSettings,
    seed: int,
    on_epoch: Progress | None = None,
) -> FlowModel:
    """The flows, pooled with a likelihood where theta held out gain by it.

    Args:
        flows: fitted to theta given x, the first of them with this seed and training.
        x: of the pairs that they were fitted to, (n, p).
        theta: of these, (n, d).
        prior: of theta, of which the pairs' own are those inside a region.
        inside: which of theta (m, d) lie in that region, (m,).
        settings: of the likelihood's flows.
        training: of these.
        seed: of the flows' own fit: the same pairs are held out.
        on_epoch: told how much of the training is done.
    """
    held = flows.held[0].context
    if flows.encoders is None or held is None or len(held) < _LEAST_HELD:
        return flows
    if held.shape[1] > _FEATURES_EACH * theta.shape[1]:
        return flows
    encoder = flows.encoders.modules[0]
    seen = features_of_pairs(encoder, x, flows.support.to_real(theta))
    numbers = numbers_of(theta, flows.support)

    given = Conditioning(build_encoder("flat", numbers), numbers, numbers[0], "flat")

    def learned(seed: int, half: int) -> FlowModel:
        """One flow of the features given theta, a half of the work."""

        def told(share: float) -> None:
            if on_epoch is not None:
                on_epoch((half + share) / 2)

        everywhere = Support.everywhere(seen.shape[1])
        model, _ = fit_flow(
            seen, everywhere,
            settings=settings, training=training, seed=seed, given=given, on_epoch=told,
        )  # fmt: skip
        return replace(model, held=())

    try:
        first = learned(seed, 0)
        density = prior_flow(prior, flows.support, settings, training, child_seed(seed, 1))
        pool = PooledFlows.of(flows, _likelihood([first], density), 1.0)
        power = _best_power(pool, held, inside, child_seed(seed, 2))
        if power == 0.0:
            return flows
        second = learned(child_seed(seed, 4), 1)
    except ValueError:  # a flow found no finite loss
        return flows
    pool = replace(pool, likelihood=_likelihood([first, second], density), power=power)
    power = lowered(pool, child_seed(seed, 3))
    return replace(pool, power=power) if power > 0.0 else flows


def _likelihood(learned: list[FlowModel], density: FlowModel) -> Likelihood:
    """Flows of the same trend in equal parts, times the prior's density."""
    flows = nn.ModuleList([flow for model in learned for flow in model.flows])
    context = torch.cat([model.context for model in learned if model.context is not None])
    given = ConditionalFlows.of(replace(learned[0], flows=flows, context=context))
    return Likelihood(cast("ConditionalFlows", given), density)


def prior_flow(
    prior: Prior, support: Support, settings: FlowSettings, training: TrainingSettings, seed: int
) -> FlowModel:
    """The prior's density, found from its draws: files need it, and a prior may offer none.

    One that is normal on the real line, as a uniform one is there, is its trend alone.
    """
    draws = sample_prior(prior, _PRIOR_DRAWS, child_seed(seed, 0))
    if has_density(prior):
        straight = replace(settings, num_transforms=0)
        untrained = nn.ModuleList([build_flow(draws.shape[1], 0, straight, seed)])
        trend = fit_trend(support.to_real(draws), None)
        plain = FlowModel(untrained, support, trend, None, straight)
        away = prior_log_prob(prior, draws) - plain.log_prob(draws)
        constants = trend.dim * (trend.dim + 3) / 2
        if float(away.std()) < _NOISE * math.sqrt(constants / len(draws)):
            return plain
    shorter = training.shortened(_PRIOR_STEPS)
    found, _ = fit_flow(draws, support, settings=settings, training=shorter, seed=seed)
    return replace(found, held=())


def lowered(pool: PooledFlows, seed: int) -> float:
    """The power, or the next lower one at which the weights at x_o leave draws enough."""
    log_weights = pool.weighted_at_x_o(_DRAWS_AT_X_O, seed)
    for power in sorted((*_POWERS, 0.0), reverse=True):
        share = (power * log_weights).double().softmax(dim=0)
        if power <= pool.power and 1.0 / float(share.square().sum()) >= _WORTH * len(share):
            return power
    return 0.0


def _best_power(pool: PooledFlows, held: Tensor, inside: Inside, seed: int) -> float:
    """That by which pairs that the first flows have not seen gain most, or 0."""
    seen = held[:_MOST_HELD]
    z = pool.trend.from_rest(pool.held[0].rows[:_MOST_HELD], seen)
    pair = pool.one(0)
    drawn, log_weights = pair.weighted(_DRAWS, [seen], seed)
    within = inside(drawn.flatten(0, 1)).reshape(log_weights.shape)
    kept = within.float().mean(dim=0) >= _LEAST_INSIDE
    if kept.sum() < _LEAST_HELD:
        return 0.0
    own = pair.log_weights(pool.support.from_real(z), seen)

    def score(power: float) -> Tensor:
        """Log density beyond that of the flow where it is not cut, (n,)."""
        log_mean = (power * log_weights).where(within, -torch.inf).logsumexp(dim=0)
        return (power * own - log_mean + math.log(_DRAWS))[kept].double()

    without = score(0.0)
    surely = {power: _sure_mean(score(power) - without) for power in _POWERS}
    best = max(surely, key=lambda power: surely[power])
    return best if surely[best] > 0.0 else 0.0


def _sure_mean(gain: Tensor) -> float:
    """The mean less its standard error; of values that are not all finite, none to rely on."""
    if not gain.isfinite().all():
        return -math.inf
    return float(gain.mean() - gain.std() / math.sqrt(len(gain)))
