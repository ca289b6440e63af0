"""What papers say of curves in words: judged by intervals, at points that have both tests."""

from __future__ import annotations

import pytest

from abi.studies.benchmark.choice import EXPERIMENTS, experiment_of
from abi.studies.benchmark.experiment import Ordering, Part
from abi.studies.benchmark.orderings import judge
from validation import PowerStudy, WholeTest
from validation.laboratory.cells import PowerCell
from validation.perturbations import nptbench


def _result(label: str, rejected: dict[tuple[str, float], int]) -> tuple[Part, PowerStudy]:
    """A part with fifty batches for each of two seeds, of which so many are rejected in each."""
    cells = [
        PowerCell("f", test, strength, 0, seed, 10, 50, "", (0.01,) * k + (0.5,) * (50 - k), 1.0)
        for (test, strength), k in rejected.items()
        for seed in range(2)
    ]
    tests = {test: WholeTest("sbc") for test, _ in rejected}
    part = Part(label, nptbench("covariance"), tests, (0.0, 1.0), 10, 50, 2)
    return part, PowerStudy("f", tuple(cells))


RESULTS = [
    _result("one,flat", {("a", 0.0): 0, ("b", 0.0): 30, ("a", 1.0): 40, ("b", 1.0): 10}),
    _result("two,flat", {("a", 1.0): 20, ("b", 1.0): 20, ("c", 1.0): 50}),
    _result("two,curved", {("a", 1.0): 5, ("c", 1.0): 4}),
]


@pytest.mark.parametrize(
    ("first", "seconds", "parts", "strict", "verdict", "ours"),
    [
        # Above in part one, alike in part two; strength 0 is no power and does not count.
        ("a", ("b",), (), True, "agrees", "above at 1 of 2 points, below at 0"),
        ("b", ("a",), (), True, "differs", "above at 0 of 2 points, below at 1"),
        ("a", ("b", "c"), ("two", "flat"), True, "differs", "above at 0 of 2 points, below at 1"),
        ("a", ("c",), ("curved",), True, "open", "above at 0 of 1 points, below at 0"),
        ("a", ("c",), ("curved",), False, "agrees", "above at 0 of 1 points, below at 0"),
        ("a", ("c",), ("one",), True, "not measured", ""),
        ("d", ("a",), (), True, "not measured", ""),
    ],
)
def test_verdicts_follow_the_intervals_point_by_point(
    first: str, seconds: tuple[str, ...], parts: tuple[str, ...], strict: bool,
    verdict: str, ours: str,
) -> None:  # fmt: skip
    found = judge(Ordering("a is above", "Figure 1", first, seconds, parts, strict), RESULTS)
    assert (found["verdict"], found["ours"]) == (verdict, ours)
    assert len(found["below"]) == (1 if verdict == "differs" else 0)


def test_a_point_that_contradicts_is_told_with_both_rates() -> None:
    found = judge(Ordering("", "", "b", ("a",)), RESULTS)
    assert found["below"] == ["one,flat at 1: b 0.20, a 0.80"]


@pytest.mark.parametrize(
    "name", [name for name in EXPERIMENTS if name not in ("lc2st", "verdict", "tasks")]
)
def test_every_statement_is_on_parts_and_tests_of_its_experiment(name: str) -> None:
    experiment = experiment_of(name)(False)
    for ordering in experiment.orderings:
        parts = [p for p in experiment.parts if all(word in p.label for word in ordering.parts)]
        assert parts, ordering.says
        for test in (ordering.first, *ordering.seconds):
            assert any(test in part.tests for part in parts), (ordering.says, test)
