"""What is wrong in words: the right thing is named, with its size, and nothing without cause."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from simulators.random import isolated_rng
from validation import panel
from validation.swaps.findings import Finding
from validation.swaps.words import sentences

X_DIM = THETA_DIM = 3
SD = 0.7


def pairs(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """theta | x ~ N(x / 2, .7^2), all parameters alone."""
    with isolated_rng(seed):
        x = torch.randn(count, X_DIM)
        return x / 2 + SD * torch.randn(count, THETA_DIM), x


def exact(x: Tensor) -> Normal:
    return Normal(x / 2, SD)


def found(q: Callable[[Tensor], Normal], count: int = 400, seed: int = 1) -> tuple[Finding, ...]:
    theta, x = pairs(count, seed)
    findings: tuple[Finding, ...] = panel(q, theta, x, seed=seed).details["findings"]
    return findings


FIRST = torch.tensor([1.0, 0.0, 0.0])


def test_a_mean_that_is_off_is_found_with_its_size_and_side() -> None:
    one = found(lambda x: Normal(x / 2 + 0.4 * SD * FIRST, SD))[0]
    assert (one.kind, one.parameters, one.column) == ("mean", (0,), None)
    assert one.low <= 0.4 <= one.high
    assert sentences([one])[0].startswith("theta_1 lies too high by 0.")
    one = found(lambda x: Normal(x / 2 - 0.4 * SD * FIRST, SD))[0]
    assert sentences([one], ["speed", "a", "b"])[0].startswith("speed lies too low by 0.")


@pytest.mark.parametrize(("factor", "word"), [(0.6, "narrow"), (1.6, "wide")])
def test_a_width_that_is_off_is_found_with_its_size(factor: float, word: str) -> None:
    scale = SD * torch.tensor([1.0, factor, 1.0])
    one = found(lambda x: Normal(x / 2, scale))[0]
    assert (one.kind, one.parameters) == ("width", (1,))
    assert one.low <= factor**-2 <= one.high
    (said,) = sentences([one])
    assert said.startswith(f"theta_2 is too {word} by ")
    low, high = (float(part) for part in said.removesuffix("%").split(" by ")[1].split(" to "))
    assert low <= abs(100 * (factor - 1.0)) <= high


def test_an_error_that_cancels_over_x_is_found_where_it_is() -> None:
    one = found(lambda x: Normal(x / 2 + 0.5 * SD * x[:, :1] * FIRST, SD))[0]
    assert (one.kind, one.parameters, one.column) == ("mean by x", (0,), 0)
    (said,) = sentences([one], None, ["dose", "b", "c"])
    assert said.startswith("theta_1 is right on average, but too high")
    assert " where dose is large: by 0." in said
    assert said.endswith(" sd per sd of dose")


def test_a_dependence_that_is_missing_is_found() -> None:
    correlation = 0.6
    factor = torch.linalg.cholesky(torch.tensor([[1.0, correlation], [correlation, 1.0]]))
    with isolated_rng(3):
        x = torch.randn(400, 2)
        theta = x / 2 + torch.randn(400, 2) @ factor.T
    (one,) = panel(lambda x: Normal(x / 2, 1.0), theta, x).details["findings"]
    assert (one.kind, one.parameters) == ("dependence", (0, 1))
    assert "q's correlation is too low by" in sentences([one])[0]


def test_nothing_is_found_in_an_exact_posterior_but_at_the_level() -> None:
    tries = 150
    some = sum(bool(found(exact, 60, seed)) for seed in range(tries))
    assert some / tries <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / tries)


def test_many_columns_of_x_are_looked_at_along_few_directions() -> None:
    with isolated_rng(5):
        x = torch.randn(300, 1) + 0.1 * torch.randn(300, 60)
        theta = x.mean(dim=1, keepdim=True) + torch.randn(300, 1)
    (one,) = panel(lambda x: Normal(2.0 * x.mean(dim=1, keepdim=True), 1.0), theta, x).details[
        "findings"
    ][:1]
    assert one.direction
    assert "along main direction 1 of x" in sentences([one])[0]
