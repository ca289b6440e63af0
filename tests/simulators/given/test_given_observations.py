"""Observations of every form: values stand where the simulator has them, or are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from simulators.given.observation import Observed, Returned, same_values

NAMED = Returned.of({"mean": 1.0, "counts": np.arange(3)})
PLAIN = Returned.of([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    "x_o",
    [
        [1, 2, 3],
        (1.0, 2.0, 3.0),
        np.array([1, 2, 3]),
        np.array([[1.0, 2.0, 3.0]]),
        torch.tensor([1, 2, 3]),
        [np.array(1.0), torch.tensor([2.0, 3.0])],
        pd.Series([1, 2, 3]),
        pd.Series({"a": 1, "b": 2, "c": 3}),
        pd.DataFrame({"a": [1], "b": [2], "c": [3]}),
        {"first": 1, "rest": [2, 3]},
    ],
    ids=str,
)
def test_an_observation_may_come_in_any_form(x_o: Any) -> None:
    for returned in (PLAIN, None):
        assert Observed.of(x_o).matched(returned).tolist() == [1.0, 2.0, 3.0]


def test_a_number_is_one_value_and_an_image_its_pixels() -> None:
    assert Observed.of(3).matched(Returned.of(0.5)).tolist() == [3.0]
    image = np.arange(6.0).reshape(2, 3)
    assert Observed.of(image).matched(Returned.of(image)).tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ValueError, match=r"`x_o` must be one observation.* got shape \(2, 3\)"):
        Observed.of(image).matched(PLAIN)


def test_named_values_take_the_order_of_the_simulator() -> None:
    assert Observed.of({"counts": [7, 8, 9], "mean": 1}).matched(NAMED).tolist() == [1, 7, 8, 9]
    row = pd.DataFrame({"b": [1.0, 3.0], "a": [2.0, 4.0]}).iloc[1]
    assert Observed.of(row).matched(Returned.of({"a": 0.0, "b": 0.0})).tolist() == [4.0, 3.0]
    assert Observed.of([1, 7, 8, 9]).matched(NAMED).tolist() == [1, 7, 8, 9]
    gaps = Observed.of({"counts": [7, np.nan, 9], "mean": 1}).matched(NAMED)
    assert same_values(gaps, torch.tensor([1.0, 7.0, torch.nan, 9.0]))


@pytest.mark.parametrize(
    ("x_o", "error", "words"),
    [
        ({"mean": 1.0}, ValueError, "names that `simulator` returns, mean, counts; it lacks 'coun"),
        ({"mean": 1, "counts": [1, 2, 3], "id": 4}, ValueError, "it also has 'id'"),
        ({"mean": 1, "counts": [1, 2]}, ValueError, "got 2 of 'counts' and simulations of 3"),
        ([1, 2, 3], ValueError, "as many values as a simulation; got 3 values and .* of 4"),
        ([1, np.inf], ValueError, "`x_o` must be finite, or NaN where nothing was measured; 1 of"),
        ({"mean": np.inf, "counts": [1, 2, 3]}, ValueError, "`x_o` must be finite, .*; 1 of its 4"),
        ({"mean": "u"}, TypeError, "`x_o` 'mean' must be a tensor of numbers; got 'u'"),
        ("x", TypeError, "`x_o` must be a tensor of numbers; got 'x'"),
        (None, TypeError, "`x_o` must be a tensor of numbers; got None"),
        ([1j], TypeError, "Real and imaginary parts are values of their own"),
        ({}, ValueError, "`x_o` must be one observation"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(x_o: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        Observed.of(x_o).matched(NAMED)
    assert "\n" not in str(caught.value)
