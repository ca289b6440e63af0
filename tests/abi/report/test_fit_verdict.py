"""A page of a fit is as green as its own check, its x_o and its validations together allow."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from one_look import exact
from pages import Outline, check_of, checked, judged, page_for, stub

import abi
from abi.plan import Plan
from abi.report.assemble import page_of
from abi.report.fit_page import Fit, first_screen, prepare
from abi.report.fit_verdict import fit_verdict
from abi.report.observation import x_o_notice
from abi.report.page_verdict import page_verdict
from abi.report.sections.by_calls import calls_blocks
from abi.report.sections.replay import replay_section
from abi.report.sections.rounds import rounds_section
from abi.report.sections.verdict import deviation_figure, verdict_section
from abi.report.sources import FitRecord
from abi.report.validated import belonging, identity_of
from abi.verdict.record import Check
from simulators.random import isolated_rng
from validation.page import Page, Table, render
from validation.report import report_data

pytest.importorskip("matplotlib")
PASSES, FAILS = check_of(2), check_of(2, 0.001, 0.9)
CANNOT_TELL = check_of(2, seen=False)


@pytest.fixture(scope="module")
def good() -> dict[str, Any]:
    """The validation of an exact posterior, by tests that see what is wrong."""
    with isolated_rng(1):
        return report_data(checked(exact, ["score_rank", "hpd", "sbc"], 200, controls=True))


def fit_of(record: FitRecord) -> Fit:
    return prepare(record, 0, 0, "fit1")


def tables(blocks: Sequence[Any]) -> list[Table]:
    return [block for block in blocks if block.kind == "table"]


@pytest.mark.parametrize(
    ("check", "tone", "start"),
    [
        (PASSES, "not-rejected", "Passes: p = 0.4 over 3 tests"),
        (FAILS, "rejected", "Fails: theta_2 lies too high by 0.7 to 1.1 sds"),
        (CANNOT_TELL, "untested", "Cannot tell: with 300 check pairs"),
        (Check(7), "untested", "Cannot tell: only 7 check pairs can be used"),
    ],
)
def test_the_tone_is_that_of_the_fits_own_verdict(check: Check, tone: str, start: str) -> None:
    record = judged(stub(2), check)
    verdict = fit_verdict(fit_of(record))
    assert verdict.tone == tone
    assert verdict.headline.startswith(start)
    page = page_for(record)
    assert f'class="verdict {tone}"' in page
    assert start in Outline(page).text


def test_the_words_say_what_a_verdict_rests_on() -> None:
    verdict = fit_verdict(fit_of(judged(stub(2), PASSES)))
    assert "3 tests compare the answer with 300 simulations near x_o" in verdict.words
    assert "together they give p = 0.4" in verdict.words
    assert "The same tests reject the prior within the region (p = 0.002)" in verdict.words
    lines = " ".join(verdict.rests_on)
    assert "x_o is not unusual among the simulations near the answer (p = 0.5)" in lines
    assert "moved the answer by 0.30 sd; two exact samples differ by 0.05" in lines
    words = fit_verdict(fit_of(judged(stub(2), CANNOT_TELL))).words
    assert "fail to reject the posterior 1.5 times too wide (p = 0.3)" in words
    assert "as they should" not in words


def test_an_implausible_observation_is_never_green(good: dict[str, Any]) -> None:
    record = judged(stub(2), PASSES, x_o_p_value=0.003)
    own = {**good, "of": identity_of(record.posterior)}
    assert page_verdict([fit_of(record)], []).tone == "untested"
    assert page_verdict([fit_of(record)], [("own", own)]).tone == "untested"
    # Whatever the saved verdict says: its own words are not believed against the p-value.
    posterior = record.posterior
    passed = replace(posterior.verdict, outcome="passes", headline="passes: all is well")
    record = replace(record, posterior=replace(posterior, verdict=passed))
    verdict = fit_verdict(fit_of(record))
    assert verdict.tone == "untested"
    assert verdict.headline == "Cannot tell: x_o is unusual data of this model (p = 0.003)"
    assert not any("x_o is" in line for line in verdict.rests_on)  # it is said above


@pytest.mark.parametrize(("check", "num_rounds"), [(PASSES, 2), (FAILS, 2), (FAILS, 1)])
def test_the_warning_about_x_o_stands_first_whatever_the_verdict(
    check: Check, num_rounds: int
) -> None:
    record = judged(stub(2), check, x_o_p_value=0.003)
    posterior = replace(record.posterior, rounds=record.posterior.rounds[-num_rounds:])
    record = replace(record, posterior=posterior)
    notice = x_o_notice(fit_of(record))
    assert notice is not None
    among = "near the answer" if num_rounds == 2 else "from the prior"
    assert notice.headline == f"x_o is unusual among the simulations {among}"
    assert "of a correct model at most one observation in 333 does" in notice.words
    page = page_of([fit_of(record)], [], None, ())
    assert page.notices == (notice,)
    html = render(replace(page, sections=()))
    assert html.index('class="notice"') < html.index('id="verdict"')
    assert x_o_notice(fit_of(judged(stub(2), check, x_o_p_value=0.02))) is None


def test_a_warning_names_its_fit_where_there_are_several() -> None:
    rare = replace(judged(stub(2), PASSES, x_o_p_value=0.003), name="rare")
    fits = [fit_of(judged(stub(2), PASSES)), fit_of(rare)]
    (notice,) = page_of(fits, [], None, ()).notices
    assert notice.headline.startswith("rare: x_o is unusual")


def test_the_verdict_is_told_by_words_and_shape_as_well_as_by_colour() -> None:
    shapes = set()
    for check, word in ((PASSES, "Passes"), (FAILS, "Fails"), (CANNOT_TELL, "Cannot tell")):
        said = fit_verdict(fit_of(judged(stub(2), check)))
        html = render(Page("", "", said, (), (), ""))
        verdict = html[html.index('id="verdict"') :].split("</section>")[0]
        assert f'<span class="outcome">{word}:</span>' in verdict
        shapes.add(re.findall(r'<svg class="icon".*?</svg>', verdict)[0])
    assert len(shapes) == 3


def test_tests_stand_before_rounds(good: dict[str, Any]) -> None:
    record = judged(stub(2), PASSES)
    own = {**good, "of": identity_of(record.posterior)}
    keys = [part.key for part in page_of([fit_of(record)], [("v", own)], None, ()).sections]
    assert keys == [
        *("fit1-posterior", "fit1-verdict", "fit1-predictive", "tests", "fit1-rounds"),
        *("fit1-repeat", "repeat-tests"),
    ]


def test_rounds_print_what_was_at_work_in_them() -> None:
    """No tolerance where all pairs were kept, nothing given up where no theta was."""
    record = stub(2)  # keeps half of its pairs

    def changed(**values: Any) -> list[str]:
        rounds = tuple(replace(r, **values) for r in record.posterior.rounds)
        posterior = replace(record.posterior, rounds=rounds)
        section = rounds_section(replace(record, posterior=posterior), "fit1")
        titles = [f.title for b in section.blocks if b.kind == "figures" for f in b.figures]
        texts = [block.text for block in section.blocks if block.kind == "text"]
        return [*tables(section.blocks)[0].columns, *titles, *texts]

    plain = ["round", "simulator calls", "pairs to train on", "seconds"]
    assert changed(accepted=100) == plain
    selected = changed()
    assert [name for name in selected if name not in plain][:4] == [
        *("tolerance", "pairs kept", "Tolerance", "Share of pairs kept"),
    ]
    lost = changed(accepted=100, dropped_fraction=0.1, failures=10)
    assert {"failed", "given up", "Share of theta given up"} <= set(lost)
    assert "(Lu & Wong 2025, Theorem 2.2)" in lost[-1]  # no network: its theta were tried again


def test_constants_show_what_was_changed_and_fold_the_rest() -> None:
    record = stub(2)

    def facts(config: abi.ABIConfig) -> tuple[list[str], list[tuple[tuple[str, str], ...]]]:
        posterior = replace(record.posterior, config=config)
        blocks = replay_section(replace(record, posterior=posterior), "fit1").blocks
        found = [block for block in blocks if block.kind == "facts"]
        texts = [block.text for block in blocks if block.kind == "text"]
        assert "num_slices" in dict(found[-1].items)
        assert found[-1].folded
        return texts, [block.items for block in found if not block.folded]

    texts, shown = facts(abi.ABIConfig())
    assert "All constants have their default values." in texts
    assert shown == []
    texts, shown = facts(
        abi.ABIConfig(num_slices=3, flow=replace(abi.ABIConfig().flow, num_bins=7))
    )
    assert "2 constants changed from the default:" in texts
    assert shown == [(("num_slices", "3"), ("flow.num_bins", "7"))]


def test_a_fit_far_from_the_exact_posterior_is_not_green_for_its_tests() -> None:
    record = judged(stub(2), PASSES)
    far = 3.0 + torch.randn(2_000, 2, generator=torch.Generator().manual_seed(9))
    verdict = fit_verdict(fit_of(replace(record, exact=far)))
    assert verdict.tone == "untested"
    assert verdict.headline == "Cannot tell: its check passes, but it lies off the exact posterior"
    assert verdict.next_step is None
    record = replace(judged(stub(2), FAILS), exact=far)
    assert fit_verdict(fit_of(record)).headline.endswith("; it lies off the exact posterior")


def test_a_mean_farther_off_than_its_check_allows_is_told() -> None:
    record = judged(stub(2), PASSES)  # whose check allows 0.25 sd
    for shift, told in ((0.1, False), (0.4, True)):
        moved = record.samples + torch.tensor([0.0, shift])
        words = fit_verdict(fit_of(replace(record, exact=moved))).words
        assert "this one is close to it" in words
        assert ("the mean of theta_2 is off by 0.4 sd" in words) is told


def test_a_validation_of_this_very_fit_speaks_for_it(good: dict[str, Any]) -> None:
    record = judged(stub(2), CANNOT_TELL)
    own = {**good, "of": identity_of(record.posterior)}
    verdict = page_verdict([fit_of(record)], [("own.json", own)])
    assert verdict.tone == "not-rejected"
    assert verdict.headline == "Not rejected by 3 tests"
    assert "own check: cannot tell" in verdict.words
    assert page_verdict([fit_of(judged(stub(2), FAILS))], [("own.json", own)]).tone == "rejected"


def test_a_validation_of_the_method_is_green_only_beside_a_fit_that_passes(
    good: dict[str, Any],
) -> None:
    for check, tone, headline in (
        (PASSES, "not-rejected", "Passes: p = 0.4 over 3 tests"),
        (CANNOT_TELL, "untested", "Cannot tell: with 300 check pairs"),
        (FAILS, "rejected", "Fails: theta_2"),
    ):
        record = judged(stub(2), check)
        of = identity_of(record.posterior) | {"seed": None}
        verdict = page_verdict([fit_of(record)], [("v.json", {**good, "of": of})])
        assert verdict.tone == tone
        assert verdict.headline.startswith(headline)
        said = "A validation beside it: not rejected by 3 tests." in verdict.words
        assert said is (tone == "not-rejected")


def test_a_validation_of_something_else_turns_nothing_green(good: dict[str, Any]) -> None:
    record = judged(stub(2), PASSES)
    own = identity_of(record.posterior)
    calls = f"{record.posterior.num_simulations:,}"
    for of, words, headline in (
        (None, "does not record the calls and constants", "of a fit that is not recorded"),
        ({"calls": 200}, "does not record the calls and constants", "that is not recorded"),
        (own | {"calls": 50}, f"is of fits with 50 simulator calls, not {calls}", "of another fit"),
        (
            own | {"config": own["config"] | {"num_flows": 1, "num_slices": 7}},
            "other constants (num_flows, num_slices)",
            "of another fit",
        ),
    ):
        verdict = page_verdict([fit_of(record)], [("v.json", {**good, "of": of})])
        assert verdict.tone == "untested"
        assert verdict.headline.endswith(headline)
        assert words in verdict.words
        assert verdict.next_step is not None


def test_a_validation_stays_that_of_its_fit_after_a_further_check() -> None:
    record = stub(2)
    data = {"of": identity_of(record.posterior)}
    assert belonging(data, record).relation == "this fit"
    asked = Plan(230, 2, 0, record.posterior.config)
    planned = replace(record, plan=asked)
    assert belonging({"of": data["of"] | {"calls": 230}}, planned).relation == "this fit"
    assert belonging({"of": data["of"] | {"calls": 231}}, planned).relation == "another"


def test_several_fits_are_as_green_as_the_worst() -> None:
    def named(name: str, check: Check) -> Fit:
        return fit_of(replace(judged(stub(2), check), name=name))

    a, b, c = named("a", PASSES), named("b", CANNOT_TELL), named("c", FAILS)
    assert page_verdict([a, a], []).headline == "Passes for all"
    assert page_verdict([a, b], []).headline == "Cannot tell for b"
    verdict = page_verdict([c, a, b], [])
    assert (verdict.tone, verdict.headline) == ("rejected", "Fails for c")
    assert len(verdict.rests_on) == 3


def test_many_parameters_are_shown_worst_first_and_counted() -> None:
    check = check_of(20, 0.001, 0.9)
    figure = deviation_figure(check)
    assert figure.caption.startswith("The 12 worst of 20 parameters.")
    assert figure.alt.startswith("How far the answer may be off: theta_20: bias 0.9 (0.7 to 1.1)")
    assert figure.alt.count("times the true one") == 12
    assert figure.numbers is not None
    assert len(figure.numbers.rows) == 21  # the log density's, too
    page = page_for(judged(stub(20), check))
    assert "The 12 worst of 20 parameters." in Outline(page).text


def test_an_interval_that_leaves_out_what_is_right_is_coloured() -> None:
    assert "var(--observed)" not in deviation_figure(PASSES).svg
    svg = deviation_figure(FAILS).svg
    assert "var(--observed)" in svg
    assert "var(--posterior)" in svg


def test_the_section_tells_tests_controls_and_rounds() -> None:
    section = verdict_section(judged(stub(2), PASSES), "fit1")
    panel, controls, rounds = tables(section.blocks)
    assert [row[0] for row in panel.rows] == ["all together", "SBC", "HPD", "score rank"]
    assert [row[2] for row in controls.rows] == ["not rejected", "rejected", "rejected"]
    assert [row[:4] for row in rounds.rows] == [
        ("round 1", 100, 300, 0.01),
        ("the answer", 200, 300, 0.4),
    ]
    # Bias 0.6 with 0.2 to either side; then 0.05.
    assert [row[4:6] for row in rounds.rows] == [(0.6, 0.8), (0.05, 0.25)]
    assert rounds.rows[-1][-2:] == (0.3, 0.05)


@pytest.mark.parametrize("check", [Check(0), Check(12, 3), check_of(1)])
def test_verdicts_without_pairs_or_rounds_have_pages(check: Check) -> None:
    record = judged(stub(1), check, rounds=False)
    fit = fit_of(record)
    assert [figure.title for figure in first_screen(fit)] == ["The answer"]
    assert not tables(calls_blocks(record.posterior))
    page_for(record)
    page_for(replace(record, prior=None))


def test_values_out_of_all_bounds_do_not_break_a_page() -> None:
    wild = check_of(2)
    parts = (
        replace(wild.deviations[0], bias_low=-1e9, sd_ratio_low=0.0, sd_ratio_high=1e30),
        replace(wild.deviations[1], bias=float("nan"), bias_high=float("inf")),
    )
    page_for(judged(stub(2), replace(wild, deviations=parts)))


def test_more_check_pairs_are_the_next_step_where_they_can_be_had(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = replace(judged(stub(2), CANNOT_TELL), name="runs/my fit")
    step = fit_verdict(fit_of(record)).next_step
    assert step is not None
    assert "validation.validate(q" in step.text  # a stub answers at its x_o alone
    monkeypatch.setattr(type(record.posterior), "answer", object())
    step = fit_verdict(fit_of(record)).next_step
    assert step is not None
    assert step.text == "abi check 'runs/my fit' --num-simulations 600"
    step = fit_verdict(fit_of(replace(record, kept=False))).next_step
    assert step is not None
    assert "abi.resume('runs/my fit').save('runs/my fit/posterior.safetensors')" in step.text
    for check, p_value in ((PASSES, 0.5), (FAILS, 0.5), (PASSES, 0.001)):
        done = judged(stub(2), check, x_o_p_value=p_value)
        assert fit_verdict(fit_of(done)).next_step is None


def test_a_run_that_ended_early_is_not_unfinished() -> None:
    record = judged(stub(2), PASSES)
    plan = Plan(400, 4, 0, record.posterior.config, 0.07, "passes")
    assert not replace(record, plan=plan).finished
    done = replace(record, plan=plan, final=True)
    page = page_of([fit_of(done)], [], None, ())
    assert page.verdict.tone == "not-rejected"
