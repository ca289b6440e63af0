"""Plain functions of every form: how each is called, how seldom to find out, what it returns."""

from __future__ import annotations

import functools
import random
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor

from simulators import GaussianLinear, from_function, sample_joint, simulate
from simulators.given.function import Form
from simulators.given.observation import Observed
from simulators.given.task import recognise

THETA = torch.tensor([[0.25, 0.5], [0.75, 1.0], [0.5, 2.0]])
NAMES = ("beta", "gamma")
Pair = namedtuple("Pair", "x y")
RNG = np.random.default_rng(5)


class Counted:
    """A function with the number of its calls, and the signature it had."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.calls = 0
        functools.update_wrapper(self, function)

    def __call__(self, *given: Any, **named: Any) -> Any:
        self.calls += 1
        return self.__wrapped__(*given, **named)  # type: ignore[attr-defined]


def numpy_theta(theta: Any) -> Any:
    beta, gamma = theta
    return np.array([beta, beta + gamma])


def numpy_list(theta: Any) -> Any:
    return [theta[0].item(), float(np.sum(theta))]


def numpy_batch(theta: Any) -> Any:
    return np.column_stack([theta[:, 0], theta.sum(axis=1)])


def three_values(theta: Any) -> Any:
    return [theta[0], theta[1], 1.0]


def torch_theta(theta: Tensor) -> Tensor:
    return torch.stack([theta[0], theta.sum()])


def torch_batch(theta: Tensor) -> Tensor:
    return torch.stack([theta[:, 0], theta.sum(dim=1)], dim=1)


def numbers(beta: float, gamma: float) -> Any:
    return beta, beta + gamma


def other_order(gamma: float, beta: float, *, scale: float = 1.0) -> Any:
    return scale * beta, scale * (beta + gamma)


def columns(beta: Tensor, gamma: Tensor) -> Tensor:
    return torch.stack([beta, beta + gamma], dim=1)


def columns_as_tuple(beta: Tensor, gamma: Tensor) -> Any:
    return beta + torch.zeros(len(beta)), beta + gamma


def mapping(parameters: dict[str, float]) -> Any:
    return {"x": parameters["beta"], "y": parameters["beta"] + parameters["gamma"]}


def any_names(**parameters: float) -> Any:
    return [parameters["beta"], parameters["beta"] + parameters["gamma"]]


def named_tuple(theta: Any) -> Any:
    return Pair(theta[0], theta.sum())


def nested(theta: Any) -> Any:
    return {"part": [theta[0]], "whole": np.sum(theta)}


def series(theta: Any) -> Any:
    return pd.Series({"x": theta[0], "y": np.sum(theta)})


def row_of_two(theta: Tensor) -> Any:
    return [float(theta[0, 0]), float(theta[0, 0] + theta[0, 1])]


ONE, MANY = Form(), Form(batched=True)
FORMS: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (numpy_theta, {"numpy": True}),
    (numpy_list, {"numpy": True}),
    (numpy_batch, {"numpy": True, "batched": True}),
    (torch_theta, {}),
    (torch_batch, {"batched": True}),
    (numbers, {"takes": "numbers", "names": NAMES, "numpy": True}),
    (other_order, {"takes": "numbers", "names": NAMES, "numpy": True}),
    (columns, {"takes": "numbers", "names": NAMES, "batched": True}),
    (columns_as_tuple, {"takes": "numbers", "names": NAMES, "batched": True}),
    (mapping, {"takes": "mapping", "names": NAMES, "numpy": True, "values": ("x", "y")}),
    (any_names, {"takes": "numbers", "names": NAMES, "numpy": True}),
    (named_tuple, {"values": ("x", "y")}),
    (nested, {"numpy": True, "values": ("part", "whole")}),
    (series, {"numpy": True, "values": ("x", "y")}),
    (row_of_two, {"takes": "row"}),
]


@pytest.mark.parametrize(
    ("function", "form"), FORMS, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_function_of_any_form_gives_a_row_a_theta(
    function: Callable[..., Any], form: dict[str, Any]
) -> None:
    found = recognise(function, THETA, NAMES, observed=Observed.of([0.0, 0.0]))
    assert found.simulator.form == Form(**form)  # type: ignore[attr-defined]
    expected = torch.stack([THETA[:, 0], THETA.sum(dim=1)], dim=1)
    assert torch.equal(found.simulator(THETA, 1), expected)
    assert torch.equal(found.simulator(THETA[:1], 1), expected[:1])


@pytest.mark.parametrize(
    ("function", "calls"),
    [(three_values, 1), (numbers, 1), (numpy_theta, 2), (torch_batch, 2), (numpy_batch, 2)],
)
def test_the_form_is_found_in_one_call_or_two(function: Callable[..., Any], calls: int) -> None:
    """Two where a function of many theta refuses one, or x is as long as theta."""
    counted = Counted(function)
    recognise(counted, THETA, NAMES)
    assert counted.calls == calls


def test_a_task_and_a_form_that_is_told_are_not_called() -> None:
    assert recognise(GaussianLinear(2), THETA).simulator == GaussianLinear(2)
    counted = Counted(torch_batch)
    task = from_function(counted, lambda n: torch.rand(n, 2), batched=True)
    assert recognise(task, THETA).simulator is task
    assert counted.calls == 0


def test_from_function_finds_the_form_once_and_late() -> None:
    counted = Counted(three_values)
    task = from_function(counted, lambda n: torch.rand(n, 2))
    assert counted.calls == 0
    theta, x = sample_joint(task, 3, seed=1)
    assert torch.equal(x[:, 0], theta[:, 0])
    sample_joint(task, 3, seed=1)
    assert counted.calls == 1 + 2 * 3


def test_noise_as_long_as_theta_is_told_from_many_simulations() -> None:
    def batch(theta: Tensor) -> Tensor:
        return theta.sum(dim=-1) + torch.randn(len(theta))

    def images(theta: Tensor) -> Tensor:
        return theta.sum(dim=-1)[..., None, None] + torch.randn(len(theta), 3, 4)

    def image(theta: Any) -> Any:
        beta, gamma = theta
        return np.outer([beta, gamma], np.arange(3.0))

    assert recognise(batch, THETA).simulator(THETA, 1).shape == (3, 1)
    for observed in (None, Observed.of(np.zeros((3, 4))), Observed.of(np.zeros(12))):
        assert recognise(images, THETA, observed=observed).simulator(THETA, 1).shape == (3, 12)
    found = recognise(image, THETA, observed=Observed.of(np.zeros((2, 3)))).simulator
    assert found(THETA, 1)[1].tolist() == [0.0, 0.75, 1.5, 0.0, 1.0, 2.0]


def test_a_function_that_takes_both_is_called_so_that_noise_is_not_shared() -> None:
    def shared(theta: Any) -> Any:
        return theta + np.random.normal(size=2)

    def a_row(theta: Tensor) -> Tensor:
        x = theta + torch.randn(theta.shape)
        x[torch.rand(len(x)) < 0.3] = torch.nan
        return x

    counted = Counted(shared)
    found = recognise(counted, THETA, observed=Observed.of([0.0, 0.0])).simulator
    assert not found.form.batched  # type: ignore[attr-defined]
    assert counted.calls == 3
    assert len({tuple(row) for row in (found(THETA, 1) - THETA).tolist()}) == 3
    assert recognise(a_row, THETA).simulator.form.batched  # type: ignore[attr-defined]


@pytest.mark.parametrize("spoil", ["raises", "nan"])
def test_a_simulator_that_fails_at_some_theta_is_not_taken_for_one_of_another_form(
    spoil: str,
) -> None:
    def delicate(theta: Any) -> Any:
        beta, gamma = theta
        if beta < 0.5 and spoil == "raises":
            raise ArithmeticError("no convergence")
        return np.array([beta if beta >= 0.5 else np.nan, gamma])

    found = recognise(delicate, THETA, observed=Observed.of([0.0, 0.0])).simulator
    assert not found.form.batched  # type: ignore[attr-defined]
    run = simulate(found, THETA, seed=1, max_failure_fraction=1.0, progress=False)
    assert [failure.index for failure in run.failures] == [0]


def own_stream(theta: Any) -> Any:
    return theta[0] + RNG.normal(size=2)


def standard_library(theta: Any) -> Any:
    return [float(np.sum(theta)) + random.gauss(0, 1)]


def asks_for_rng(beta: float, gamma: float, rng: np.random.Generator) -> Any:
    return rng.normal(beta, gamma, size=2)


def asks_for_seed(theta: Any, seed: int) -> Any:
    np.random.seed(seed)
    return theta[0] + np.random.normal(size=2)


def asks_for_generator(theta: Tensor, generator: torch.Generator) -> Tensor:
    return theta[0] + torch.randn(2, generator=generator)


@pytest.mark.parametrize(
    "function",
    [own_stream, standard_library, asks_for_rng, asks_for_seed, asks_for_generator],
)
def test_noise_from_anywhere_is_a_function_of_seed_and_row(function: Callable[..., Any]) -> None:
    before = RNG.bit_generator.state
    first = recognise(function, THETA).simulator(THETA, 3)
    again = recognise(function, THETA).simulator(THETA, 3)
    assert torch.equal(first, again)
    assert torch.equal(first[1:], recognise(function, THETA).simulator(THETA[1:], 3, first_row=1))
    assert not torch.equal(first, recognise(function, THETA).simulator(THETA, 4))
    assert RNG.bit_generator.state == before


def test_a_function_that_knows_numpy_by_its_rng_alone_gets_arrays() -> None:
    kinds = set[type]()

    def noisy(theta: Any, rng: Any) -> Any:
        kinds.add(type(theta))
        return rng.normal(theta, 0.1)

    recognise(noisy, THETA).simulator(THETA, 3)
    assert kinds == {np.ndarray}


def fails_at_length() -> None:
    raise ValueError("the step became " + "much " * 10 + "too large for the solver" + " here" * 9)


def test_workers_do_not_share_the_noise_of_a_generator_of_the_function() -> None:
    found = recognise(own_stream, THETA).simulator
    theta = THETA[:1].repeat(40, 1)
    one = simulate(found, theta, seed=2, progress=False).x
    two = simulate(found, theta, seed=2, workers=2, progress=False).x
    assert torch.equal(one, two)
    assert len(set(one[:, 0].tolist())) == 40


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda theta: None, ValueError, r"`simulator` returned None; end it with `return`"),
        (lambda theta: "abc", ValueError, "`simulator` must return numbers; got 'abc'"),
        # Each library has its own kind of them, and of many theta it may fail in another way.
        (
            lambda a, b: np.fft.fft([a, b]),
            ValueError,
            r"^`simulator` must return real numbers; got torch.complex.* absolute value\.$",
        ),
        (lambda theta: theta[0] + 1j * theta[1], ValueError, r"real numbers; .* absolute value\.$"),
        (lambda theta: fails_at_length(), ValueError, r"too large for the .* \(test_forms.py"),
        (
            lambda theta: {}["key"],
            ValueError,
            r"raised KeyError: 'key' \(test_forms.py, line .*lambda",
        ),
        (
            lambda theta: theta[len(theta) + 4],
            ValueError,
            r"none of the forms tried, at 3 theta .*",
        ),
        (lambda a, b, c: a, TypeError, "`simulator` asks for a, b, c, where `prior` has 2 param"),
        (3, TypeError, "`simulator` must be a callable"),
    ],
)
def test_what_works_in_no_form_is_told_with_its_own_error(
    function: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        recognise(function, THETA)
    assert "\n" not in str(caught.value)


def test_names_that_would_be_mixed_up_are_refused() -> None:
    def swapped(b: float, g: float) -> float:
        return b - g

    with pytest.raises(TypeError, match="asks for b, g, where `prior` has beta, gamma"):
        recognise(swapped, THETA, NAMES)
    assert recognise(swapped, THETA).names == ("b", "g")
    assert recognise(swapped, THETA, given=("first", "second")).names == ("b", "g")
    with pytest.raises(
        ValueError, match=r"`prior` and `parameter_names` must name .* in one order"
    ):
        recognise(numbers, THETA, NAMES, ("gamma", "beta"))
