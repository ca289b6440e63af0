"""From candidates to a check, from a check to a verdict, and what of it is written down."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, replace

import pytest
import torch
from candidates import NAMES, gaussian

from abi.verdict.judge import LEAST_PAIRS, judge, untold, verdict_of
from abi.verdict.record import ALPHA, Check, Distance, RoundCheck, Verdict
from simulators.random import torch_generator
from validation.swaps.deviations import Deviation

SEEN: Mapping[str, float] = {"prior": 0.002, "wide": 0.002}
"""Controls that are rejected, as they must be."""


def deviation(
    name: str = "mu",
    *,
    bias: tuple[float, float] = (-0.1, 0.1),
    ratio: tuple[float, float] = (0.9, 1.1),
) -> Deviation:
    """A deviation with these ends of its intervals."""
    return Deviation(
        name=name,
        bias=sum(bias) / 2,
        bias_low=bias[0],
        bias_high=bias[1],
        sd_ratio=(ratio[0] * ratio[1]) ** 0.5,
        sd_ratio_low=ratio[0],
        sd_ratio_high=ratio[1],
    )


def check(
    p_value: float | None = 0.5,
    *parts: Deviation,
    controls: Mapping[str, float] = SEEN,
    num_pairs: int = 200,
) -> Check:
    """A check of ``num_pairs`` pairs, of one parameter that is right where none are given."""
    p_values = {} if p_value is None else {"sbc": p_value, "lc2st": min(1.0, 2 * p_value)}
    return Check(num_pairs, 3, p_value, p_values, parts or (deviation(),), controls)


def told(some: Check, x_o_p_value: float | None = 0.4) -> Verdict:
    """The verdict on a check."""
    return verdict_of(some, x_o_p_value=x_o_p_value, num_calls=210, failures=7, seed=5)


@pytest.fixture(scope="module")
def whole() -> Verdict:
    """A verdict with every part, of a posterior half an sd too high in one parameter."""
    members = 0.1 * torch.randn(3, 3, 2, generator=torch_generator(0))
    last = judge(gaussian(200, 0, bias=(0.5, 0.0, 0.0)), NAMES, members, 1, left_out=4)
    first = judge(gaussian(60, 1, wide=1.3), NAMES, None, 2, controls=False)
    return verdict_of(
        last,
        x_o_p_value=0.3,
        num_calls=210,
        failures=6,
        rounds=(RoundCheck(1, 400, first), RoundCheck(2, 1_000, first)),
        moved=Distance(0.3, 0.05),
        marginals=Distance(0.06, 0.05),
        seed=9,
    )


def test_an_exact_posterior_with_enough_pairs_passes() -> None:
    """One in twenty is rejected at the level, and a few leave too much open."""
    verdicts = [told(judge(gaussian(300, seed), NAMES, None, seed)) for seed in range(5)]
    assert sum(verdict.passes for verdict in verdicts) >= 3
    for verdict in verdicts:
        assert verdict.check.controls["prior"] <= ALPHA
        assert verdict.check.controls["wide"] <= ALPHA


def test_fewer_than_twenty_pairs_judge_nothing() -> None:
    some = judge(gaussian(LEAST_PAIRS - 1, 0), NAMES, None, 0, left_out=2)
    assert LEAST_PAIRS == 20
    assert (some.num_pairs, some.left_out) == (19, 2)
    assert some.p_value is None
    assert not some.rejects
    assert (some.p_values, some.deviations, some.controls) == ({}, (), {})
    verdict = told(some)
    assert verdict.outcome == "cannot tell"
    assert "only 19 check pairs can be used, and 20 are needed" in verdict.headline
    assert judge(gaussian(20, 0), NAMES, None, 0).p_value is not None


def test_no_pairs_at_all_judge_nothing() -> None:
    assert judge(gaussian(20, 0).rows(torch.zeros(0).long()), NAMES, None, 0).num_pairs == 0


@pytest.mark.parametrize(
    ("some", "x_o_p_value", "outcome"),
    [
        (check(0.5), 0.4, "passes"),
        (check(0.5), None, "passes"),
        (check(0.051), 0.011, "passes"),
        (check(0.05), 0.4, "fails"),
        (check(0.002), 0.001, "fails"),
        (check(0.5), 0.01, "cannot tell"),
        (check(0.5, controls=SEEN | {"wide": 0.06}), 0.4, "cannot tell"),
        (check(0.5, controls=SEEN | {"prior": 0.3}), 0.4, "cannot tell"),
        (check(0.5, deviation(bias=(-0.9, 0.2))), 0.4, "cannot tell"),
        (check(0.5, deviation(ratio=(0.5, 1.1))), 0.4, "cannot tell"),
        (check(0.5, deviation(), deviation("nu", ratio=(0.9, 1.9))), 0.4, "cannot tell"),
        (check(None), 0.4, "cannot tell"),
        (check(None), 0.002, "cannot tell"),
    ],
)
def test_the_outcome_follows_from_the_check(
    some: Check, x_o_p_value: float | None, outcome: str
) -> None:
    verdict = told(some, x_o_p_value)
    assert verdict.outcome == outcome
    assert verdict.passes == (outcome == "passes")
    assert verdict.headline.startswith(f"{outcome}: ")
    assert "\n" not in verdict.headline
    assert (verdict.num_calls, verdict.failures, verdict.seed) == (210, 7, 5)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (deviation(ratio=(0.6, 0.8)), "mu is too narrow by 20 to 40%"),
        (deviation(ratio=(1.25, 1.5)), "mu is too wide by 25 to 50%"),
        (deviation(bias=(0.2, 0.6)), "mu lies too high by 0.2 to 0.6 sds"),
        (deviation(bias=(-0.6, -0.2)), "mu lies too low by 0.2 to 0.6 sds"),
    ],
)
def test_the_headline_of_a_failure_says_what_is_wrong(part: Deviation, words: str) -> None:
    right = deviation("nu")
    assert told(check(0.01, right, part)).headline == f"fails: {words}"


def test_the_headline_names_the_parameter_that_is_furthest_off() -> None:
    parts = deviation("a", ratio=(0.8, 0.9)), deviation("b", ratio=(0.3, 0.5)), deviation("c")
    assert told(check(0.01, *parts)).headline.startswith("fails: b is too narrow")


def test_a_failure_that_no_parameter_shows_names_the_test_that_saw_it() -> None:
    headline = told(check(0.01)).headline
    assert headline.startswith("fails: rejected, most strongly by SBC (p =")
    # The intervals reassure nobody: they are of data like x_o.
    assert headline.endswith(
        "; the intervals do not show in which way: on average over data like x_o a mean may be "
        "off by up to 0.10 sd, and at x_o itself by more"
    )


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"wide": 1.6}, "is too wide by"),
        ({"wide": 1 / 1.6}, "is too narrow by"),
        ({"bias": 0.8}, "lies too high by"),
        ({"bias": -0.8}, "lies too low by"),
    ],
    ids=str,
)
def test_a_wrong_posterior_fails_in_the_words_for_what_is_wrong(
    wrong: dict[str, float], words: str
) -> None:
    verdict = told(judge(gaussian(250, 3, **wrong), NAMES, None, 0, controls=False))
    assert verdict.outcome == "fails"
    assert words in verdict.headline
    assert verdict.headline.split()[1] in NAMES


def test_a_verdict_that_cannot_tell_says_what_would_go_unseen_and_what_more_would_show() -> None:
    headline = told(check(0.5, deviation(bias=(-0.8, 0.8)), num_pairs=70)).headline
    assert "with 70 check pairs a bias below 0.8 sd would go unseen" in headline
    # 600 calls more than 210 narrow the interval by the root of 210 / 810.
    assert headline.endswith("posterior.check(600) would show one of 0.41")


@pytest.mark.parametrize(
    ("some", "words"),
    [
        (check(controls=SEEN | {"wide": 0.3}), "even the posterior 1.5 times too wide would go"),
        (check(controls=SEEN | {"prior": 0.9}), "even the prior within the region would go unseen"),
        (
            check(controls={"prior": 0.9, "wide": 0.3}),
            "even the prior within the region and the posterior 1.5 times too wide would go unseen",
        ),
        (check(0.5, deviation(bias=(0.2, 0.6))), "mu is left open: its mean may be off by 0.6 sd"),
        (
            check(0.5, deviation(bias=(-0.4, 0.4), ratio=(0.6, 1.1))),
            "mu is left open: its sd may be 0.6 to 1.1 times the true one",
        ),
    ],
)
def test_a_verdict_that_cannot_tell_gives_the_reason_that_keeps_it_from_passing(
    some: Check, words: str
) -> None:
    """A bias limit that a verdict may pass with is none."""
    headline = told(some).headline
    assert headline.startswith("cannot tell: with 200 check pairs ")
    assert words in headline
    assert headline.endswith("; posterior.check(600) makes more")


def test_the_prior_is_that_of_all_x_where_all_x_are_asked_about() -> None:
    missed = check(controls=SEEN | {"prior": 0.9})
    verdict = verdict_of(missed, x_o_p_value=None, num_calls=9, failures=0, everywhere=True)
    assert "even the prior in its place would go unseen" in verdict.headline
    assert "the prior in its place p = 0.9" in str(verdict)
    assert "the prior within the region p = 0.9" in str(told(missed))


def test_a_verdict_without_pairs_gives_its_reason() -> None:
    verdict = untold("the moon was full", 0.2)
    assert verdict.outcome == "cannot tell"
    assert verdict.headline == "cannot tell: the moon was full"
    assert (verdict.p_value, verdict.x_o_p_value, verdict.check.num_pairs) == (None, 0.2, 0)


def test_a_verdict_comes_back_from_json_as_it_was(whole: Verdict) -> None:
    for verdict in (whole, told(check(None)), untold("why"), told(check(0.5), None)):
        assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict()))) == verdict
    values = json.loads(json.dumps(whole.to_dict()))
    assert Check.from_dict(values["check"]) == whole.check
    assert Check.from_dict(values["rounds"][1]["check"]) == whole.rounds[1].check


def test_the_log_density_is_no_parameter(whole: Verdict) -> None:
    assert len(whole.check.deviations) == 4
    assert [part.name for part in whole.check.parameters] == list(NAMES)


def test_a_verdict_is_read_in_about_ten_lines(whole: Verdict) -> None:
    lines = str(whole).splitlines()
    assert 5 <= len(lines) <= 16
    assert lines[0] == whole.headline
    many = tuple(deviation(f"parameter number {j}", bias=(-0.1, 0.1 + j)) for j in range(30))
    long = str(replace(whole, check=replace(whole.check, deviations=many)))
    assert len(long.splitlines()) <= 16
    assert "parameter number 29"[:20] in long  # the furthest off is among those shown
    assert "and 26 smaller, in verdict.check.deviations" in long
    assert "smaller" not in str(whole)
    assert "p = 0.4" in str(told(check(0.5)))
    assert str(told(check(None))).splitlines()[0] == told(check(None)).headline


def test_a_rare_x_o_is_named_as_such_in_print() -> None:
    assert "rare data" not in str(told(check(0.5), 0.4))
    assert "rare data, wrong units, or a wrong model" in str(told(check(0.5), 0.003))


def test_an_answer_at_the_edge_of_what_was_simulated_does_not_pass() -> None:
    def leaning(some: Check, x_o_p_value: float = 0.4) -> Verdict:
        return verdict_of(some, x_o_p_value=x_o_p_value, num_calls=210, failures=0, edge=0.034)

    verdict = leaning(check(0.5))
    assert told(check(0.5)).passes
    assert verdict.outcome == "cannot tell"
    assert "3.4% of the answer lies at the edge of what was simulated" in verdict.headline
    assert "simulated all around?  3.4% of the answer" in str(verdict)
    assert Verdict.from_dict(json.loads(json.dumps(verdict.to_dict()))).edge == 0.034
    assert leaning(check(0.001)).outcome == "fails"
    assert "unusual data" in leaning(check(0.5), 0.003).headline


def test_a_verdict_cannot_be_edited(whole: Verdict) -> None:
    with pytest.raises(FrozenInstanceError):
        whole.outcome = "passes"  # type: ignore[misc]


def test_the_same_seed_gives_the_same_check() -> None:
    some = gaussian(60, 2)
    assert judge(some, NAMES, None, 4) == judge(some, NAMES, None, 4)
    assert judge(some, NAMES, None, 4).p_values != judge(some, NAMES, None, 5).p_values


def test_the_expected_c2st_is_a_half_where_nothing_is_off_and_grows_with_what_is() -> None:
    right, wide, high = (
        judge(gaussian(300, 1, **wrong), NAMES, None, 0, controls=False).expected_c2st or 0.0
        for wrong in ({}, {"wide": 1.5}, {"bias": 1.0})
    )
    assert 0.5 <= right < 0.6
    assert right + 0.1 < wide < 1.0
    assert right + 0.1 < high < 1.0


def test_rounds_apart_are_told_from_chance() -> None:
    assert Distance(0.5, 0.05).apart
    assert not Distance(0.14, 0.06).apart  # less than a tenth of an sd above chance
    assert not Distance(0.5, 0.3).apart
