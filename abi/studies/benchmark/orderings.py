"""What a paper says of its curves in words, which test is above which, judged point by point.

At every part and strength above 0 that has both tests, one is above the other where their intervals
(:func:`interval`) have nothing in common; else the point is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from validation import PowerRate, PowerStudy

from .experiment import Ordering, Part


def interval(rate: PowerRate) -> tuple[float, float]:
    """Clopper-Pearson, widened to the mean ± two standard errors over seeds where that is more."""
    low, high = rate.interval
    if rate.rate is not None and rate.standard_error is not None:
        low = min(low, rate.rate - 2 * rate.standard_error)
        high = max(high, rate.rate + 2 * rate.standard_error)
    return max(low, 0.0), min(high, 1.0)


@dataclass(frozen=True)
class _Point:
    """Two tests at one strength of one part."""

    part: str
    first: PowerRate
    second: PowerRate

    @property
    def gap(self) -> float:
        """From one interval to the other: positive where the first is above, 0 where they meet."""
        low, high = interval(self.first)
        lowest, highest = interval(self.second)
        return max(low - highest, 0.0) - max(lowest - high, 0.0)

    def __str__(self) -> str:
        return (
            f"{self.part} at {self.first.strength:g}: {self.first.method} {self.first.rate:.2f}, "
            f"{self.second.method} {self.second.rate:.2f}"
        )


def judge(ordering: Ordering, results: Iterable[tuple[Part, PowerStudy]]) -> dict[str, Any]:
    """The statement, ours in words, and a verdict.

    *agrees*: nowhere below, and above somewhere where the statement is strict; *differs*: below
    somewhere; *open*: neither; *not measured*: no point has both tests.
    """
    points = [
        point
        for part, study in results
        if all(word in part.label for word in ordering.parts)
        for point in _points(ordering, part, study)
    ]
    above = sum(point.gap > 0 for point in points)
    below = [point for point in points if point.gap < 0]
    if not points:
        verdict, ours = "not measured", ""
    else:
        agrees = above > 0 or not ordering.strict
        verdict = "differs" if below else "agrees" if agrees else "open"
        ours = f"above at {above} of {len(points)} points, below at {len(below)}"
    return {
        "says": ordering.says,
        "where": ordering.where,
        "verdict": verdict,
        "ours": ours,
        "below": [str(point) for point in below],
    }


def _points(ordering: Ordering, part: Part, study: PowerStudy) -> Iterator[_Point]:
    seconds = [name for name in ordering.seconds if name in study.methods]
    if ordering.first not in study.methods:
        return
    for strength in study.strengths:
        for second in seconds if strength > 0 else ():
            pair = study.rate(ordering.first, strength), study.rate(second, strength)
            if all(rate.rate is not None for rate in pair):
                yield _Point(part.label, *pair)
