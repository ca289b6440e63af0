"""Gaps in simulations: what is data, what is a failure, and of what they are a function."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

import simulators
from simulators import Simulations, from_function, sample_joint, simulate, with_gaps
from simulators.gaps.mechanism import UNDECLARED, with_places
from simulators.given.observation import same_values

THETA = torch.linspace(-1.0, 1.0, 60)[:, None]
PRIOR = {"level": torch.distributions.Normal(0.0, 1.0)}


def above_zero(theta: Tensor) -> Tensor:
    """Four noisy looks, of which those below 0 are not seen."""
    x = theta + torch.randn(len(theta), 4)
    return torch.where(x < 0.0, torch.nan, x)


def looks(theta: Tensor) -> Tensor:
    return theta + torch.randn(len(theta), 4)


def one_in_three(x: Tensor, rng: np.random.Generator) -> np.ndarray:
    return rng.random(len(x)) < 1 / 3


def simulated(simulator: object, **words: object) -> Simulations:
    runs: Simulations = simulate(simulator, THETA, seed=0, progress=False, **words)  # type: ignore[arg-type]
    return runs


def test_declared_nan_are_data_and_undeclared_ones_a_failure_that_hints_at_it() -> None:
    runs = simulated(with_gaps(above_zero))
    assert len(runs.x) == 60
    assert not runs.failures
    assert 0.3 < float(runs.x.isnan().float().mean()) < 0.7
    assert bool((runs.x[~runs.x.isnan()] >= 0.0).all())
    with pytest.raises(ValueError, match=r"not finite: .*NaN is a value not measured: simul"):
        simulated(above_zero)


def test_infinite_values_and_errors_stay_failures() -> None:
    def broken(theta: Tensor) -> Tensor:
        if bool((theta > 0.5).any()):
            raise RuntimeError("too large")
        x = above_zero(theta)
        x[theta[:, 0] < -0.5, 2] = torch.inf
        return x

    runs = simulated(with_gaps(broken))
    assert len(runs.failures) == int((THETA.abs() > 0.5).sum())
    reasons = {failure.reason.partition(":")[0] for failure in runs.failures}
    assert reasons == {"RuntimeError", "not finite"}


def test_what_a_function_hides_depends_on_seed_and_row_alone() -> None:
    simulator = with_gaps(simulators.GaussianLinear(), one_in_three)
    theta = torch.zeros(300, 10)
    x = simulator(theta, 3)
    assert same_values(simulator(theta[100:], 3, first_row=100), x[100:])
    assert not same_values(simulator(theta, 4), x)
    share = float(x.isnan().float().mean())
    assert abs(share - 1 / 3) < 5 * (2 / 9 / 3000) ** 0.5  # binomial
    kept = ~x.isnan()
    assert torch.equal(x[kept], simulators.GaussianLinear()(theta, 3)[kept])
    assert pickle.loads(pickle.dumps(simulator)) == simulator


def test_what_failed_is_not_hidden() -> None:
    def half_bad(theta: Tensor) -> Tensor:
        x = looks(theta)
        x[theta[:, 0] > 0.0, 1] = torch.nan
        return x

    runs = simulated(with_gaps(half_bad, lambda x: x > -torch.inf))
    assert len(runs.failures) == int((THETA > 0.0).sum())
    assert bool(runs.x.isnan().all())


@pytest.mark.parametrize("missing", [lambda x: x[:2] > 0, lambda x: x - 0.5])
def test_a_mechanism_that_gives_no_mask_is_told(missing: object) -> None:
    with pytest.raises(ValueError, match="`missing` must give True or False for each of the 4"):
        with_gaps(looks, missing)(THETA, 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", ["simulated", 0.5])
def test_a_mechanism_is_a_function(missing: object) -> None:
    with pytest.raises(TypeError, match="`missing` must be a function of one simulation x"):
        with_gaps(looks, missing)  # type: ignore[arg-type]


def test_simulations_get_the_gaps_of_an_observation() -> None:
    x_o = torch.tensor([0.0, torch.nan, 1.0, torch.nan])
    runs = simulated(with_places(looks, x_o))
    assert bool((runs.x.isnan() == x_o.isnan()).all())
    assert torch.equal(runs.x[:, 0], simulated(looks).x[:, 0])
    assert with_places(looks, torch.zeros(4)) is looks


def test_nan_of_the_simulator_where_an_observation_has_gaps_are_not_taken_for_them() -> None:
    def hides_second(theta: Tensor) -> Tensor:
        x = looks(theta)
        x[theta[:, 0] < 0.0, 1] = torch.nan
        return x

    runs = simulated(with_places(hides_second, torch.tensor([0.0, torch.nan, 1.0, 2.0])))
    assert {failure.reason for failure in runs.failures} == {UNDECLARED}
    assert len(runs.failures) == int((THETA < 0.0).sum())


def test_gaps_and_a_prior_are_said_in_either_order() -> None:
    first, second = (
        with_gaps(from_function(above_zero, PRIOR)),
        from_function(with_gaps(above_zero), PRIOR),
    )
    pairs = [sample_joint(task, 20, seed=1) for task in (first, second)]
    assert same_values(pairs[0][1], pairs[1][1])
    assert first.parameter_names == second.parameter_names == ("level",)
    assert not hasattr(with_gaps(simulators.GaussianLinear()), "reference_posterior")


def test_a_store_keeps_gaps_and_is_of_one_mechanism(tmp_path: Path) -> None:
    runs = simulated(with_gaps(looks, one_in_three), store=tmp_path)
    again = simulated(with_gaps(looks, one_in_three), store=tmp_path)
    assert same_values(runs.x, again.x)
    with pytest.raises(ValueError, match="store"):
        simulated(with_gaps(looks), store=tmp_path)


def test_two_workers_simulate_the_same_gaps() -> None:
    simulator = with_gaps(simulators.GaussianLinear(), one_in_three)
    theta = torch.zeros(40, 10)
    alone, two = (
        simulate(simulator, theta, seed=2, workers=workers, progress=False).x for workers in (1, 2)
    )
    assert same_values(alone, two)
