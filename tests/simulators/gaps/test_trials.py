"""Sets of items whose number differs, as rows of one length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import simulators
from simulators import from_function, sample_joint, simulate, trials
from simulators.gaps.trials import padded
from simulators.given.observation import same_values

PRIOR = {"mu": torch.distributions.Normal(0.0, 1.0), "sd": torch.distributions.Uniform(0.5, 2.0)}


def draws(mu: float, sd: float, rng: np.random.Generator) -> np.ndarray:
    """One to five draws of a normal law."""
    return rng.normal(mu, sd, rng.integers(1, 6))


def points(theta: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """None to three points of the plane."""
    return [rng.normal(theta, 1.0) for _ in range(rng.integers(0, 4))]


def test_a_row_holds_the_items_and_then_gaps() -> None:
    task = from_function(trials(draws, 5), PRIOR)
    theta, x = sample_joint(task, 200, seed=0)
    assert theta.shape == (200, 2)
    assert x.shape == (200, 5)
    number = (~x.isnan()).sum(dim=1)
    assert number.unique().tolist() == [1, 2, 3, 4, 5]
    assert torch.equal(~x.isnan(), torch.arange(5) < number[:, None])
    assert task.parameter_names == ("mu", "sd")


def test_items_of_several_values_stay_together() -> None:
    task = trials(from_function(points, PRIOR), most_items=3, item_dim=2)
    x = sample_joint(task, 100, seed=0)[1].reshape(100, 3, 2)
    assert torch.equal(x.isnan().any(dim=2), x.isnan().all(dim=2))
    assert (~x[:, :, 0].isnan()).sum(dim=1).unique().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("items", "item_dim", "row"),
    [
        (2.0, 1, [2.0, np.nan, np.nan]),
        ([1, 2], 1, [1.0, 2.0, np.nan]),
        ([[1], [2]], 1, [1.0, 2.0, np.nan]),
        ([1, np.nan, 2], 1, [1.0, 2.0, np.nan]),
        ([], 1, [np.nan] * 3),
        ([[1, 2]], 2, [1.0, 2.0, *[np.nan] * 4]),
        ([1, 2, 3, np.nan], 2, [1.0, 2.0, 3.0, np.nan, np.nan, np.nan]),
    ],
)
def test_items_in_any_form_are_one_row(items: Any, item_dim: int, row: list[float]) -> None:
    assert same_values(padded(items, 3, item_dim), torch.tensor(row))


def test_more_items_than_declared_are_a_failure_with_the_cure() -> None:
    with pytest.raises(ValueError, match=r"`x_o` has 4 items, more than the 3 .*raise most_items"):
        padded([1, 2, 3, 4], 3)
    task = from_function(trials(draws, 4), PRIOR)
    theta = torch.tensor([[0.0, 1.0]]).repeat(100, 1)
    runs = simulate(task, theta, seed=0, progress=False)
    assert 5 <= len(runs.failures) <= 40  # one in five: 20 +- 4
    assert "`simulator` has 5 items, more than the 4" in runs.failures[0].reason


@pytest.mark.parametrize("items", [[[1, 2]], torch.zeros(2, 3, 1)])
def test_what_is_no_set_of_items_is_refused(items: Any) -> None:
    with pytest.raises(ValueError, match=r"`x_o` must be a set of items, \(k,\)"):
        padded(items, 3)


def test_a_simulator_of_one_length_is_refused() -> None:
    with pytest.raises(ValueError, match="whose x has one length\\. Fill x with NaN"):
        trials(simulators.GaussianLinear(), 3)
    with pytest.raises(ValueError, match="`most_items` must be a whole number of at least 1"):
        trials(draws, 0)
