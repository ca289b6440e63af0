"""Laws of small counts: Poisson, wider, and what is better described on a scale."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.distributions import Binomial, NegativeBinomial, Normal, Poisson

from abi.generators.pool.values.law import OfValues, learn_values
from simulators.random import isolated_rng, torch_generator

SLOPES = torch.linspace(-0.8, 0.8, 16).reshape(2, 8)


def theta_of(count: int, seed: int) -> Tensor:
    return torch.randn(count, 2, generator=torch_generator(seed))


def log_mean(theta: Tensor) -> Tensor:
    """Of eight counts, with a square: means of .1 to 10."""
    return theta @ SLOPES + 0.4 + 0.15 * theta[:, :1] ** 2


def drawn(law: torch.distributions.Distribution, seed: int) -> Tensor:
    with isolated_rng(seed):
        return law.sample()


def off_by(law: OfValues, x: Tensor, theta: Tensor, exact: Tensor) -> float:
    """The error of log p(x | theta), in sds of it among theta of the prior at one x."""
    away = law.log_prob(x, theta) - exact
    return float((away - away.mean()).square().mean().sqrt() / exact.std())


def wide(theta: Tensor) -> NegativeBinomial:
    """Variance = mean + mean^2 / 2."""
    return NegativeBinomial(torch.tensor(2.0), logits=log_mean(theta) - torch.tensor(2.0).log())


def test_counts_of_poisson() -> None:
    theta = theta_of(3_000, 0)
    law = learn_values(theta, drawn(Poisson(log_mean(theta).exp()), 1))[0]
    assert bool((law.shape > 20.0).all())
    others, x = theta_of(400, 1), drawn(Poisson(log_mean(theta_of(1, 2)).exp()), 3)
    exact = Poisson(log_mean(others).exp()).log_prob(x.expand(400, -1)).sum(dim=1)
    assert off_by(law, x, others, exact) < 0.1


def test_counts_that_vary_more() -> None:
    theta = theta_of(3_000, 0)
    law = learn_values(theta, drawn(wide(theta), 1))[0]
    assert law.shape.tolist() == pytest.approx([2.0] * 8, rel=0.35)
    others, x = theta_of(400, 1), drawn(wide(theta_of(1, 2)), 3)
    assert off_by(law, x, others, wide(others).log_prob(x.expand(400, -1)).sum(dim=1)) < 0.15


def test_large_counts_fractions_and_those_that_vary_less_are_measured_on_a_scale() -> None:
    theta = theta_of(2_000, 0)
    large = drawn(Poisson((log_mean(theta) + 5.0).exp()), 1)
    narrow = drawn(Binomial(20, logits=log_mean(theta)), 2)
    halves = 0.5 * drawn(Poisson(log_mean(theta).exp()), 3)
    for x in (large, narrow, halves):
        assert not learn_values(theta, x)[0].shape.any()


def test_counts_stand_beside_others() -> None:
    theta = theta_of(1_000, 0)
    few = drawn(Poisson(log_mean(theta).exp()), 1)
    measured = drawn(Normal(theta @ SLOPES, 0.5), 2)
    yes = (drawn(Normal(theta @ SLOPES, 1.0), 3) > 0.0).float()
    parts = [few, measured, yes]
    together = learn_values(theta, torch.cat(parts, dim=1))[0]
    assert (together.shape > 0).tolist() == [True] * 8 + [False] * 16
    apart = sum(learn_values(theta, part)[0].log_prob(part, theta) for part in parts)
    whole = together.log_prob(torch.cat(parts, dim=1), theta)
    torch.testing.assert_close(whole, apart, rtol=1e-2, atol=5e-2)


def test_a_count_that_is_hardly_ever_above_0_or_explodes_stays_finite() -> None:
    theta = theta_of(500, 0)
    rare = torch.zeros(500, 1)
    rare[7] = 2.0
    steep = drawn(Poisson((4.0 * theta[:, :1] - 6.0).clamp(max=8.0).exp()), 1)
    x = torch.cat([rare, steep], dim=1)
    law = learn_values(theta, x)[0]
    assert law.log_prob(x, theta).isfinite().all()
    assert law.log_prob(x[:1], 10.0 * theta).isfinite().all()
    assert law.log_prob(torch.tensor([[-1.0, 2.5]]), theta).isfinite().all()  # such an x_o
