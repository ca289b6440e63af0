"""What the L-C2ST paper says of its curves, which it prints without numbers, and what ours say.

A statement is judged by intervals: it *differs* where they rule it out. An ordering *agrees* where
they are apart that way; that two are alike, or a level is kept, where they leave no more than 0.2
for the contrary. Else it is *open*, and *not measured* where the setting has no such point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from .judges import FLOW, HPD, LOCAL, ORACLE, PAPER_TESTS
from .study import LocalRate, LocalStudy

_LEVEL = 0.05
_MARGIN = 0.2
"""What intervals may leave open where no difference is claimed."""
_PAPER_CAL = 10_000
"""N_cal of the paper's columns 1 and 2."""


class Verdict(NamedTuple):
    """Ours beside a statement."""

    verdict: str
    """agrees, differs, open or not measured."""
    ours: str


_NOT_MEASURED = Verdict("not measured", "")


@dataclass(frozen=True)
class Claim:
    """A statement of the paper on one task."""

    says: str
    where: str
    judge: Callable[[LocalStudy], Verdict]


def controlled(method: str) -> Claim:
    """The type I error is at most the level."""

    def judge(study: LocalStudy) -> Verdict:
        rates = study.type_one(method)
        above = any(rate.interval[0] > _LEVEL for rate in rates)
        close = all(rate.interval[1] <= _LEVEL + _MARGIN for rate in rates)
        verdict = "differs" if above else "agrees" if close else "open"
        return _verdict(verdict, [f"{_at(rate)} {_shown(rate)}" for rate in rates])

    return Claim(f"type I error of {method} is controlled at 0.05", "Figure 2, column 4", judge)


def at_least(method: str, value: float) -> Claim:
    """The power is ``value`` or more for every N_train."""

    def judge(study: LocalStudy) -> Verdict:
        rates = study.over_train(method)
        below = any(rate.interval[1] < value for rate in rates)
        above = all(rate.rate >= value for rate in rates)
        verdict = "differs" if below else "agrees" if above else "open"
        if study.part.num_cals[-1] < _PAPER_CAL:  # fewer pairs, less power
            verdict = "not measured"
        return _verdict(verdict, _by_train(rates))

    says = f"{method} rejects at least {value:.0%} of the time, N_cal = {_PAPER_CAL:,}"
    return Claim(says, "Figure 2, column 2", judge)


def full_power(method: str, num_cal: int, where: str) -> Claim:
    """The power has reached 1 at so many pairs."""

    def judge(study: LocalStudy) -> Verdict:
        rates = [rate for rate in study.over_cal(method) if rate.num_cal == num_cal]
        verdict = "agrees" if any(rate.interval[1] >= 1.0 for rate in rates) else "differs"
        return _verdict(verdict, [_shown(rate) for rate in rates])

    return Claim(f"{method} reaches power 1 at N_cal = {num_cal:,}", where, judge)


def falling_statistic(method: str) -> Claim:
    """The mean statistic falls from the least to the most training pairs."""

    def judge(study: LocalStudy) -> Verdict:
        rates = study.over_train(method)
        if len(rates) < 2:
            return _NOT_MEASURED
        first, last = rates[0], rates[-1]
        reach = 2 * math.hypot(first.statistic_error, last.statistic_error)
        fall = first.statistic - last.statistic
        verdict = "agrees" if fall > reach else "differs" if fall < -reach else "open"
        return _verdict(verdict, [" → ".join(f"{rate.statistic:.2g}" for rate in rates)])

    return Claim(f"the statistic of {method} falls with N_train", "Figure 2, column 1", judge)


def falling_power(method: str) -> Claim:
    """The power falls from the least to the most training pairs."""

    def judge(study: LocalStudy) -> Verdict:
        rates = study.over_train(method)
        if len(rates) < 2:
            return _NOT_MEASURED
        return _verdict(_compared([(rates[0], rates[-1])]), _by_train(rates))

    return Claim(f"the power of {method} falls with N_train", "Figure 2, column 2", judge)


def above(first: str, second: str, curve: str, where: str) -> Claim:
    """One test rejects more often than another, over ``"N_train"`` or ``"N_cal"``."""

    def judge(study: LocalStudy) -> Verdict:
        pairs, shown = _paired(study, first, second, curve)
        return _verdict(_compared(pairs), shown)

    return Claim(f"{first} rejects more often than {second}, over {curve}", where, judge)


