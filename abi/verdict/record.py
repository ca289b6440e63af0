"""The verdict as it is kept: what was asked of the answer, and what came out, in JSON's types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from simulators.summary import summary
from validation.controls import CONTROLS
from validation.swaps.deviations import LOG_DENSITY, Deviation
from validation.swaps.words import TESTS, p_text

ALPHA = 0.05
"""Level of the panel."""
RARE = 0.01
"""An x_o with a smaller p-value is unusual data of its model."""
_SHOWN = 4  # deviations

Outcome = Literal["passes", "fails", "cannot tell"]


@dataclass(frozen=True)
class Check:
    """Tests of one answer, on pairs that it was not trained on.

    Attributes:
        num_pairs: pairs that the tests used.
        left_out: pairs with an x at which the fit cannot answer.
        p_value: one p-value over all tests; None where there were too few pairs.
        p_values: each test's own, by its name.
        deviations: how far each parameter may be off at x_o.
        controls: p-values of the same tests for two answers that are wrong on purpose: "prior" and
            "wide".
        expected_c2st: accuracy that a classifier of the answer against the true posterior at x_o
            would reach, estimated from the deviations; 0.5 is perfect.
    """

    num_pairs: int
    left_out: int = 0
    p_value: float | None = None
    p_values: Mapping[str, float] = field(default_factory=dict)
    deviations: tuple[Deviation, ...] = ()
    controls: Mapping[str, float] = field(default_factory=dict)
    expected_c2st: float | None = None

    __repr__ = summary

    @property
    def parameters(self) -> tuple[Deviation, ...]:
        """The deviations of the parameters, without that of the log density."""
        return tuple(part for part in self.deviations if part.name != LOG_DENSITY)

    @property
    def largest_bias(self) -> float | None:
        """The largest bias of a mean, in posterior sds, that the intervals leave open."""
        return max((part.largest_bias for part in self.parameters), default=None)

    @property
    def rejects(self) -> bool:
        """Whether the tests reject the answer, at level .05 over all of them."""
        return self.p_value is not None and self.p_value <= ALPHA

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Check:
        """The inverse of ``dataclasses.asdict``, also after a trip through JSON."""
        parts = tuple(Deviation(**part) for part in values["deviations"])
        return cls(**{**values, "deviations": parts})


@dataclass(frozen=True)
class Distance:
    """A distance between two posteriors in posterior sds, and what chance alone gives."""

    value: float
    by_chance: float

    @property
    def apart(self) -> bool:
        """Whether it is clearly more than chance: twice as much, and a tenth of an sd more."""
        return self.value > max(2.0 * self.by_chance, self.by_chance + 0.1)

    def __str__(self) -> str:
        return f"{self.value:.2f} sds (by chance {self.by_chance:.2f})"


@dataclass(frozen=True)
class RoundCheck:
    """The answer of a round, judged by the fresh pairs of the next, which it has not seen.

    Attributes:
        round: 1, 2, ...
        calls: of the simulator up to it.
        check: what the pairs say.
    """

    round: int
    calls: int
    check: Check


def control_words(name: str, everywhere: bool) -> str:
    """What an answer that is wrong on purpose is.

    Pairs that check a fit at x_o come from the prior cut to the region of its answer; theta of
    other pairs are draws of that.

    Args:
        name: "prior" or "wide".
        everywhere: whether the pairs are of all x of the model.
    """
    if name == "prior":
        return "the prior in its place" if everywhere else "the prior within the region"
    return CONTROLS.get(name, name)


def edge_words(share: float) -> str:
    """What :attr:`Verdict.edge` says."""
    return f"{share:.1%} of the answer lies at the edge of what was simulated"


@dataclass(frozen=True)
class Verdict:
    """May this answer be trusted? ``print(verdict)`` says so in about ten lines.

    Attributes:
        outcome: "passes", "fails" or "cannot tell".
        headline: the outcome and the reason, in one line.
        check: the tests of the answer, on pairs that it was not trained on.
        x_o_p_value: p-value of the hypothesis that x_o comes from the model, with theta near the
            answer; a small one says that the model hardly ever gives data like x_o.
        num_calls: simulator calls spent on the pairs.
        failures: calls that gave no usable result.
        rounds: tests of the answers of earlier rounds; they cost no extra calls.
        moved: how far the last round moved the answer at x_o.
        marginals: how far the answer is at x_o from the marginals that the quantile network
            predicts there.
        edge: share of the answer that lies at the edge of where theta was simulated, or beyond it,
            where it is more than a hundredth; the posterior may go on there, and no check sees it.
        seed: of the tests.
        everywhere: whether the tests are over all x of the model, because there is no x_o.
    """

    outcome: Outcome
    headline: str
    check: Check
    x_o_p_value: float | None = None
    num_calls: int = 0
    failures: int = 0
    rounds: tuple[RoundCheck, ...] = ()
    moved: Distance | None = None
    marginals: Distance | None = None
    edge: float | None = None
    seed: int = 0
    everywhere: bool = False

    __repr__ = summary

    @property
    def p_value(self) -> float | None:
        """One exact p-value over all tests; None where too few pairs were made."""
        return self.check.p_value

    @property
    def bias_by_calls(self) -> tuple[tuple[int, float], ...]:
        """(simulator calls, largest bias in posterior sds) of each earlier round's answer."""
        return tuple(
            (part.calls, max(abs(one.bias) for one in part.check.parameters))
            for part in self.rounds
            if part.check.parameters
        )

    @property
    def more_calls(self) -> str | None:
        """What more calls for the fit would likely bring; None where no round judged another.

        They help while the last round still moved the answer beyond chance, an error shows, or the
        answer leans on the edge of what was simulated.
        """
        parts, curve = self.check.parameters, self.bias_by_calls
        if self.moved is None or not parts or not curve:
            return None
        so_far = ", ".join(f"{bias:.2f} after {calls:,}" for calls, bias in curve)
        now = max(abs(part.bias) for part in parts)
        told = f"the largest bias was {so_far} and is {now:.2f} sd"
        why = None
        if self.moved.apart:
            why = "the last round still moved the answer"
        elif any(part.wrong for part in parts):
            why = "an error shows"
        elif self.edge is not None:
            why = edge_words(self.edge)
        if why is not None:
            return f"more calls would likely bring it nearer: {why}; {told}"
        return f"more calls would likely bring little: the last round moved nothing; {told}"

    @property
    def passes(self) -> bool:
        """Whether the outcome is "passes"."""
        return self.outcome == "passes"

    def __str__(self) -> str:
        lines = [self.headline]
        if self.x_o_p_value is not None:
            rare = "" if self.x_o_p_value > RARE else ": rare data, wrong units, or a wrong model"
            lines.append(f"  x_o from this model?   {p_text(self.x_o_p_value)}{rare}")
        if self.check.p_value is not None:
            lines += self._of_the_check(self.check.p_value)
        if self.moved is not None:
            lines.append(
                f"  did the rounds settle? the last moved it by {self.moved}{self._by_calls()}"
            )
        if self.marginals is not None:
            lines.append(f"    quantile network     {self.marginals} from the answer")
        if self.edge is not None:
            lines.append(f"  simulated all around?  {edge_words(self.edge)}")
        return "\n".join(lines)

    def _of_the_check(self, p_value: float) -> list[str]:
        check, where = self.check, "at x_o" if not self.everywhere else "on average"
        asked = "right at every x?   " if self.everywhere else "right around x_o?   "
        lines = [
            f"  {asked}   {p_text(p_value)} over {len(check.p_values)} tests, "
            f"{check.num_pairs} pairs"
        ]
        each = [f"{TESTS.get(name, name)} {p:.2g}" for name, p in check.p_values.items()]
        lines.append(f"    single tests         {', '.join(each)}")
        controls = [
            f"{control_words(name, self.everywhere)} {p_text(p)}"
            for name, p in check.controls.items()
        ]
        if controls:
            lines.append(f"    must be rejected     {', '.join(controls)}")
        c2st = check.expected_c2st
        about = "" if c2st is None else f"; C2ST about {c2st:.2f}"
        off = f"how far off {where}?"
        lines.append(f"  {off:<22} bias in sds, sd over the true sd, 95% intervals{about}")
        shown = sorted(check.deviations, key=lambda part: part.size, reverse=True)[:_SHOWN]
        lines += [f"    {part}" for part in shown]
        if (smaller := len(check.deviations) - len(shown)) > 0:
            lines.append(f"    and {smaller} smaller, in verdict.check.deviations")
        return lines

    def _by_calls(self) -> str:
        shown = [f"{bias:.2f} after {calls:,} calls" for calls, bias in self.bias_by_calls]
        return f"; largest bias {', '.join(shown)}" if shown else ""

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Verdict:
        """The inverse of :meth:`to_dict`, also after a trip through JSON."""
        rounds = tuple(
            RoundCheck(part["round"], part["calls"], Check.from_dict(part["check"]))
            for part in values["rounds"]
        )
        distances = {
            name: None if values[name] is None else Distance(**values[name])
            for name in ("moved", "marginals")
        }
        check = Check.from_dict(values["check"])
        return cls(**{**values, **distances, "rounds": rounds, "check": check})
