"""What a round did: the record users read, and the state the next round starts from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from torch import Tensor

from simulators.summary import summary

from ..generators.base import GenerativeModel, Past, both
from ..quantiles.kernel import Kernel
from ..training.loop import TrainingLog
from ..verdict.record import Check, Distance
from .regions.region import AnyRegion, is_pooled


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation of each parameter, d values each."""

    means: tuple[float, ...]
    sds: tuple[float, ...]


@dataclass(frozen=True)
class RoundRecord:
    """What one round of a fit did and cost.

    Attributes:
        round: its number: 1, 2, ...
        tolerance: largest distance to x_o of a pair that was kept, in the units of the MSW distance
            that the round learned.
        proposed: theta that were drawn as candidates.
        dropped_fraction: share of the candidates given up after ``max_retries`` calls each, with
            ``proposal="generator"``: the bias of Theorem 2.2.
        pairs: pairs (theta, x) that the quantile network was trained on, earlier ones included.
        accepted: pairs within the tolerance, on which the generative model was trained.
        simulator_calls: simulator calls of this round, retries and failures included.
        failures: calls that gave no usable result.
        encoder: what the networks saw of x.
        network: epochs and losses of the quantile network; None where the distance was given.
        generator: epochs and losses of the generative model; None for the mixture.
        seconds: time it took, by the clock.
        x_o_p_value: p-value of the hypothesis that x_o comes from where the pairs' x come from
            (:mod:`abi.rounds.plausibility`); None in fits of an earlier version.
        before: a test of the last round's answer on this round's new pairs; None in the first
            round, and where answers hold at x_o alone.
        moved: how far the answer at x_o moved from the last round to this one.
        answer: mean and sd of this round's answer at x_o; None in fits of an earlier
            version, and of every x.
        check_calls: simulator calls of the verdict on this round's answer, where rounds were added
            after it.
        narrowed: share of the pairs that lie in the region which this round found; None where it
            made none. Near 1 where the region replaces one that the answer leans on.
        filled: whether it made none because its answer, from enough pairs, fills where their theta
            come from.
    """

    round: int
    tolerance: float
    proposed: int
    dropped_fraction: float
    pairs: int
    accepted: int
    simulator_calls: int
    failures: int
    encoder: str | None
    network: TrainingLog | None
    generator: TrainingLog | None
    seconds: float
    x_o_p_value: float | None = None
    before: Check | None = None
    moved: Distance | None = None
    answer: Moments | None = None
    check_calls: int = 0
    narrowed: float | None = None
    filled: bool = False

    __repr__ = summary

    @property
    def selected(self) -> bool:
        """Whether the tolerance left something out: pairs, or simulations that were tried again."""
        return self.accepted < self.pairs or self.simulator_calls > self.proposed

    @property
    def losses(self) -> dict[str, float]:
        """Losses on held-out pairs, ``{"network": ..., "generator": ...}``; smaller is better.

        Of the quantile network it is the Huber loss; of a flow minus the mean log density; of
        POTNet its own loss; of a WGAN the energy score. What was not trained is left out.
        """
        logs = {"network": self.network, "generator": self.generator}
        return {name: log.validation_loss for name, log in logs.items() if log is not None}

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RoundRecord:
        """A record from what :meth:`to_dict` gave."""
        logs = {
            name: None if values[name] is None else TrainingLog(**values[name])
            for name in ("network", "generator")
        }
        judged: dict[str, Any] = {}
        if values.get("before") is not None:
            judged["before"] = Check.from_dict(values["before"])
        if values.get("moved") is not None:
            judged["moved"] = Distance(**values["moved"])
        if values.get("answer") is not None:
            judged["answer"] = Moments(**{k: tuple(v) for k, v in values["answer"].items()})
        return cls(**{**values, **logs, **judged})


class Pool(NamedTuple):
    """The pairs of a round, theta (n, d) and x (n, p), and earlier ones that are not among them."""

    theta: Tensor
    x: Tensor
    past: Past | None


@dataclass(frozen=True, eq=False)
class RoundState:
    """Where the algorithm stands after a round.

    Attributes:
        kernel: distance to the posterior at x_o.
        tolerance: eps_t.
        model: the generative model: the next proposal, or the answer after the last round.
        theta: parameters of the pairs of this round, (n, d).
        x: their simulations, (n, p).
        accepted: theta the model was fitted to, (k, d), moved to x_o after the last round.
        records: one a round so far.
        regions: where the posterior lies, at most one a round where proposals are truncated.
        left: regions that these pairs lie in, and theta of the next round need not.
        final: whether the model is the answer: the plan is done, or the answer good enough.
        reopened: whether rounds are to follow an answer.
        past: theta and x of earlier rounds' pairs that are none of these; None where there are
            none, and in files of an earlier version.
    """

    kernel: Kernel
    tolerance: float
    model: GenerativeModel
    theta: Tensor
    x: Tensor
    accepted: Tensor
    records: tuple[RoundRecord, ...]
    regions: tuple[AnyRegion, ...] = ()
    left: tuple[AnyRegion, ...] = ()
    final: bool = False
    reopened: bool = False
    past: Past | None = None

    def joined(self, used: Tensor, theta: Tensor, x: Tensor) -> Pool:
        """The pairs of this round that are ``used``, (n,), and new ones, if there are any."""
        kept, past = (self.theta[used], self.x[used]), (self.theta[~used], self.x[~used])
        past = past if self.past is None else both(self.past, past)
        return Pool(*(both(kept, (theta, x)) if len(x) else kept), past)

    @property
    def whole(self) -> bool:
        """Whether its file holds all regions, for they are not those before and one of its own."""
        pooled = bool(self.regions) and is_pooled(self.regions[-1])
        return self.reopened or bool(self.left) or pooled

    @property
    def worked(self) -> float:
        """Share of the theta proposed so far that were simulated without failure, above 0."""
        proposed = sum(record.proposed for record in self.records)
        return 1.0 - sum(record.failures for record in self.records) / max(1, proposed)
