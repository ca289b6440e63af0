"""How many of the nearest draws are kept."""

from __future__ import annotations

import pytest
import torch

from abi import baselines
from abi.baselines.approximate.nearest import Nearest
from simulators import GaussianLinear, sample_joint
from simulators.random import torch_generator

TASK = GaussianLinear(2, 1.0, 0.1)  # posterior N(x / 1.1, 0.1 / 1.1)
X_O = torch.tensor([0.5, -0.5])


def kept(theta: torch.Tensor, seen: torch.Tensor, fraction: float | None = None) -> int:
    return len(Nearest(theta, seen, fraction, 0).to(X_O)[1])


def test_few_are_kept_where_x_tells_much_and_many_where_it_tells_nothing() -> None:
    theta, x = sample_joint(TASK, 10_000, seed=0)
    noises = [torch.randn(x.shape, generator=torch_generator(seed)) for seed in range(5)]
    nothing = [kept(theta, noise) for noise in noises]
    assert kept(theta, theta) <= 40
    assert 80 <= kept(theta, x) <= 320
    assert min(nothing) >= 160
    assert sorted(nothing)[2] >= 640


def test_what_is_chosen_is_nearly_the_nearest_to_the_posterior() -> None:
    """Against the exact sample, by sliced distance: no fraction tried is nearer by a third."""
    from abi import metrics

    exact = TASK.reference_posterior(X_O, 4_000, seed=1)
    theta, x = sample_joint(TASK, 20_000, seed=2)

    def off(fraction: float | None) -> float:
        draws = Nearest(theta, x, fraction, 0).to(X_O)[1]
        return metrics.sliced_distance(draws, exact, seed=0)

    assert off(None) < 1.33 * min(off(share) for share in (0.001, 0.005, 0.02, 0.1))
    assert off(None) < 0.5 * off(0.1)


def test_the_kept_are_the_nearest_in_order_and_never_fewer_than_twenty() -> None:
    theta, x = sample_joint(TASK, 1_000, seed=0)
    distance, draws = Nearest(theta, x, 0.001, 0).to(X_O)
    assert len(draws) == 20
    assert torch.equal(distance, (x - X_O).norm(dim=1).sort().values[:20])
    assert kept(theta, x, 0.1) == 100
    assert kept(theta[:60], x[:60]) == 20
    assert kept(theta[:10], x[:10]) == 10


def test_a_parameter_that_does_not_vary_does_no_harm() -> None:
    theta, x = sample_joint(TASK, 2_000, seed=0)
    theta[:, 1] = 3.0
    assert kept(theta, x) >= 20


@pytest.mark.parametrize("method", [baselines.rejection_abc, baselines.abc_ss])
def test_the_number_kept_is_told_and_the_same_at_the_same_seed(method: object) -> None:
    assert callable(method)
    first, second = (method(TASK.prior, TASK, X_O, num_simulations=2_000, seed=4) for _ in range(2))
    assert first.details["accepted"] == second.details["accepted"] >= 20
    assert torch.equal(first.sample((50,)), second.sample((50,)))
    assert first.sample((0,)).shape == (0, 2)
