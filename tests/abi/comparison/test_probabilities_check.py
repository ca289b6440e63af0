"""The test of probabilities of models, and intervals of log odds: level, power, known answers."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from abi.comparison.base import affordable, fitted
from abi.comparison.check import ModelCheck, check_probabilities
from abi.comparison.classifier import calibrate
from abi.comparison.odds import log_odds, nearness
from simulators.random import torch_generator


def drawn(count: int, num_models: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Features of x, log q and models that are draws from q."""
    generator = torch_generator(seed)
    features = torch.randn(count, 3, generator=generator)
    slopes = 2.0 * torch.randn(3, num_models, generator=torch_generator(0))
    log_q = (features @ slopes).double().log_softmax(dim=1)
    model = torch.multinomial(log_q.exp(), 1, generator=generator)[:, 0]
    return features, log_q, model


def check(log_q: Tensor, model: Tensor, features: Tensor, seed: int) -> ModelCheck:
    weights = nearness(features.double(), features[0].double())
    return check_probabilities(log_q, model, features, weights, seed, num_draws=199)


@pytest.mark.parametrize("num_models", [2, 3])
def test_exact_probabilities_are_rejected_at_the_level(num_models: int) -> None:
    rejected = 0
    for seed in range(200):
        features, log_q, model = drawn(300, num_models, seed)
        rejected += check(log_q, model, features, seed).rejects
    # Binomial(200, .05): mean 10, sd 3.1.
    assert 1 <= rejected <= 20


@pytest.mark.parametrize("num_models", [2, 3])
def test_probabilities_too_sure_by_half_are_rejected(num_models: int) -> None:
    rejected, sure = 0, 0
    for seed in range(20):
        features, log_q, model = drawn(700, num_models, seed)
        found = check((1.5 * log_q).log_softmax(dim=1), model, features, seed)
        rejected += found.rejects
        sure += found.sureness < 0.0
    assert rejected >= 17
    assert sure == 20


def test_a_model_that_is_favoured_and_an_overlooked_feature_are_seen() -> None:
    features, log_q, model = drawn(1_000, 2, 1)
    favoured = (log_q + torch.tensor([0.6, 0.0])).log_softmax(dim=1)
    found = check(favoured, model, features, 0)
    assert found.rejects
    assert found.leanings["share"][0] < 0.0 < found.leanings["share"][1]
    blind = torch.full_like(log_q, math.log(0.5))
    seen = check(blind, model, features, 0)
    assert seen.p_values["features"] == pytest.approx(1 / 200)


def test_an_interval_of_log_odds_holds_the_shift_that_was_made() -> None:
    held = 0
    for seed in range(100):
        _, log_q, model = drawn(600, 2, seed)
        z = log_q[:, 0] - log_q[:, 1] - 0.7
        near = nearness(z[:, None], torch.tensor([0.0]).double())
        found = log_odds(0.0, 0.0, z, model == 0, near)
        held += found.low <= 0.7 <= found.high
    assert held >= 88  # of 100 at 95%: mean 95, sd 2.2


def test_without_a_pair_of_one_side_the_end_is_that_of_the_likelihood() -> None:
    count = 400
    far = log_odds(9.0, 0.0, torch.full((count,), 9.0), torch.ones(count) == 1, torch.ones(count))
    # n log(1 + exp(-t)) = 1.92
    expected = -math.log(math.expm1(1.92 / count))
    assert far.low == pytest.approx(expected, abs=0.01)
    assert far.high == math.inf
    assert str(far) == f"at least {expected:.1f}"
    other = log_odds(
        -9.0, 0.0, torch.full((count,), -9.0), torch.zeros(count) == 1, torch.ones(count)
    )
    assert other.high == pytest.approx(-expected, abs=0.01)
    assert other.low == -math.inf


def test_calibration_undoes_a_scale_and_a_shift() -> None:
    _, log_q, model = drawn(20_000, 2, 3)
    wrong = (2.0 * log_q + torch.tensor([1.0, 0.0])).log_softmax(dim=1)
    scale, shifts = calibrate(wrong, model)
    # The offset of the calibration takes away the share of each model, which is q's mean here.
    offset = model.bincount().double().log()
    again = (scale * wrong + shifts + offset).log_softmax(dim=1)
    # 20,000 pairs: the standard error of a log odds is about .05 where it is 0.
    assert float((again.exp() - log_q.exp()).abs().mean()) < 0.02


def test_a_quadratic_logistic_regression_finds_what_is_quadratic() -> None:
    generator = torch_generator(0)
    narrow, wide = torch.randn(4_000, 1, generator=generator), torch.randn(
        4_000, 1, generator=generator
    )  # fmt: skip
    features = torch.cat([narrow, 2.0 * wide])
    model = torch.arange(2).repeat_interleave(4_000)
    base = fitted(features, model, torch.ones(8_000), torch.tensor([0.5, 0.5]).log())
    at = torch.tensor([[0.0], [1.0], [2.0]])
    logits = base(at)
    found = logits[:, 0] - logits[:, 1]
    exact = math.log(2.0) - 0.375 * at[:, 0].square()
    # Standard errors of the two coefficients are near .03 with 8,000 pairs.
    assert float((found - exact).abs().max()) < 0.15
    assert [affordable(k, 8_000) for k in (5, 50, 150)] == [2, 1, 0]
