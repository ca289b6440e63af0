"""Whether an answer gains by a likelihood, and how much that counts.

The likelihood is learned from the pairs that the answer's flows were trained on
(:mod:`.learning`), and pooled with these (:mod:`abi.generators.pool.model`). It holds out the same
pairs as the first of them: their log density under the pool of these two, cut to the region that
the pairs come from, is what powers are compared by. The power taken has the highest mean gain, and
none is taken where no power surely gains. (The highest mean less its standard error, of 32 fits
with 1,000 calls, was .004 farther off in C2ST.) Draws at x_o are chosen among 4 times as many,
or 16 times where these lose more of the answer than a twentieth (:func:`.matching.lost`): where
flows and likelihood contradict each other so that they lose a fourth, the power is lowered, to a
sixteenth at least: what pairs gain is concave in it, and 0 where it is 0.

Where x is a list of items, their likelihood is tried first, and others where it gains nothing, as
where items depend on each other. (Of slcp, four points whose law has five parameters, mean C2ST
fell from .89 to .80 with 1,000 calls, five fits, and from .61 to .55 with 10,000, four.) A list of
many items is left to its features, which say all that they share. Of other x those of the values
are tried, which have fewest numbers to find: normal, with tails of rows or of each value, with
means that are a network where values are more than parameters, an exponential family. The last is
that of features. Each is taken where the same pairs surely gain
more by it; an exponential family, which has the numbers of the normal law, where they gain more at
all. (Of ten epidemics with 1,000 calls mean C2ST fell from .60 to .56; of a GLM with a hundred
answers of yes or no from .80 to .74, and from .60 to .56 with 10,000.)

One flow is enough: of seventeen fits, on seven models, that had two, none was farther off by more
than .011 of C2ST without the second, and their mean was the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from simulators import Prior
from simulators.random import child_seed

from ...encoders.choice import features_of_pairs, is_list
from ...encoders.fitted import FittedEncoders
from ...training.loop import TrainingSettings
from ..base import Progress
from ..flow import FlowModel
from ..flow_network import FlowSettings
from .learning import Learning, prior_flow
from .likelihood import Likelihood, OfItems
from .matching import lost
from .model import PooledFlows
from .values.natural import Natural

Inside = Callable[[Tensor], Tensor]
Learned = Callable[[Learning, Progress], list[Likelihood]]

_POWERS = (0.25, 0.5, 0.75, 1.0)
_LOWER = (0.0625, 0.125, *_POWERS)
_EACH = 5  # features, or values of an item, at most for each parameter
_MANY = 10  # values for each parameter, and more
_MOST_ITEMS, _MOST_VALUES = 20, 128
_LEAST_HELD, _MOST_HELD = 20, 300
_DRAWS = 128  # of the flow, at the x of each pair held out
_LEAST_INSIDE = 0.2  # of these, in the region
_DRAWS_AT_X_O = 4_000
_MOST_LOST = {4: 0.05, 16: 0.25}  # of the answer, where one draw in so many is taken


def pooled(
    flows: FlowModel,
    x: Tensor,
    theta: Tensor,
    x_o: Tensor,
    prior: Prior,
    inside: Inside,
    *,
    settings: FlowSettings,
    training: TrainingSettings,
    seed: int,
    on_epoch: Progress | None = None,
    for_region: bool = False,
) -> FlowModel:
    """The flows, pooled with a likelihood where theta held out gain by it.

    Args:
        flows: fitted to theta given x, the first of them with this seed and training.
        x: of the pairs that they were fitted to, (n, p).
        theta: of these, (n, d).
        x_o: where the answer is read, (p,).
        prior: of theta, of which the pairs' own are those inside a region.
        inside: which of theta (m, d) lie in that region, (m,).
        settings: of the likelihood's flow.
        training: of this.
        seed: of the flows' own fit: the same pairs are held out.
        on_epoch: told how much of the training is done.
        for_region: whether it only says where to simulate, and is quick: by the values alone, and
            where they are many and all measured.
    """
    encoders, held = flows.encoders, flows.held[0].context
    if encoders is None or held is None or len(held) < _LEAST_HELD:
        return flows
    tried = _ways(encoders, x, held.shape[1], theta.shape[1], for_region=for_region)
    if not tried:
        return flows
    best: tuple[_Gain, PooledFlows] | None = None
    try:
        density = prior_flow(prior, flows.support, settings, training, child_seed(seed, 1))
    except ValueError:  # a flow found no finite loss
        return flows
    learning = Learning(theta, density, settings, training, seed)
    rows = learning.held
    judges = _Judges.of(flows, theta[rows], held, inside, child_seed(seed, 2))
    if judges is None:
        return flows
    for likelihood in _learned(tried, learning, on_epoch):
        pool = PooledFlows.of(flows, likelihood, x_o, 1.0)
        gain = judges.best_gain(pool, x[rows])
        if gain is None or (best is not None and not _preferred(likelihood, gain, best[0])):
            continue
        if found := lowered(replace(pool, power=gain.power), child_seed(seed, 3)):
            best = gain, found
            if isinstance(likelihood.law, OfItems):
                break
    return flows if best is None else best[1]


@dataclass(frozen=True, eq=False)
class _Gain:
    """What pairs that the first flow has not seen gain by a power, nats each, (n,)."""

    power: float
    rows: Tensor

    @property
    def mean(self) -> float:
        """Over the pairs; of values that are not all finite, none to rely on."""
        return float(self.rows.mean()) if self.rows.isfinite().all() else -math.inf

    @property
    def sure(self) -> float:
        """The mean less its standard error."""
        error = float(self.rows.nan_to_num().std()) / math.sqrt(len(self.rows))
        return self.mean - error

    def surely_more(self, other: _Gain) -> bool:
        """Whether the same pairs gain more than by another."""
        return replace(self, rows=self.rows - other.rows).sure > 0.0


def _preferred(likelihood: Likelihood, gain: _Gain, other: _Gain) -> bool:
    """Whether it replaces another: where pairs surely gain more, or more if it is as simple."""
    as_simple = isinstance(likelihood.law, Natural)
    return gain.mean > other.mean if as_simple else gain.surely_more(other)


def _ways(
    encoders: FittedEncoders, x: Tensor, num_features: int, theta_dim: int, *, for_region: bool
) -> list[Learned]:
    """The likelihoods to try, in their order."""
    layout = encoders.layout

    def of_items(learning: Learning, told: Progress) -> list[Likelihood]:
        return [learning.of_items(x, layout, told)]

    def of_values(learning: Learning, told: Progress) -> list[Likelihood]:
        return learning.of_values(x)

    def of_curves(learning: Learning, told: Progress) -> list[Likelihood]:
        return learning.of_curves(x, told)

    def of_measured(learning: Learning, told: Progress) -> list[Likelihood]:
        curves = learning.of_curves(x, told)
        return [*learning.of_values(x), *curves] if curves else []

    def of_family(learning: Learning, told: Progress) -> list[Likelihood]:
        return learning.of_family(x)

    def of_features(learning: Learning, told: Progress) -> list[Likelihood]:
        z = learning.density.support.to_real(learning.theta)
        return [learning.of_features(features_of_pairs(encoders.modules[0], x, z), told)]

    few = 1 < layout.length(x.shape[1]) <= _MOST_ITEMS and layout.width <= _EACH * theta_dim
    listed = few and is_list(layout, encoders.name)
    valued = layout.missing == "nothing" and x.shape[1] <= min(_MOST_VALUES, len(x) // 4)
    if for_region:
        return [of_measured] if valued and x.shape[1] > _MANY * theta_dim else []
    ways = [
        (of_items, listed),
        (of_values, valued),
        (of_curves, valued and x.shape[1] > theta_dim),
        (of_family, valued),
        (of_features, num_features <= _EACH * theta_dim),
    ]
    return [way for way, possible in ways if possible]


def _learned(
    ways: list[Learned], learning: Learning, on_epoch: Progress | None
) -> Iterator[Likelihood]:
    """Likelihoods, one after another; those without a finite loss are left out."""
    for number, learned in enumerate(ways):

        def told(share: float, before: int = number) -> None:
            if on_epoch is not None:
                on_epoch((before + share) / len(ways))

        try:
            found = learned(learning, told)
        except (ValueError, torch.linalg.LinAlgError):  # type: ignore[attr-defined]
            continue
        yield from found


def lowered(pool: PooledFlows, seed: int) -> PooledFlows | None:
    """The pool of this power, or of the next lower one whose weights at x_o leave draws enough."""
    for power in sorted((p for p in _LOWER if p <= pool.power), reverse=True):
        tried = replace(pool, power=power)
        log_weights = tried.weighted_at_x_o(_DRAWS_AT_X_O, seed)[:, None]
        for each, most in _MOST_LOST.items():
            if float(lost(log_weights, each)) <= most:
                return replace(tried, each=each)
    return None


@dataclass(frozen=True, eq=False)
class _Judges:
    """Pairs that the first flow was not trained on, and its draws at their x.

    The flow is taken with the trend as it were without each. Draws are the same for every
    likelihood.

    Attributes:
        z: theta of the pairs on the real line, (m, d).
        own: the flow's log density there, less the trend's scale, (m,).
        features: what it sees of their x, (m, k).
        drawn: on the real line, (n m, d), the x taken in turn.
        log_density: as ``own``, there.
        within: which of the draws lie in the region, (n, m).
        kept: the pairs of whose draws enough do, (m,).
    """

    z: Tensor
    own: Tensor
    features: Tensor
    drawn: Tensor
    log_density: Tensor
    within: Tensor
    kept: Tensor

    @classmethod
    def of(
        cls, flows: FlowModel, theta: Tensor, features: Tensor, inside: Inside, seed: int
    ) -> _Judges | None:
        """Those with theta (m, d) and features (m, k), or the first of them; None if too few."""
        features, rest = features[:_MOST_HELD], flows.held[0].left_out[:_MOST_HELD]
        z = flows.support.to_real(theta[:_MOST_HELD])
        drawn, log_density, _ = flows.first(1).drawn_given(_DRAWS, [features], seed)
        drawn += (z - flows.trend.from_rest(rest, features)).repeat(_DRAWS, 1)
        within = inside(flows.support.from_real(drawn)).reshape(_DRAWS, -1)
        kept = within.float().mean(dim=0) >= _LEAST_INSIDE
        if kept.sum() < _LEAST_HELD:
            return None
        own = flows.compiled[0].log_prob(rest, features)
        return cls(z, own, features, drawn, log_density, within, kept)

    def best_gain(self, pool: PooledFlows, x: Tensor) -> _Gain | None:
        """That of the power by which pairs gain most; None where none surely helps.

        The likelihood of the pool has not seen the pairs, whose x are the first of these (n, p).
        """
        pair = pool.one(0)
        seen = [self.features, pool.likelihood.law.seen(x[: len(self.z)], self.features)]
        log_weights = pair.log_weights(self.drawn, self.log_density, seen).reshape(_DRAWS, -1)
        own = pair.log_weights(self.z, self.own, seen)
        # Theta itself among the draws: a narrow likelihood's mean weight would come out too small.
        among = torch.cat([log_weights, own[None]])
        counted = torch.cat([self.within, torch.ones_like(self.within[:1])])

        def score(power: float) -> Tensor:
            """Log density beyond that of the flow where it is not cut, (n,)."""
            log_sum = (power * among).where(counted, -torch.inf).logsumexp(dim=0)
            return (power * own - log_sum)[self.kept].double()

        without = score(0.0)
        gains = [_Gain(power, score(power) - without) for power in _POWERS]
        if max(gain.sure for gain in gains) <= 0.0:
            return None
        return max(gains, key=lambda gain: gain.mean)
