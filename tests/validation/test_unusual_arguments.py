"""Arguments of the wrong kind or size: taken where their meaning is plain, else refused."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Independent, Uniform

import simulators
from abi import metrics, msw_distance
from abi.quantiles.distance import draw_directions
from simulators.base import check_names
from simulators.given.priors import FunctionPrior, as_sampler
from simulators.random import torch_generator

PRIOR = Independent(Uniform(torch.zeros(2), torch.ones(2)), 1)
NEEDS_A_SEED = [
    simulators.MG1(), simulators.MultimodalGaussian(), simulators.Cosine(),
    simulators.LotkaVolterra(), simulators.JansenRit(), simulators.LynxHare(),
    simulators.GaussianLinear(), simulators.GaussianLinearUniform(), simulators.BernoulliGLM(),
    simulators.TwoMoons(), simulators.GaussianMixture(),
]  # fmt: skip


def normal(n: int, d: int = 1, *, seed: int, mean: float = 0.0, sd: float = 1.0) -> Tensor:
    draws = torch.randn(n, d, generator=torch_generator(seed), dtype=torch.float64)
    return mean + sd * draws


def square(num_samples: int) -> Any:
    return np.random.rand(num_samples, 2)


def twice(theta: Tensor) -> Tensor:
    return 2.0 * theta


# --- simulators -----------------------------------------------------------------------------------


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("kind", [np.asarray, torch.Tensor.tolist])
def test_a_task_of_a_function_takes_theta_of_any_kind(batched: bool, kind: Any) -> None:
    task = simulators.from_function(twice, PRIOR, batched=batched)
    theta = torch.tensor([[0.25, 0.5], [0.75, 1.0]])
    assert torch.equal(task(kind(theta), seed=1), twice(theta))
    assert task(torch.zeros(0, 2), seed=1).shape == (0, 2)


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("theta", [torch.zeros(2), torch.zeros(1, 3)])
def test_a_task_of_a_function_refuses_theta_of_another_shape(batched: bool, theta: Tensor) -> None:
    task = simulators.from_function(twice, PRIOR, batched=batched)
    with pytest.raises(ValueError, match=r"`theta` must have shape \(n, 2\)"):
        task(theta, seed=1)


def test_a_function_is_a_prior_everywhere() -> None:
    task = simulators.from_function(twice, square, parameter_names=["a", "b"])
    assert task.theta_dim == 2
    theta, x = simulators.sample_joint(task, 5, seed=3)
    assert torch.equal(x, twice(theta))
    assert torch.equal(task.prior.sample((0,)), torch.zeros(0, 2, dtype=torch.float64))
    assert torch.equal(
        simulators.sample_prior(square, 4, seed=1),
        simulators.sample_prior(FunctionPrior(square), 4, seed=1),
    )
    assert as_sampler(PRIOR) is PRIOR
    with pytest.raises(TypeError, match=r"`prior` must have sample.*got int"):
        simulators.sample_prior(3, 4, seed=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "error", "words"),
    [
        (["a", "a"], ValueError, "'a' appears twice"),
        ("ab", TypeError, "got the string 'ab'"),
        (["a"], ValueError, "2 parameters of the prior; got 1"),
        ([], ValueError, "got 0"),
    ],
)
def test_names_are_as_many_different_ones_as_parameters(
    names: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        simulators.from_function(twice, PRIOR, parameter_names=names)
    assert check_names(np.array(["a", "b"]), 2) == ("a", "b")  # type: ignore[arg-type]


@pytest.mark.parametrize("task", NEEDS_A_SEED, ids=lambda task: type(task).__name__)
@pytest.mark.parametrize("seed", [-1, 1.5, 1 << 64])
def test_a_simulator_refuses_what_is_no_seed(task: Any, seed: Any) -> None:
    with pytest.raises(ValueError, match="`seed` must"):
        task(torch.full((1, task.theta_dim), 0.5), seed=seed)


def test_a_function_and_its_joint_draws_refuse_what_is_no_seed() -> None:
    task = simulators.from_function(twice, PRIOR)
    with pytest.raises(ValueError, match="`seed` must be a whole number of at least 0; got -1"):
        task(torch.zeros(1, 2), seed=-1)
    with pytest.raises(ValueError, match=r"`seed` must be a whole number of at least 0; got 0\.5"):
        simulators.sample_joint(task, 3, seed=0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("task", NEEDS_A_SEED, ids=lambda task: type(task).__name__)
@pytest.mark.parametrize("changes", [{"num_samples": -3}, {"num_samples": 2.0}, {"seed": -1}])
def test_an_exact_posterior_refuses_counts_and_seeds_that_are_none(
    task: Any, changes: dict[str, Any]
) -> None:
    if isinstance(task, simulators.LotkaVolterra | simulators.JansenRit):
        pytest.skip("it has none")
    (name,) = changes
    with pytest.raises(ValueError, match=f"`{name}` must be a whole number of at least 0"):
        task.reference_posterior(task.observation, **{"num_samples": 5} | changes)


def test_one_draw_of_lynx_and_hares_is_the_first_of_many() -> None:
    task = simulators.LynxHare()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = task.reference_posterior(task.observation, 1, seed=2)
    many = task.reference_posterior(task.observation, 100, seed=2)
    assert torch.equal(one, many[:1])


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("kind", [torch.Tensor.clone, np.asarray])
def test_complex_values_are_a_failed_simulation(batched: bool, kind: Any) -> None:
    def wave(theta: Tensor) -> Any:
        return kind(torch.exp(1j * theta))

    task = simulators.from_function(wave, PRIOR, batched=batched)
    with pytest.raises(TypeError, match=r"`simulator` must return real numbers; got torch.complex"):
        task(torch.zeros(3, 2), seed=1)
    run = simulators.simulate(task, torch.zeros(3, 2), seed=1, max_failure_fraction=1.0)
    assert len(run.failures) == 3
    assert "real numbers" in run.failures[0].reason


# --- distances and metrics ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("directions", "words"),
    [
        (torch.eye(2)[:1], r"shape \(K \+ 2, 2\); got \(1, 2\)"),
        (torch.eye(3), r"got \(3, 3\)"),
        (torch.ones(2), r"got \(2,\)"),
        (torch.eye(2).flip(0), "end with the 2 axes"),
        (torch.cat([torch.full((1, 2), math.nan), torch.eye(2)]), "NaN"),
    ],
)
def test_directions_end_with_the_axes(directions: Tensor, words: str) -> None:
    a, b = normal(20, 2, seed=1), normal(20, 2, seed=2)
    with pytest.raises(ValueError, match=words):
        msw_distance(a, b, directions=directions)
    with pytest.raises(
        ValueError, match="`num_slices` must be a whole number of at least 0; got -1"
    ):
        msw_distance(a, b, num_slices=-1)


def test_directions_may_be_an_array() -> None:
    a, b = normal(20, 2, seed=1), normal(30, 2, seed=2)
    directions = draw_directions(2, 4, torch_generator(0))
    expected = msw_distance(a, b, directions=directions)
    assert msw_distance(a, b, directions=directions.numpy()) == expected


def test_the_distance_of_single_precision_draws_far_from_0_is_that_of_doubles() -> None:
    a = (1e7 + 10.0 * normal(500, 2, seed=1)).float()
    b = (1e7 + 10.0 * normal(500, 2, seed=2, mean=0.5)).float()
    found = msw_distance(a, b)
    assert found.dtype == torch.float32
    assert float(found) == pytest.approx(float(msw_distance(a.double(), b.double())), rel=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: metrics.median_bandwidth(torch.zeros(5)), r"n >= 2; got \(5,\)"),
        (lambda: metrics.median_bandwidth(torch.zeros(1, 2)), r"n >= 2; got \(1, 2\)"),
        (lambda: metrics.median_bandwidth(torch.full((5, 1), math.nan)), "5 of 5 rows"),
        (lambda: metrics.mmd_squared(torch.ones(5, 1), torch.ones(5, 1)), "`reference` must vary"),
        (lambda: metrics.c2st(normal(3, seed=1), normal(3, seed=2)), "at least 10 draws"),
        (lambda: metrics.compare(torch.ones(20, 1), torch.ones(40, 1)), "`reference` must vary"),
    ],
)
def test_metrics_refuse_draws_they_cannot_measure(call: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()


def test_samples_that_do_not_vary_have_distances() -> None:
    found = metrics.compare(torch.ones(20, 1), torch.zeros(40, 1), metrics=["w1"])
    assert found["w1"].value == pytest.approx(1.0)
    assert found.bandwidth is None
    assert metrics.compare(
        normal(20, seed=1), normal(40, seed=2), metrics=["mmd_squared"]
    ).bandwidth


@pytest.mark.parametrize("classifier", ["mlp", "rf"])
@pytest.mark.parametrize("seed", range(3))
def test_ten_draws_are_enough_for_a_classifier(classifier: Any, seed: int) -> None:
    a, b = normal(10, seed=2 * seed), normal(10, seed=2 * seed + 1)
    assert 0.0 <= metrics.c2st(a, b, classifier=classifier, seed=seed) <= 1.0


def test_a_classifier_does_not_know_the_place() -> None:
    a, b = normal(200, seed=1), normal(200, seed=2, sd=3.0)
    # Doubles at 1e9 are 1e-7 apart, which moves a draw across a threshold now and then.
    far = metrics.c2st(a + 1e9, b + 1e9, classifier="rf")
    assert far == pytest.approx(metrics.c2st(a, b, classifier="rf"), abs=0.02)
