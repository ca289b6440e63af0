"""Ensembles of sbi: each draw at each x has a component of its own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

import validation
from simulators import GaussianLinear, sample_joint
from simulators.random import isolated_rng
from validation import as_posterior

TASK = GaussianLinear(2, 1.0, 1.0)
SHIFT = 3.0


class Component:
    """The exact posterior of ``TASK``, moved by ``shift``, with the face of sbi's posteriors."""

    def __init__(self, shift: float) -> None:
        self.shift = shift
        self.posterior_estimator = object()
        self.potential_fn = SimpleNamespace(prior=TASK.prior, device="cpu", set_x=lambda x: None)
        self._device = "cpu"
        self.bars: list[bool] = []

    def sample_batched(self, shape: Any, x: Tensor, show_progress_bars: bool = True) -> Tensor:
        self.bars.append(show_progress_bars)
        return self._law(x).sample(shape)

    def log_prob_batched(
        self, theta: Tensor, x: Tensor, norm_posterior: bool = True, **keywords: Any
    ) -> Tensor:
        return self._law(x).log_prob(theta).sum(dim=-1) - (0.0 if norm_posterior else self.shift)

    def _law(self, x: Tensor) -> Normal:
        return Normal(x / 2 + self.shift, 0.5**0.5)


Component.__module__ = "sbi.inference"


def ensemble(weights: list[float]) -> Any:
    with isolated_rng(0):  # importing sbi draws from a global stream
        inference = pytest.importorskip("sbi.inference")
    return inference.EnsemblePosterior([Component(0.0), Component(SHIFT)], weights=weights)


def from_mixture(x: Tensor, weights: list[float], seed: int) -> Tensor:
    with isolated_rng(seed):
        shifted = torch.rand(len(x), 1) < weights[1]
        return x / 2 + SHIFT * shifted + 0.5**0.5 * torch.randn(len(x), 2)


@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.9, 0.1]])
def test_any_draws_and_any_observations_hold_every_component_by_its_weight(
    weights: list[float],
) -> None:
    x = torch.linspace(-1.0, 1.0, 800).reshape(400, 2)
    samples = as_posterior(ensemble(weights)).sample(50, x, 3)
    shifted = ((samples - x / 2).mean(dim=2) > SHIFT / 2).float()
    # Binomial error of four sds; a component is taken for the other in 0.2% of the draws.
    for share, count in ((shifted[0].mean(), 400), (shifted[:, 0].mean(), 50)):
        assert abs(float(share) - weights[1]) < 4 * (weights[1] * weights[0] / count) ** 0.5 + 0.01


def test_the_truth_of_one_component_is_told_from_an_ensemble() -> None:
    theta, x = sample_joint(TASK, 200, seed=1)
    assert validation.c2st(ensemble([0.5, 0.5]), theta, x).p_value < 1e-3


@pytest.mark.parametrize("method", [validation.c2st, validation.discriminative_calibration])
def test_the_truth_of_the_mixture_is_not(method: Any) -> None:
    x = sample_joint(TASK, 200, seed=2)[1]
    theta = from_mixture(x, [0.5, 0.5], seed=3)
    assert method(ensemble([0.5, 0.5]), theta, x).p_value > 0.01


def test_the_density_is_that_of_the_mixture() -> None:
    x = torch.linspace(-1.0, 1.0, 8).reshape(4, 2)
    theta = torch.linspace(-2.0, 4.0, 24).reshape(3, 4, 2)
    parts = [Normal(x / 2 + shift, 0.5**0.5).log_prob(theta).sum(dim=-1) for shift in (0.0, SHIFT)]
    expected = (0.9 * parts[0].exp() + 0.1 * parts[1].exp()).log()
    found = as_posterior(ensemble([0.9, 0.1])).log_prob(theta, x)
    assert torch.allclose(found, expected, atol=1e-4)


def test_components_show_no_bars_of_their_own() -> None:
    q = ensemble([0.5, 0.5])
    as_posterior(q).sample(3, torch.zeros(2, 2))
    assert not any(bars for component in q.posteriors for bars in component.bars)
