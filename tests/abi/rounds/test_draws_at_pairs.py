"""Draws of an answer at the x of check pairs, inside a region: its law cut there, at every x."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from scipy.stats import kstest, truncnorm
from torch import Tensor

from abi.rounds.checks import draws_inside
from simulators.random import torch_generator

NUM_DRAWS, NUM_X = 40, 300


class Normals:
    """q(theta | x) = N(x, 1), which counts its draws."""

    def __init__(self) -> None:
        self.model = SimpleNamespace(trend=SimpleNamespace(dim=1))
        self.num_drawn = 0

    def sample(self, num_samples: int, x: Tensor, seed: int) -> Tensor:
        self.num_drawn += num_samples * len(x)
        noise = torch.randn(num_samples, len(x), 1, generator=torch_generator(seed))
        return x[None] + noise


class Positive:
    """theta > 0."""

    def contains(self, theta: Tensor) -> Tensor:
        return theta[:, 0] > 0.0


def found_at(x: Tensor) -> tuple[Tensor, Tensor, int]:
    q: Any = Normals()
    regions: Any = (Positive(),)
    draws, enough = draws_inside(q, regions, x, NUM_DRAWS, seed=0)
    return draws, enough, q.num_drawn


def test_they_have_the_law_cut_to_the_region_wherever_a_quarter_lies_inside() -> None:
    for place in (-0.4, 0.5, 3.0):
        draws, enough, _ = found_at(torch.full((NUM_X, 1), place))
        law = truncnorm(-place, torch.inf, loc=place)
        inside = draws[:, enough, 0]
        assert enough.float().mean() > 0.8
        assert kstest(inside.flatten(), law.cdf).pvalue > 0.001
        # Whether a draw came first or last tells nothing of it.
        assert kstest(inside[-5:].flatten(), law.cdf).pvalue > 0.001


def test_an_x_of_which_hardly_a_draw_lies_inside_is_left_out() -> None:
    _, enough, _ = found_at(torch.tensor([[-2.0], [0.0], [-4.0], [2.0]]))
    assert enough.tolist() == [False, True, False, True]


def test_where_few_are_missing_few_are_drawn_again() -> None:
    _, enough, num_drawn = found_at(torch.full((NUM_X, 1), 1.3))  # a tenth lies outside
    assert enough.all()
    assert num_drawn < 1.5 * NUM_DRAWS * NUM_X
