"""What a round did: the record users read, and the state the next round starts from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from simulators.summary import summary

from ..generators.base import GenerativeModel
from ..quantiles.kernel import Kernel
from ..training.loop import TrainingLog
from ..verdict.record import Check, Distance
from .regions import Region


@dataclass(frozen=True)
class RoundRecord:
    """One round of Algorithm 2 in numbers.

    Attributes:
        round: 1, 2, ...
        tolerance: eps_t, in the units of the round's MSW distance.
        proposed: theta tried by approximate rejection sampling.
        dropped_fraction: share of them dropped after R calls, the bias of Theorem 2.2.
        pairs: pairs (theta, X) the network was trained on, earlier ones included.
        accepted: pairs within the tolerance, whose theta the generator was fitted to.
        simulator_calls: calls made in this round, retries and failures included.
        failures: calls that gave no usable result.
        encoder: what of x the network saw.
        network: epochs and losses of the quantile network; None for a fixed distance.
        generator: epochs and losses of the generator, a WGAN's energy scores; None for the mixture.
        seconds: wall-clock time.
        x_o_p_value: of the hypothesis that x_o comes from where the pairs' x come from
            (:mod:`abi.rounds.plausibility`); None in fits of an earlier version.
        before: the answer of the round before, judged by this round's fresh pairs; None where
            there is none, or it answers at x_o alone.
        moved: from that answer to this round's, at x_o.
        check_calls: calls for pairs that checked this round's answer, where others followed it.
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
    check_calls: int = 0

    __repr__ = summary

    @property
    def losses(self) -> dict[str, float]:
        """Held-out losses of what was trained, the smaller the better, by the fields' names.

        ``"network"``: the quantile network's Huber loss; ``"generator"``: minus the mean log
        density of a flow, the POTNet's loss or a WGAN's energy score. None of a fixed distance, a
        mixture.
        """
        logs = {"network": self.network, "generator": self.generator}
        return {name: log.validation_loss for name, log in logs.items() if log is not None}

    def to_dict(self) -> dict[str, Any]:
        """Plain values that fit in JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RoundRecord:
        """The inverse of :meth:`to_dict`."""
        logs = {
            name: None if values[name] is None else TrainingLog(**values[name])
            for name in ("network", "generator")
        }
        judged: dict[str, Any] = {}
        if values.get("before") is not None:
            judged["before"] = Check.from_dict(values["before"])
        if values.get("moved") is not None:
            judged["moved"] = Distance(**values["moved"])
        return cls(**{**values, **logs, **judged})


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
        final: whether the model is the answer: the plan is done, or the answer good enough.
        reopened: whether rounds are to follow an answer; its file then holds all the regions.
    """

    kernel: Kernel
    tolerance: float
    model: GenerativeModel
    theta: Tensor
    x: Tensor
    accepted: Tensor
    records: tuple[RoundRecord, ...]
    regions: tuple[Region, ...] = ()
    final: bool = False
    reopened: bool = False
