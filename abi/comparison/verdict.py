"""May these probabilities be trusted? What the check, the intervals and x_o itself allow to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulators.summary import summary
from validation.swaps.words import p_text
from validation.words import listing

from ..verdict.record import RARE, Outcome
from .check import LEAST_PAIRS, NAMES, ModelCheck
from .odds import LogOdds

LARGEST_HALF_WIDTH = 1.0
"""What a pass may leave open of the log Bayes factor of the best model over the next, ..."""
CLEAR = 3.0
"""... unless all of the interval is beyond so much: odds of 20 to 1."""


@dataclass(frozen=True)
class ComparisonVerdict:
    """May the probabilities of the models be trusted? ``print(verdict)`` says so.

    Attributes:
        outcome: "passes", "fails" or "cannot tell".
        headline: the outcome and the reason, in one line.
        check: the tests of the probabilities, on pairs that nothing was trained on.
        x_o_p_values: by model, the p-value of the hypothesis that x_o comes from it; where all are
            small, no model gives data like x_o.
        calls: simulator calls, by model.
        failures: those that gave no usable result, by model.
    """

    outcome: Outcome
    headline: str
    check: ModelCheck
    x_o_p_values: Mapping[str, float] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)

    __repr__ = summary

    @property
    def passes(self) -> bool:
        """Whether the outcome is "passes"."""
        return self.outcome == "passes"

    @property
    def p_value(self) -> float | None:
        """One exact p-value over all tests; None where there were too few pairs."""
        return self.check.p_value

    @property
    def rare(self) -> bool:
        """Whether x_o is unlike the data of every model."""
        return is_rare(self.x_o_p_values)

    @property
    def conditional(self) -> bool:
        """Whether simulations failed: the comparison is given that one succeeds."""
        return any(self.failures.values())

    def __str__(self) -> str:
        each = [f"{p:.2g} ({name})" for name, p in self.x_o_p_values.items()]
        lines = [self.headline, f"  x_o from a model?      p = {', '.join(each)}"]
        if self.check.p_value is not None:
            number = f"{self.check.num_pairs:,} pairs"
            tests = ", ".join(f"{NAMES[name]} {p:.2g}" for name, p in self.check.p_values.items())
            lines += [
                f"  probabilities right?   {p_text(self.check.p_value)} over "
                f"{len(self.check.p_values)} tests, {number}",
                f"    single tests         {tests}",
            ]
        if self.conditional:
            lost = [f"{self.failures[name] / self.calls[name]:.1%} ({name})" for name in self.calls]
            lines.append(f"  simulations failed     {', '.join(lost)}: all is given success")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain values, for JSON."""
        return {
            "outcome": self.outcome,
            "headline": self.headline,
            "p_value": self.check.p_value,
            "p_values": dict(self.check.p_values),
            "num_pairs": self.check.num_pairs,
            "x_o_p_values": dict(self.x_o_p_values),
            "calls": dict(self.calls),
            "failures": dict(self.failures),
        }


def is_rare(p_values: Mapping[str, float]) -> bool:
    """Whether every model's p-value of x_o is small: valid without a correction."""
    return max(p_values.values()) <= RARE


def judged(
    check: ModelCheck,
    names: Sequence[str],
    best: int,
    factors: Sequence[LogOdds],
    x_o_p_values: Mapping[str, float],
) -> tuple[Outcome, str]:
    """The outcome and its line.

    Args:
        check: of the probabilities.
        names: of the models.
        best: the most probable one.
        factors: log Bayes factors of the best over each, that over itself among them.
        x_o_p_values: of x_o, by model.
    """
    rare = is_rare(x_o_p_values)
    unusual = (
        f"cannot tell: x_o is unlike the data of every model "
        f"(p = {max(x_o_p_values.values()):.2g} at most); check its units first"
    )
    if check.p_value is None:
        few = f"{check.num_pairs} check pairs, and {LEAST_PAIRS} are needed; ask for more calls"
        return "cannot tell", unusual if rare else f"cannot tell: {few}"
    if check.rejects:
        return "fails", f"fails: {wrong(check, names)} ({p_text(check.p_value)} over all tests)"
    if rare:
        return "cannot tell", unusual
    others = [number for number in range(len(names)) if number != best]
    told = [f"{factors[k]} over {names[k]}" for k in others]
    words = f"log Bayes factor of {names[best]} {listing(told)}"
    if not all(settled(factors[k]) for k in others):
        return "cannot tell", f"cannot tell: {words}; more calls would narrow it"
    return "passes", f"passes: {p_text(check.p_value)} over {len(check.p_values)} tests; {words}"


def settled(factor: LogOdds) -> bool:
    """Whether an interval leaves little open, or all of it says the same."""
    narrow = factor.high - factor.low <= 2.0 * LARGEST_HALF_WIDTH
    return narrow or factor.low >= CLEAR


def wrong(check: ModelCheck, names: Sequence[str]) -> str:
    """What a rejected check found, by its smallest p-value."""
    worst = min(check.p_values, key=lambda name: check.p_values[name])
    if worst == "sure":
        return f"the probabilities are too {'sure' if check.sureness < 0.0 else 'unsure'}"
    if worst in check.leanings:
        z = check.leanings[worst]
        most = max(range(len(z)), key=lambda number: abs(z[number]))
        often = "more" if z[most] > 0.0 else "less"
        where = " near x_o" if worst == "near x_o" else ""
        return f"the data{where} are {names[most]}'s {often} often than its probability says"
    return f"rejected, most strongly by {NAMES[worst]}"
