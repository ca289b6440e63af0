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

Each likelihood (:mod:`.ways`) is taken where the same pairs surely gain more by it; an exponential
family, which has the numbers of the normal law, where they gain more at all. If they gain by it, a
closer one (:mod:`.potential`) is tried, too.

One flow is enough: of seventeen fits, on seven models, that had two, none was farther off by more
than .011 of C2ST without the second, and their mean was the same. Of many pairs its steps see more
at once, as those of the answer's flows do: where a law of items had made 1.6 passes over 99,000
lists, C2ST of four SLCP fell from a mean of .531 to .520.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from simulators import Prior
from simulators.random import child_seed

from ...training.loop import TrainingSettings
from ..base import GenerativeModel, Past, Progress
from ..flow import FlowModel
from ..flow_network import FlowSettings
from .learning import Learning, prior_flow
from .likelihood import Likelihood, OfItems
from .matching import lost
from .model import PooledFlows
from .potential import Potential
from .values.natural import Natural
from .ways import Candidate, candidates, closer, region_ways, ways_to_learn

Inside = Callable[[Tensor], Tensor]

_POWERS = (0.25, 0.5, 0.75, 1.0)
_LOWER = (0.0625, 0.125, *_POWERS)
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
    before: GenerativeModel | None = None,
    past: Past | None = None,
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
        before: what gave the last region.
        past: other pairs, which laws that hold wherever theta lies may see.
    """
    encoders, held = flows.encoders, flows.held[0].context
    if encoders is None or held is None or len(held) < _LEAST_HELD:
        return flows
    if for_region:
        tried = region_ways(encoders, x, theta.shape[1], before)
    else:
        tried = ways_to_learn(encoders, x, held.shape[1], theta.shape[1])
    if not tried:
        return flows
    try:
        density = prior_flow(prior, flows.support, settings, training, child_seed(seed, 1))
    except ValueError:  # a flow found no finite loss
        return flows
    training = training.for_rows(len(theta))
    learning = Learning(theta, density, settings, training, seed, past=past)
    rows = learning.held
    judges = _Judges.of(flows, theta[rows], held, inside, child_seed(seed, 2))
    if judges is None:
        return flows
    choice = _Choice(flows, x, x_o, judges, rows, child_seed(seed, 3))
    for candidate in candidates(tried, learning, on_epoch):
        gain = choice.gain_of(candidate)
        if gain is None:
            continue
        law = candidate.likelihood.law
        if choice.takes(candidate, gain) and isinstance(law, OfItems):
            break
        for nearer in candidates(closer(law, x), learning, None):
            choice.takes(nearer, choice.gain_of(nearer))
    return choice.made(learning, again=not for_region)


@dataclass(eq=False)
class _Choice:
    """The best of the likelihoods so far.

    Attributes:
        flows: to be pooled with it.
        x: of the pairs, (n, p).
        x_o: where the answer is read, (p,).
        judges: the pairs held out.
        rows: which these are, (m,).
        seed: of draws at x_o.
    """

    flows: FlowModel
    x: Tensor
    x_o: Tensor
    judges: _Judges
    rows: Tensor
    seed: int
    best: tuple[_Gain, PooledFlows, Candidate] | None = None

    def gain_of(self, candidate: Candidate) -> _Gain | None:
        """What held-out pairs gain by a likelihood; None where no power surely helps."""
        pool = PooledFlows.of(self.flows, candidate.likelihood, self.x_o, 1.0)
        return self.judges.best_gain(pool, self.x[self.rows])

    def takes(self, candidate: Candidate, gain: _Gain | None) -> bool:
        """Whether a likelihood that gains so much is taken in place of the best so far."""
        if gain is None:
            return False
        if self.best is not None:
            other, _, best = self.best
            if not _preferred(candidate.likelihood, gain, other, best.likelihood):
                return False
        pool = PooledFlows.of(self.flows, candidate.likelihood, self.x_o, gain.power)
        found = lowered(pool, self.seed)
        if found is not None:
            self.best = gain, found, candidate
        return found is not None

    def made(self, learning: Learning, *, again: bool) -> FlowModel:
        """The flows pooled with the best, learned ``again`` from all pairs if that is quick."""
        if self.best is None:
            return self.flows
        _, found, candidate = self.best
        whole = candidate.of_all_pairs(learning) if again else None
        if whole is None:
            return found
        surer = PooledFlows.of(self.flows, whole, self.x_o, found.power)
        return lowered(surer, self.seed) or found


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


def _preferred(likelihood: Likelihood, gain: _Gain, other: _Gain, best: Likelihood) -> bool:
    """Whether it replaces the best: where pairs surely gain more, or more if it is as simple.

    The closer form of an exponential family does unless they surely gain less.
    """
    if isinstance(likelihood.law, Potential) and isinstance(best.law, Natural):
        return not other.surely_more(gain)
    as_simple = isinstance(likelihood.law, Natural | Potential)
    return gain.mean > other.mean if as_simple else gain.surely_more(other)


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