def alike(first: str, second: str, where: str) -> Claim:
    """Two tests reject about as often, over N_cal."""

    def judge(study: LocalStudy) -> Verdict:
        pairs, shown = _paired(study, first, second, "N_cal")
        ends = [(*one.interval, *two.interval) for one, two in pairs]
        apart = any(high < lowest or highest < low for low, high, lowest, highest in ends)
        close = all(max(values) - min(values) <= _MARGIN for values in ends)
        return _verdict("differs" if apart else "agrees" if close else "open", shown)

    return Claim(f"{first} and {second} reject about as often, over N_cal", where, judge)


def _paired(
    study: LocalStudy, first: str, second: str, curve: str
) -> tuple[list[tuple[LocalRate, LocalRate]], list[str]]:
    """The two tests where both have been worked, and their rates in words."""
    over = study.over_train if curve == "N_train" else study.over_cal
    others = {_at(rate, curve): rate for rate in over(second)}
    pairs = [(rate, others[_at(rate, curve)]) for rate in over(first) if _at(rate, curve) in others]
    return pairs, [f"{_at(one, curve)} {one.rate:.2f} and {two.rate:.2f}" for one, two in pairs]


def _compared(pairs: list[tuple[LocalRate, LocalRate]]) -> str:
    """Whether the first of the pairs is above: some apart that way, none the other."""
    if any(one.interval[1] < two.interval[0] for one, two in pairs):
        return "differs"
    return "agrees" if any(one.interval[0] > two.interval[1] for one, two in pairs) else "open"


def _verdict(verdict: str, shown: list[str]) -> Verdict:
    return Verdict(verdict, "; ".join(shown)) if shown else _NOT_MEASURED


def _by_train(rates: list[LocalRate]) -> list[str]:
    return [f"{_at(rate, 'N_train')} {_shown(rate)}" for rate in rates]


def _at(rate: LocalRate, curve: str = "N_cal") -> str:
    return f"{curve} {rate.num_train if curve == 'N_train' else rate.num_cal}:"


def _shown(rate: LocalRate) -> str:
    return "{:.2f} [{:.2f}, {:.2f}]".format(rate.rate, *rate.interval)


_TABLE, _TEXT, _SCALE = "Table 2", "Section 4.1", "Appendix F.1"

CLAIMS: dict[str, tuple[Claim, ...]] = {
    "two-moons": (
        *map(controlled, PAPER_TESTS),
        at_least(ORACLE, 0.9),
        *map(falling_statistic, (ORACLE, LOCAL, FLOW)),
        *map(falling_power, (LOCAL, FLOW)),
        above(FLOW, LOCAL, "N_train", "Figure 2, column 2"),
        above(FLOW, LOCAL, "N_cal", "Figure 2, column 3"),
        above(FLOW, ORACLE, "N_cal", _TEXT),
        above(FLOW, HPD, "N_cal", _TEXT),
        alike(ORACLE, HPD, _TEXT),
        full_power(FLOW, 2_000, _TEXT),
        full_power(ORACLE, 5_000, _TEXT),
        full_power(HPD, 5_000, _TEXT),
    ),
    "slcp": (
        *map(controlled, PAPER_TESTS),
        at_least(ORACLE, 0.9),
        *map(falling_statistic, (ORACLE, LOCAL, FLOW)),
        *map(falling_power, (LOCAL, FLOW)),
        above(FLOW, LOCAL, "N_train", "Figure 2, column 2"),
        alike(LOCAL, FLOW, _TEXT),
        above(LOCAL, HPD, "N_cal", _TEXT),
        above(FLOW, HPD, "N_cal", _TEXT),
        full_power(LOCAL, 2_000, _SCALE),
    ),
    "gaussian-mixture": (
        *map(controlled, PAPER_TESTS),
        alike(LOCAL, FLOW, _TABLE),
        alike(LOCAL, HPD, _TABLE),
    ),
    "gaussian-linear-uniform": (
        *map(controlled, PAPER_TESTS),
        above(LOCAL, FLOW, "N_cal", _TABLE),
        alike(LOCAL, HPD, _TABLE),
    ),
    "bernoulli-glm": (
        *map(controlled, PAPER_TESTS),
        above(FLOW, LOCAL, "N_cal", "Appendix F.3"),
        above(LOCAL, HPD, "N_cal", "Appendix F.4"),
        full_power(LOCAL, 5_000, _SCALE),
    ),
    "bernoulli-glm-raw": (
        *map(controlled, PAPER_TESTS),
        above(FLOW, LOCAL, "N_cal", _SCALE),
        above(FLOW, HPD, "N_cal", _SCALE),
    ),
}
"""Label of a part -> the paper's statements on it."""
