"""Results at the prompt: one line, ten lines, HTML; no tensor is ever written out."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
import torch
from one_look import TASK, exact_law

import validation
from simulators import sample_joint
from validation import METHODS, ColtTraining, Localization, ValidationResult
from validation.results.notes import NOTES, note_of
from validation.results.tables import html_table, text_table
from validation.swaps.deviations import LOG_DENSITY, Deviation
from validation.swaps.findings import Finding

SETTINGS: Mapping[str, dict[str, Any]] = {
    "panel": {"num_swaps": 99},
    "discriminative_calibration": {"num_samples": 2},
    "colt": {"training": ColtTraining(hidden=(8,), epochs=2)},
    "colt_identity": {"training": ColtTraining(hidden=(8,), epochs=2)},
    "lc2st": {"num_nulls": 5, "num_samples": 50},
    "local_hpd": {"num_nulls": 5, "num_samples": 50},
}


@pytest.fixture(scope="module")
def results() -> dict[str, ValidationResult]:
    theta, x = sample_joint(TASK, 100, seed=1)
    found = {}
    for name, test in METHODS.items():
        x_o = {"x_o": x[:2]} if name in ("lc2st", "local_hpd") else {}
        found[name] = test(exact_law, theta, x, seed=3, **x_o, **SETTINGS.get(name, {}))
    return found


class Reader(HTMLParser):
    """Text of the cells, and the tags that were open at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    assert not reader.open
    return reader


@pytest.mark.parametrize("name", METHODS)
def test_a_result_is_one_line_and_a_table_of_ten(
    results: dict[str, ValidationResult], name: str
) -> None:
    result = results[name]
    assert repr(result).startswith(f"ValidationResult({result.method!r}, statistic=")
    assert f"p_value={result.p_value:.3g}, seed=3" in repr(result)
    assert len(repr(result)) <= 120
    lines = str(result).splitlines()
    assert len(lines) <= 10
    assert max(map(len, lines)) <= 100
    assert lines[0].startswith(result.method)
    for words in (NOTES[name].sees, NOTES[name].blind_to, NOTES[name].source):
        assert words in str(result)
    assert "tensor" not in str(result) + repr(result) + result._repr_html_()


@pytest.mark.parametrize("name", METHODS)
def test_a_notebook_shows_the_rows_that_print_shows(
    results: dict[str, ValidationResult], name: str
) -> None:
    texts = read(results[name]._repr_html_()).texts
    assert texts[0] == str(results[name]).splitlines()[0]
    assert " ".join(" ".join(texts).split()) == " ".join(str(results[name]).split())


def test_numbers_of_pairs_and_draws_are_told_where_they_are_known(
    results: dict[str, ValidationResult],
) -> None:
    assert repr(results["sbc"]).endswith("N=100, K=1000)")
    assert repr(results["conformal_c2st"]).endswith("seed=3, N=100)")
    assert repr(results["lc2st"]).endswith("N=100)")
    assert "100 pairs, 1,000 draws of q at each x" in str(results["tarp"])
    assert "at 2 x_o" in str(results["lc2st"])
    assert "ranks (100, 2)" in str(results["sbc"])


@pytest.mark.parametrize(("p", "words"), [(0.0501, "not rejected"), (0.05, "rejected")])
def test_what_is_not_rejected_is_not_called_right(p: float, words: str) -> None:
    text = str(ValidationResult("sbc", 0.1, p, 0))
    assert re.search(rf"{p:g}: {words} at \.05", text)
    assert "pass" not in text


def test_a_statistic_stands_beside_its_null() -> None:
    text = str(ValidationResult("sbc", 0.1, 0.2, 0, torch.arange(1, 101) / 100))
    assert "under the null below 0.9505 in 95% of 100" in text


def test_many_parameters_take_one_line() -> None:
    p_values = [0.5] * 80 + [0.0021] + [0.7] * 19
    text = str(ValidationResult("sbc", 0.1, 0.2, 0, details={"p_values": p_values}))
    assert "the least of 100 is 0.0021, number 81" in text


def test_the_clearest_of_what_is_wrong_is_said() -> None:
    wide = Deviation("a", 0.0, -0.1, 0.1, 1.5, 1.4, 1.6)
    low = Finding("mean", (1,), None, False, 0.002, -0.31, -0.42, -0.2)
    details = {"findings": (low, low), "p_values": {"tarp": 0.5, "sbc": 0.01}, "num_pairs": 300}
    result = ValidationResult("panel", 2.0, 0.01, 0, details=details)
    assert "theta_2 lies too low by 0.20 to 0.42 sds (and 1 more)" in str(result)
    assert "sbc 0.01, tarp 0.5" in str(result)
    assert repr(result).endswith("N=300)")
    assert json.loads(json.dumps(result.to_dict()))["details"]["findings"][0]["column"] is None
    assert "theta_2" not in str(ValidationResult("panel", 2.0, 0.2, 0, details=details))
    at_x_o = {"deviations": (replace(wide, name=LOG_DENSITY), wide), "x_o": torch.zeros(3)}
    result = ValidationResult("panel", 2.0, 0.01, 0, details=at_x_o)
    assert "a is too wide by 40 to 60%" in str(result)
    assert str(result).splitlines()[0].endswith("at one x_o")


