"""A page turns green only where the same tests reject what is wrong on purpose."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from one_look import TASK, exact, prior
from pages import checked
from torch import Tensor

from simulators import sample_joint
from simulators.random import isolated_rng
from validation import PerObservation, Report, as_posterior, validate
from validation.page.controls import sharper
from validation.page.joint_verdict import verdict_over
from validation.page.method_sections import summary_table
from validation.page.validation_page import validation_sections, verdict_of
from validation.posteriors.shared_draws import SharedDraws, wrong_on_purpose
from validation.posteriors.stored_samples import StoredSamples
from validation.report import report_data

MANY = ["score_rank", "hpd", "sbc"]


@pytest.fixture(autouse=True)
def streams() -> Iterator[None]:
    """The test posteriors use torch's global stream."""
    with isolated_rng(0):
        yield


@pytest.fixture(scope="module")
def tried() -> Report:
    """The exact posterior, by tests that see what is wrong at 200 pairs."""
    with isolated_rng(1):
        return checked(exact, MANY, 200, controls=True)


def data_of(q: Any, names: list[str], num_pairs: int, **words: Any) -> dict[str, Any]:
    return report_data(checked(q, names, num_pairs, **words))


def test_the_prior_is_not_green_where_nothing_sees_it() -> None:
    data = data_of(prior, ["sbc", "c2st"], 20, controls=True)
    assert data["rejected"] == []
    verdict = verdict_of(data)
    assert verdict.tone == "untested"
    assert verdict.headline == (
        "Not rejected by 2 tests, but neither are posteriors that are wrong"
    )
    assert "with 20 pairs, do not reject the pairs' prior in its place" in verdict.words
    assert verdict.next_step is not None
    assert "40 say" in verdict.next_step.text


def test_tests_that_were_not_tried_on_what_is_wrong_turn_nothing_green() -> None:
    verdict = verdict_of(data_of(exact, ["sbc", "tarp"], 200))
    assert verdict.tone == "untested"
    assert "no proof of being right" in verdict.words
    assert "the pairs' prior itself would pass" in verdict.words
    assert verdict.next_step is not None
    assert "controls=True" in verdict.next_step.text
    verdict = verdict_of(data_of(exact, ["sbc", "c2st"], 200))
    assert verdict.tone == "untested"
    assert "were not run on the pairs' prior in its place" in verdict.words
    assert "the pairs' prior itself" not in verdict.words


def test_an_exact_posterior_is_green_by_tests_that_see_both(tried: Report) -> None:
    assert tried.rejected == ()
    for control in ("prior", "wide"):
        assert list(tried.controls[control]) == MANY
        assert min(tried.controls[control].values()) <= 0.05
    verdict = verdict_of(report_data(tried))
    assert verdict.tone == "not-rejected"
    assert "reject the pairs' prior in its place" in verdict.words
    assert "no proof of being right" in verdict.words
    assert any("the posterior 1.5 times too wide: rejected by" in s for s in verdict.rests_on)


def test_tests_that_see_only_one_of_the_two_turn_nothing_green() -> None:
    data = data_of(exact, ["sbc", "hpd"], 200, controls=True)
    assert min(data["controls"]["wide"].values()) <= 0.05 < min(data["controls"]["prior"].values())
    verdict = verdict_of(data)
    assert verdict.tone == "untested"
    assert verdict.headline.endswith("but neither is the pairs' prior")


def test_the_controls_are_printed_and_stand_beside_the_tests(tried: Report) -> None:
    printed = str(tried)
    assert "  the pairs' prior in its place: score_rank p = 0.00" in printed
    assert "  the posterior 1.5 times too wide: " in printed
    table = summary_table(report_data(tried))
    assert {"p of the pairs' prior", "p if 1.5 times wider"} <= set(table.columns)
    assert all(len(row) == len(table.columns) for row in table.rows)
    code = validation_sections(report_data(tried))[-1].blocks[1]
    assert code.kind == "code"
    assert "controls=True" in code.text


