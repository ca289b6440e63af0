"""A comparison at the prompt: each metric once, with that of two exact samples."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from abi import metrics
from abi.metrics import Comparison, Score
from simulators.random import torch_generator


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    draws = torch.randn(90, 4, generator=torch_generator(0))
    return metrics.compare(draws[:30] * 1.5, draws[30:])


def test_a_comparison_is_one_line_and_a_table(comparison: Comparison) -> None:
    assert repr(comparison).startswith("Comparison(w1=")
    assert len(repr(comparison)) <= 120
    lines = str(comparison).splitlines()
    assert len(lines) == 2 + len(metrics.METRICS)
    assert max(map(len, lines)) <= 100
    for name, line in zip(metrics.METRICS, lines[2:], strict=True):
        assert line.startswith(name)
    assert "30 on each side" in lines[0]


def test_of_coordinates_the_one_furthest_off_is_shown() -> None:
    scores = {f"sd_ratio_{k + 1}": Score(v, 1.0, (v, v)) for k, v in enumerate([1.5, 0.4, 2.0])}
    scores["mean_bias_1"] = Score(-0.3, 0.01)
    text = str(Comparison(scores, 10, None, 0))
    assert "sd_ratio_2 (furthest of 3)" in text
    assert "0.4 to 0.4" in text
    assert "sd_ratio_3" not in text
    assert "mean_bias_1  " in text


def test_a_notebook_shows_every_number_that_print_shows(comparison: Comparison) -> None:
    html = comparison._repr_html_()
    assert html.startswith("<table")
    assert all(f">{word}</" in html for word in ("metric", "exact vs exact", "w1"))
    assert f">{comparison['w1'].value:.3g}</td>" in html


def test_a_comparison_is_copied_pickled_and_compared_as_before(comparison: Comparison) -> None:
    assert copy.deepcopy(comparison) == comparison
    assert pickle.loads(pickle.dumps(comparison)) == comparison
