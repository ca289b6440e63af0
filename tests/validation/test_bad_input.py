"""Whatever is wrong with the input, every method gives a clear error or a valid p-value."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from one_look import TASK, exact
from torch import Tensor

import validation
from simulators import sample_joint
from validation import METHODS, NOTES, ColtTraining, Training, ValidationResult

QUICK = Training(hidden=(8,), max_epochs=4, batch_size=50)
BALLS = ColtTraining(hidden=(8,), epochs=3, draws_per_epoch=5)
SETTINGS: dict[str, dict[str, Any]] = {
    "panel": {"num_samples": 10, "num_swaps": 99},
    "sbc": {"num_samples": 10},
    "tarp": {"num_samples": 10},
    "hpd": {"num_samples": 10},
    "c2st": {"training": QUICK},
    "conformal_c2st": {"training": QUICK, "num_permutations": 99},
    "conformal_multiple": {"training": QUICK, "num_permutations": 99},
    "discriminative_calibration": {"training": QUICK, "num_permutations": 99},
    "score_rank": {"training": QUICK, "num_samples": 10},
    "colt": {"training": BALLS, "num_samples": 10},
    "colt_identity": {"training": BALLS, "num_samples": 10},
    "lc2st": {"training": QUICK, "num_nulls": 9, "num_x_o": 2},
    "local_hpd": {"training": QUICK, "num_nulls": 9, "num_x_o": 2, "num_samples": 10},
}


def run(name: str, q: Callable[..., object], theta: Tensor, x: Tensor, **changes: Any) -> float:
    result = METHODS[name](q, theta, x, **(SETTINGS[name] | changes))
    assert isinstance(result, ValidationResult)
    return result.p_value


def test_every_method_is_in_this_file_and_says_what_it_cannot_see() -> None:
    assert set(SETTINGS) == set(METHODS) == set(NOTES)
    assert all(note.blind_to and note.source for note in NOTES.values())


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_public_and_names_its_arguments(name: str) -> None:
    assert getattr(validation, name) is METHODS[name]
    kinds = {p.kind for p in inspect.signature(METHODS[name]).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds


@pytest.mark.parametrize(
    ("name", "fixed"),
    [
        ("colt_identity", {"embedding": "full"}),
        ("conformal_multiple", {"variant": "uniform"}),
        ("conformal_multiple", {"num_calibration": 5}),
    ],
)
def test_what_a_method_fixes_is_no_argument_of_it(name: str, fixed: dict[str, Any]) -> None:
    theta, x = sample_joint(TASK, 60, 0)
    (argument,) = fixed
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{argument}'"):
        METHODS[name](exact, theta, x, **fixed)


@pytest.mark.parametrize("name", METHODS)
def test_constant_columns_give_a_valid_p_value(name: str) -> None:
    theta, x = sample_joint(TASK, 60, 0)
    theta = torch.cat([theta, torch.full((60, 1), 4.0)], dim=1)
    x = torch.cat([x, torch.zeros(60, 1)], dim=1)

    def q(num_samples: int, x: Tensor) -> Tensor:
        constant = torch.full((num_samples, len(x), 1), 4.0)
        return torch.cat([exact(num_samples, x[:, :2]), constant], dim=2)

    # One exact test each: below 1e-3 with probability 0.012 over the twelve, at a fixed seed.
    assert 1e-3 < run(name, q, theta, x) <= 1.0


@pytest.mark.parametrize("name", METHODS)
def test_all_ties_give_a_valid_p_value(name: str) -> None:
    theta, x = torch.ones(60, 2), torch.ones(60, 2)
    assert 1e-3 < run(name, lambda num, x: torch.ones(num, len(x), 2), theta, x) <= 1.0


@pytest.mark.parametrize("name", METHODS)
def test_too_few_pairs_are_refused_or_enough(name: str) -> None:
    for n in (0, 1, 3):
        theta, x = torch.zeros(n, 2), torch.randn(n, 2, generator=torch.Generator().manual_seed(0))
        try:
            assert 0.0 < run(name, exact, theta, x) <= 1.0
        except ValueError as error:
            assert "at least" in str(error)  # noqa: PT017 - an error or a p-value


@pytest.mark.parametrize("name", METHODS)
def test_a_posterior_that_draws_nan_is_refused(name: str) -> None:
    def q(num_samples: int, x: Tensor) -> Tensor:
        return torch.where(x[:, :1] > 0, exact(num_samples, x), torch.nan)

    theta, x = sample_joint(TASK, 60, 1)
    with pytest.raises(ValueError, match="`q` must draw finite parameters"):
        run(name, q, theta, x)


@pytest.mark.parametrize("name", ["sbc", "tarp", "score_rank", "discriminative_calibration"])
def test_a_single_draw_gives_a_valid_p_value(name: str) -> None:
    theta, x = sample_joint(TASK, 60, 2)
    assert 1e-3 < run(name, exact, theta, x, num_samples=1) <= 1.0


@pytest.mark.parametrize("name", ["hpd", "local_hpd"])
def test_a_single_draw_is_refused_where_a_density_has_to_be_estimated(name: str) -> None:
    theta, x = sample_joint(TASK, 60, 3)
    with pytest.raises(ValueError, match="at least 4 where q has no density; got 1"):
        run(name, exact, theta, x, num_samples=1)


@pytest.mark.parametrize("name", METHODS)
def test_mismatched_dimensions_are_refused(name: str) -> None:
    theta, x = sample_joint(TASK, 60, 4)
    bad = partial(run, name, exact)
    with pytest.raises(ValueError, match="60 and 59 rows"):
        bad(theta, x[1:])
    with pytest.raises(ValueError, match=r"must be a matrix.* got shape \(60,\)"):
        bad(theta[:, 0], x)
    with pytest.raises(ValueError, match="dimension 1, as `theta` has; its draws have 2"):
        bad(theta[:, :1], x)
    with pytest.raises(ValueError, match="1 of 60 rows hold NaN"):
        bad(theta, x.index_fill(0, torch.tensor([7]), torch.nan))


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_p_value(name: str) -> None:
    theta, x = sample_joint(TASK, 40, 5)
    assert run(name, exact, theta, x, seed=1) == run(name, exact, theta, x, seed=1)