def test_several_files_are_as_green_as_the_least_tried(tried: Report) -> None:
    good = ("good", report_data(tried))
    blind = ("blind", data_of(exact, ["tarp", "sbc"], 50))
    for tests, tone in (([good, good], "not-rejected"), ([good, blind], "untested")):
        for order in (tests, tests[::-1]):
            assert verdict_over(order).tone == tone
    words = verdict_over([good, blind]).words
    assert "the pairs' prior itself would pass the tests of blind" in words
    assert "the tests of good" not in words


def test_the_first_test_is_what_it_was_without_controls(tried: Report) -> None:
    with isolated_rng(1):
        alone = checked(exact, MANY, 200)
    assert [r.p_value for r in alone.results] == [r.p_value for r in tried.results]
    assert alone.controls == {}


def test_the_wrong_posteriors_are_what_they_are_called() -> None:
    theta, x = sample_joint(TASK, 40, 0)
    shared = SharedDraws(as_posterior(exact), StoredSamples(x, exact(60, x)))
    wrong = wrong_on_purpose(shared, theta, 3)
    others, most = wrong["prior"]
    drawn = others.sample(60, x)
    assert drawn.shape == (60, 40, 2)
    assert most == 39
    for i in range(40):  # each of the others once, and the pair's own never
        rows = {tuple(row) for row in drawn[:most, i].tolist()}
        assert rows == {tuple(row) for j, row in enumerate(theta.tolist()) if j != i}
    wide, samples = wrong["wide"][0].sample(60, x), shared.stored.samples
    assert torch.allclose(wide.mean(dim=0), samples.mean(dim=0), atol=1e-5)
    assert torch.allclose(wide.std(dim=0), 1.5 * samples.std(dim=0), atol=1e-5)
    elsewhere = torch.zeros(1, 2)
    assert 0.8 < float(wrong["wide"][0].sample(2_000, elsewhere).std()) / (1.5 * 0.5**0.5) < 1.2
    for q, _ in wrong.values():
        with pytest.raises(NotImplementedError):
            q.log_prob(theta[None], x)


def test_the_prior_is_not_seen_where_it_is_right() -> None:
    """Where x says nothing of theta the prior is the posterior: levels are kept, all p large."""
    hits = 0
    for seed in range(40):
        theta, x = torch.randn(2, 60, 2, generator=torch.Generator().manual_seed(seed))
        report = validate(prior, theta, x, ["sbc", "tarp", "hpd"], num_samples=59, controls=True)
        hits += min(report.controls["prior"].values()) <= 0.05
    # At most 0.05 of 40: more than 6 have probability 0.003.
    assert hits <= 6


def test_controls_need_no_fit_of_their_own() -> None:
    fitted: list[int] = []

    def fit(x_o: Tensor, seed: int) -> Tensor:
        fitted.append(seed)
        return exact(300, x_o[None])[:, 0]

    theta, x = sample_joint(TASK, 30, 0)
    names = ["score_rank", "hpd", "local_hpd"]
    report = validate(PerObservation(fit), theta, x, names, num_samples=40, controls=True)
    assert len(fitted) == 30
    assert set(report.controls) == {"prior", "wide"}


def test_a_test_that_cannot_run_on_what_is_wrong_does_not_reject_it() -> None:
    theta, x = sample_joint(TASK, 4, 0)
    report = validate(exact, theta, x, ["hpd"], num_samples=20, controls=True)
    # Three other pairs are too few draws for a density; q has twenty.
    assert report.controls["prior"] == {"hpd": 1.0}
    assert report.controls["wide"]["hpd"] < 1.0


def test_the_panel_that_is_recommended_is_the_strongest_of_the_kept_power_map() -> None:
    kept = Path(__file__).parents[3] / "examples" / "paper" / "power_map.json"
    map_ = json.loads(kept.read_text())

    def size(test: str) -> float:
        total = 0.0
        for failure in map_["failures"]:
            cells = map_["cells"][failure]
            least = min(cell["strength"] for cell in cells.values() if cell["strength"])
            unseen = 1.5 * max(map_["grids"][failure])
            total += math.log((cells[test]["strength"] or unseen) / least)
        return total

    assert min(map_["tests"], key=size) == "panel"
    text = sharper({"asked": {"num_pairs": 20}, "controls": {}}).text
    compile(text, "page", "exec")