def test_a_test_of_ones_own_has_no_note() -> None:
    assert note_of("lc2st_nf") is NOTES["lc2st"]
    assert note_of("colt_identity") is NOTES["colt_identity"]
    assert note_of("colts") is None
    result = ValidationResult("mine", 1.0, 0.5, 0, details={"a": object(), "b": [1] * 1_000})
    assert "sees" not in str(result)
    assert "a object, b [1000]" in str(result)


def test_text_of_others_is_escaped_and_stays_on_its_line() -> None:
    told = {"form": "<script>alert(1)</script>", "p_value_kind": 'a "&"\nb'}
    result = ValidationResult("<b>mine</b>", 1.0, 0.5, 0, details=told)
    assert len(str(result).splitlines()) == 5
    shown = read(result._repr_html_())
    assert shown.seen == {"table", "caption", "tbody", "tr", "th", "td"}
    assert '0.5: not rejected at .05 (a "&" b)' in shown.texts


def test_a_result_is_neither_true_nor_false(results: dict[str, ValidationResult]) -> None:
    with pytest.raises(TypeError, match=r"neither true nor false: read result\.p_value"):
        bool(results["sbc"])
    with pytest.raises(TypeError, match="neither true nor false"):
        _ = "right" if results["sbc"] else "wrong"


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda r: pickle.loads(pickle.dumps(r))]
)
def test_a_result_can_be_copied_and_pickled(
    results: dict[str, ValidationResult], copied: Any
) -> None:
    for name in ("sbc", "conformal_c2st", "lc2st"):
        twin = copied(results[name])
        assert twin.to_dict() == results[name].to_dict()
        assert str(twin) == str(results[name])
        with pytest.raises(TypeError, match="mappingproxy"):
            twin.details["p_value"] = 1.0


def test_results_are_dicts_of_what_json_knows(results: dict[str, ValidationResult]) -> None:
    for result in results.values():
        again = json.loads(json.dumps(result.to_dict(), allow_nan=False))
        assert again == result.to_dict()
        assert (again["method"], again["p_value"]) == (result.method, result.p_value)
    null = torch.tensor([1.0, torch.nan, torch.inf])
    assert ValidationResult("a", 0.0, 1.0, 0, null).to_dict()["null_statistics"] == [
        1.0,
        None,
        None,
    ]


def test_a_localization_reads_without_its_draws(results: dict[str, ValidationResult]) -> None:
    found = validation.localize(results["colt_identity"], torch.zeros(2))
    assert isinstance(found, Localization)
    assert len(repr(found)) <= 120
    assert len(str(found).splitlines()) == 6
    assert "tensor" not in repr(found) + str(found)
    assert read(found._repr_html_()).texts[0] == str(found).splitlines()[0]
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["point"] == pytest.approx(found.point.tolist())
    assert len(again["distances"]) == len(found.distances)
    wide = Localization(torch.zeros(50), 1.0, 0.5, 0.5, torch.zeros(10, 50), torch.zeros(10))
    assert "(0, 0, 0, 0, ... 50 in all)" in repr(wide)


def test_columns_of_numbers_end_and_columns_of_words_begin_on_one_line() -> None:
    rows = [["a", "1.5", "one"], ["long", "-12 *", "two"], ["c"]]
    assert text_table(rows, ["test", "p", "sees"]).splitlines() == [
        "test      p  sees",
        "a       1.5  one",
        "long  -12 *  two",
        "c",
    ]
    assert text_table([]) == ""
    assert text_table([["a\n b", "c"]]) == "a b  c"


def test_a_table_of_html_has_the_cells_as_they_are() -> None:
    html = html_table([["<i>", "1"], ["b"]], ["x & y", "z"], 'of "all"')
    assert [text for text in read(html).texts if text] == [
        'of "all"',
        "x & y",
        "z",
        "<i>",
        "1",
        "b",
    ]
    assert html.count("<tr>") == 3
    assert html.count('scope="col"') == html.count('scope="row"') == 2
    assert not re.search(r"color:(?!inherit)|background", html)  # a notebook may be dark
    assert read(html_table([])).texts == []
