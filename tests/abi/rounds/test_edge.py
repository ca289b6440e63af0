"""Where a region ends, as theta held out from training say."""

from __future__ import annotations

import math

import pytest
import torch

from abi.rounds.regions.edge import threshold
from simulators.random import torch_generator

DENSITIES = -torch.linspace(0.0, 40.0, 10_001)  # of draws, some in a tail that no theta lies in
BY_DRAWS = float(DENSITIES.quantile(1e-4))
MEDIAN = float(DENSITIES.median())


def drops(count: int, seed: int = 0) -> torch.Tensor:
    """Of a normal law in two dimensions: half a squared radius, which is exponential."""
    uniform = torch.rand(count, generator=torch_generator(seed))
    return -uniform.log()


@pytest.mark.parametrize("count", [30, 60, 199, 2_000])
def test_the_edge_is_where_an_exponential_law_has_its_last_half_percent(count: int) -> None:
    edges = [threshold(DENSITIES, 1e-4, drops(count, seed), few=True) for seed in range(200)]
    farthest = MEDIAN - 2.0 - torch.tensor(edges)  # two nats are to spare
    error = 4.0 * float(farthest.std()) / len(edges) ** 0.5
    # A maximum's mean lies beyond the quantile, by Euler's constant; sizes of the tail are rough.
    assert -error < float(farthest.mean()) + math.log(0.005) < 0.8 + error
    left_out = (-(farthest + 2.0)).exp()
    assert float(left_out.max()) < 0.02


def test_few_say_nothing_unless_they_are_asked_and_very_few_never_do() -> None:
    assert threshold(DENSITIES, 1e-4, drops(199), few=False) == BY_DRAWS
    assert threshold(DENSITIES, 1e-4, drops(29), few=True) == BY_DRAWS
    assert threshold(DENSITIES, 1e-4, drops(0), few=True) == BY_DRAWS
    assert threshold(DENSITIES, 1e-4, None, few=True) == BY_DRAWS
    enough = [threshold(DENSITIES, 1e-4, drops(200), few=few) for few in (False, True)]
    assert enough[0] == enough[1] > BY_DRAWS


def test_theta_far_out_draw_no_edge_farther_than_the_draws() -> None:
    far = drops(100)
    far[0] = 1e3
    assert threshold(DENSITIES, 1e-4, far, few=True) == BY_DRAWS
