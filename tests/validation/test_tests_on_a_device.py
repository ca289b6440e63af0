"""The networks of the tests on another device: the same results, back on the CPU."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from simulators import GaussianLinear, sample_joint
from validation import ColtTraining, Training, c2st, colt, fit_lc2st, score_rank
from validation.scores.ball_ranks import BallNetworks, fit_ball_networks, soft_ranks
from validation.scores.classifiers import _score, fit_classifiers
from validation.scores.divergences import sinkhorn_to_uniform, wasserstein_to_uniform
from validation.scores.stacked import Adam, Backpropagation, initial_weights

DEVICES = [
    "cpu",
    pytest.param(
        "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA here")
    ),
]
SHORT = Training(hidden=(16,), max_epochs=20, patience=5)


def _wide(num_samples: int, x: Tensor) -> Tensor:
    return x / 2 + torch.randn(num_samples, *x.shape)


def _pairs() -> tuple[Tensor, Tensor]:
    return sample_joint(GaussianLinear(2, 1.0, 1.0), 120, seed=1)


RUNS = {
    "c2st": lambda device: c2st(_wide, *_pairs(), training=replace(SHORT, device=device)),
    "c2st mse": lambda device: c2st(
        _wide, *_pairs(), statistic="mse", num_nulls=9, training=replace(SHORT, device=device)
    ),
    "score_rank": lambda device: score_rank(
        _wide, *_pairs(), num_samples=20, training=replace(SHORT, device=device)
    ),
    "colt": lambda device: colt(
        _wide, *_pairs(), num_samples=30,
        training=ColtTraining(hidden=(16,), epochs=20, device=device),
    ),
    "lc2st": lambda device: fit_lc2st(
        _wide, *_pairs(), num_nulls=9, training=replace(SHORT, device=device)
    ).test(torch.zeros(2)),
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", RUNS)
def test_a_test_gives_the_same_result_on_every_device(name: str, device: str) -> None:
    """Weights, splits and minibatches are drawn on the CPU; what differs is float32 rounding.

    Twenty epochs of rounding leave the statistics within a few percent of each other.
    """
    here, there = RUNS[name]("cpu"), RUNS[name](device)
    assert there.statistic == pytest.approx(here.statistic, rel=0.05, abs=0.02)
    assert there.p_value == pytest.approx(here.p_value, abs=0.15)
    tensors = [there.null_statistics, *there.details.values()]
    assert {v.device.type for v in tensors if isinstance(v, Tensor)} <= {"cpu"}


@pytest.mark.parametrize("device", DEVICES)
def test_networks_live_where_they_are_told_to(device: str) -> None:
    theta, x = _pairs()
    labels = (theta[:, 0] > 0).float()[None]
    networks = fit_classifiers(x, labels, training=replace(SHORT, device=device))
    assert {part.device.type for part in (*networks.weights, networks.shift)} == {device}
    assert networks.logits(x).device.type == "cpu"
    balls = fit_ball_networks(
        theta, theta.expand(30, -1, -1), x, embedding="full",
        training=ColtTraining(hidden=(8,), epochs=2, device=device), seed=0,
    )  # fmt: skip
    assert next(balls.point.parameters()).device.type == device
    assert balls.centre(x).device.type == "cpu"


def test_no_tensor_is_left_behind_on_the_cpu() -> None:
    """Without a GPU: tensors on the device "meta" refuse to meet those on the CPU."""
    features, targets = torch.empty(50, 3, device="meta"), torch.empty(4, 50, 1, device="meta")
    start = [value.to(features) for value in initial_weights((3, 8, 1), 4, 0)]
    optimiser = Adam.start(start, 1e-3)
    optimiser.step(*Backpropagation().gradients(features, targets, optimiser.parameters))
    score = _score(features, targets, optimiser.parameters, "accuracy")
    layer = torch.nn.Sequential(torch.nn.Linear(2, 2, device="meta"))
    units = torch.empty(2, device="meta")
    balls = BallNetworks(layer, layer, units, units)
    theta, x = torch.empty(9, 5, 2, device="meta"), torch.empty(5, 2, device="meta")
    ranks = soft_ranks(balls.distances(theta, balls.centre(x)), 0.1)
    losses = (wasserstein_to_uniform(ranks), sinkhorn_to_uniform(ranks))
    assert {part.device.type for part in (score, *losses)} == {"meta"}
