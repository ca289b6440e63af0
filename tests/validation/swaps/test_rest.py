"""What x tells beyond q: the level where q is right, and a q that has heard a part of x only."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from simulators.random import torch_generator
from validation.swaps.candidates import Candidates
from validation.swaps.panel import panel
from validation.swaps.rest import rest_of_x

SEEDS, DRAWS, SWAPS = 120, 25, 99
MOST_REJECTED = 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / SEEDS)


def looks(
    num_pairs: int, num_values: int, heard: int, seed: int, *, edges: bool = False
) -> tuple[Tensor, Tensor]:
    """Theta among draws of q (C, N, 1), and x (N, p): looks at theta, of which q has heard some.

    Theta is standard normal and each look is off by a standard normal error, or by a uniform one on
    (-1, 1) where a normal q of the looks' mean is right on average and blind to their edges.
    """
    generator = torch_generator(seed)
    theta = torch.randn(num_pairs, generator=generator)
    shape = num_pairs, num_values
    noise = (
        2.0 * torch.rand(shape, generator=generator) - 1.0
        if edges
        else torch.randn(shape, generator=generator)
    )
    x = theta[:, None] + noise
    precision = 1.0 + heard * (3.0 if edges else 1.0)
    mean = x[:, :heard].sum(dim=1) * (3.0 if edges else 1.0) / precision
    draws = mean + precision**-0.5 * torch.randn(DRAWS, num_pairs, generator=generator)
    return torch.cat([theta[None], draws])[..., None], x


def p_values(together: Tensor, x: Tensor, seed: int) -> tuple[float, float]:
    """That of what else x tells, and that of the whole panel."""
    context = torch.zeros(len(x), 1)
    rest = rest_of_x(x, together)
    some = Candidates.of(together[0], together[1:], context, None, seed=seed, rest=rest)
    found = panel(some, seed, num_swaps=SWAPS)
    return found.p_values["rest_of_x"], found.p_value


def test_a_posterior_that_heard_all_of_x_is_rejected_at_the_level() -> None:
    found = torch.tensor([p_values(*looks(60, 8, 8, seed), seed) for seed in range(SEEDS)])
    assert bool(((found <= 0.05).double().mean(dim=0) <= MOST_REJECTED).all())
    assert float(found[:, 0].mean()) == pytest.approx(0.5, abs=4.0 / math.sqrt(12 * SEEDS))


def test_a_posterior_that_heard_half_of_x_is_right_on_average_and_rejected() -> None:
    for seed in range(5):
        rest, together = p_values(*looks(200, 8, 4, seed), seed)
        assert rest <= 0.01
        assert together <= 0.05


def test_the_edges_of_a_uniform_law_are_heard_where_the_mean_says_nothing_more() -> None:
    for seed in range(5):
        rest, _ = p_values(*looks(300, 25, 25, seed, edges=True), seed)
        assert rest <= 0.01


def test_values_that_never_vary_and_values_that_q_knows_whole_tell_nothing() -> None:
    together, x = looks(60, 1, 1, 0)
    constant = torch.ones(60, 3)
    assert rest_of_x(constant, together) is None
    both = rest_of_x(torch.cat([x, constant], dim=1), together)
    assert both is not None
    assert bool(both.isfinite().all())


def test_a_few_pairs_are_asked_nothing() -> None:
    together, x = looks(30, 4, 4, 0)
    assert rest_of_x(x, together) is None
