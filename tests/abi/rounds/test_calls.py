"""Pairs that a user brings: taken where the model can have made them, refused by name elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from abi.rounds.calls import made_before
from abi.rounds.problem import Problem, check_simulations, pose
from simulators import Simulations

PRIOR = {"a": stats.norm(), "b": stats.uniform(-2.0, 4.0)}


def simulate(a: Tensor, b: Tensor) -> Tensor:
    return torch.stack([a, b], dim=-1) + torch.randn(len(a), 2)


@pytest.fixture(scope="module")
def problem() -> Problem:
    return pose(PRIOR, simulate, [0.1, 0.2])


def pairs(theta: Any, x: Any) -> Simulations:
    return Simulations(theta, x, torch.arange(len(theta)), (), 0)


THETA, X = torch.linspace(-1.9, 1.9, 80).reshape(40, 2), torch.linspace(0.0, 1.0, 80).reshape(40, 2)


def test_pairs_of_a_users_making_are_taken(problem: Problem) -> None:
    check_simulations(pairs(THETA, X))
    sampled = made_before(pairs(THETA, X), problem, seed=0)
    assert torch.equal(sampled.theta, THETA)
    assert torch.equal(sampled.x, X)


@pytest.mark.parametrize(
    ("theta", "x"),
    [(np.zeros((40, 2)), np.zeros((40, 2))), (THETA.double(), X), (THETA, X[:-1]), (THETA, X[0])],
)
def test_what_are_no_pairs_is_refused_with_how_to_make_them(theta: Any, x: Any) -> None:
    with pytest.raises(ValueError, match=r"^`simulations` must hold as many theta as x\. Of float"):
        check_simulations(pairs(theta, x))


def test_pairs_that_the_prior_cannot_have_drawn_are_refused(problem: Problem) -> None:
    theta = THETA.clone()
    theta[:3, 1] = 2.5
    with pytest.raises(ValueError, match=r"^`simulations` .*; 3 of 40 lie outside its support"):
        made_before(pairs(theta, X), problem, seed=0)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
def test_failed_simulations_among_pairs_are_refused(problem: Problem, value: float) -> None:
    x = X.clone()
    x[:5, 1] = value
    with pytest.raises(ValueError, match=r"^`simulations` must hold finite x; 5 of 40 rows do not"):
        made_before(pairs(THETA, x), problem, seed=0)
