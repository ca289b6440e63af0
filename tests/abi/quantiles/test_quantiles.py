"""The quantile network learns conditional quantiles; its loss is that of eq. (2.7)."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from abi.config import ABIConfig
from abi.encoders.choice import encode
from abi.encoders.item import InputScaling
from abi.encoders.layout import PLAIN, Layout
from abi.quantiles.distance import quantile_levels
from abi.quantiles.huber import huber_loss
from abi.quantiles.kernel import train_kernel
from abi.quantiles.network import QuantileNetwork, huber_quantile_loss
from abi.training.loop import TrainingSettings, train
from simulators import MG1, GaussianLinear, sample_joint
from simulators.random import isolated_rng, torch_generator

FAST = TrainingSettings(max_epochs=40)


@given(st.floats(-5, 5), st.floats(0.01, 0.99), st.floats(0.01, 2.0))
def test_huber_quantile_loss_is_that_of_equation_2_7(u: float, tau: float, kappa: float) -> None:
    weight = abs(tau - (1.0 if u < 0 else 0.0))
    expected = weight * (u * u / (2 * kappa) if abs(u) <= kappa else abs(u) - kappa / 2)
    ours = huber_quantile_loss(
        torch.tensor([u], dtype=torch.float64), torch.tensor([tau], dtype=torch.float64), kappa
    )
    assert float(ours) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(st.floats(-5, 5), st.floats(0.05, 0.95))
def test_a_small_kappa_gives_the_pinball_loss(u: float, tau: float) -> None:
    ours = huber_quantile_loss(
        torch.tensor([u], dtype=torch.float64), torch.tensor([tau], dtype=torch.float64), 1e-9
    )
    assert float(ours) == pytest.approx(max(tau * u, (tau - 1) * u), abs=1e-8)


def test_the_loss_is_least_at_the_quantile() -> None:
    draws = torch.randn(20_000, 1, generator=torch_generator(0))
    levels = torch.tensor([0.1, 0.5, 0.8])
    grid = torch.linspace(-2, 2, 401)
    risk = torch.stack([huber_quantile_loss(draws - q, levels, 0.01).mean(dim=0) for q in grid])
    best = grid[risk.argmin(dim=0)]
    exact = torch.distributions.Normal(0.0, 1.0).icdf(levels)
    # A sample quantile has sd sqrt(tau (1 - tau) / n) / density <= 0.012; a grid step is 0.01.
    torch.testing.assert_close(best, exact, atol=0.05, rtol=0.0)


def test_predicted_quantiles_are_those_of_the_conjugate_posterior() -> None:
    task = GaussianLinear(2, 1.0, 1.0)
    theta, x = sample_joint(task, 8_000, seed=1)
    kernel, log = train_kernel(theta, x, torch.zeros(2), ABIConfig(network_training=FAST), seed=2)
    points = torch.tensor([[0.0, 0.0], [1.0, -1.0], [2.0, 0.5]])
    table = kernel.table(points)
    network = kernel.network
    # theta | x ~ N(x / 2, I / 2) in raw units; the table is in the network's.
    normal = torch.distributions.Normal(0.0, 0.5**0.5)
    for row, point in zip(table.values, points, strict=True):
        center = ((point / 2 - network.theta_center) / network.theta_scale) @ table.directions.T
        spread = (table.directions / network.theta_scale).norm(dim=1)
        exact = center[:, None] + spread[:, None] * normal.icdf(table.levels)
        # A network of 8,000 pairs predicts to within a tenth of the prior's sd.
        assert (row - exact).abs().max() < 0.25
        assert (row - exact).abs().mean() < 0.08
    assert log.validation_loss < 1.2 * log.train_loss


@pytest.mark.parametrize("kappa", [1e-4, 0.01, 3.0])
def test_the_compiled_loss_and_its_gradient_are_those_of_torch(kappa: float) -> None:
    generator = torch_generator(0)
    targets = torch.randn(40, 6, generator=generator)
    near = targets[:, :, None] + kappa * torch.randn(40, 6, 5, generator=generator)
    levels = quantile_levels(4, 0.05)
    ours, theirs = (near.clone().requires_grad_() for _ in range(2))
    value = huber_loss(targets, ours, levels, kappa)
    (2.0 * value).backward()
    expected = huber_quantile_loss(targets[:, :, None] - theirs, levels, kappa).mean()
    (2.0 * expected).backward()
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_a_prediction_that_is_no_number_is_not_hidden_by_the_loss() -> None:
    predicted = torch.zeros(3, 1, 2)
    predicted[1, 0, 0] = torch.nan
    levels = quantile_levels(1, 0.05)
    assert huber_loss(torch.zeros(3, 1), predicted, levels, 0.01).isnan()


def test_a_network_goes_on_alone_behind_an_encoder_that_flows_will_teach() -> None:
    task = MG1()
    theta, x = sample_joint(task, 600, seed=0)
    config = ABIConfig(encoder="deep_set", network_training=FAST)
    (brief, short), (alone, longer) = (
        train_kernel(theta, x, x[0], config, seed=1, extent=extent)
        for extent in ("encoder", "network")
    )
    weights = alone.network.encoder.state_dict()
    assert all(
        torch.equal(value, weights[name])
        for name, value in brief.network.encoder.state_dict().items()
    )
    assert longer.validation_loss < short.validation_loss
    assert alone(x).isfinite().all()


def test_tables_are_sorted_and_training_leaves_the_order_free() -> None:
    theta, x = sample_joint(GaussianLinear(2, 1.0, 1.0), 200, seed=1)
    kernel, _ = train_kernel(
        theta, x, torch.zeros(2), ABIConfig(network_training=TrainingSettings(max_epochs=1)), seed=0
    )
    assert (kernel.table(x).values.diff(dim=-1) >= 0).all()
    assert (kernel.network(x).diff(dim=-1) < 0).any()


def test_the_kernel_is_zero_at_the_observation_and_grows_away_from_it() -> None:
    theta, x = sample_joint(GaussianLinear(1, 20.0, 1.0), 4_000, seed=1)
    x_o = torch.tensor([2.0])
    kernel, _ = train_kernel(theta, x, x_o, ABIConfig(network_training=FAST), seed=0)
    points = torch.tensor([[2.0], [3.0], [5.0], [9.0]])
    distance = kernel(points)
    assert float(distance[0]) == pytest.approx(0.0, abs=1e-6)
    assert (distance.diff() > 0).all()
    # Posteriors differ by a shift of 20/21 |x - x_o|; the kernel counts in prior sds.
    exact = 20 / 21 * (points[:, 0] - 2.0).abs() / 20**0.5
    torch.testing.assert_close(distance, exact, atol=0.1, rtol=0.1)


def test_exchangeable_data_are_sorted_when_that_predicts_better() -> None:
    generator = torch_generator(0)
    theta = torch.rand(1_500, 1, generator=generator) * 3
    x = theta * torch.rand(1_500, 40, generator=generator)
    config = ABIConfig(network_training=FAST)
    chosen = train_kernel(theta, x, x[0], config, seed=0)[0].encoder
    assert chosen in ("sorted", "moments+sorted", "both_orders")
    ordered = torch.cat([theta, torch.rand(1_500, 5, generator=generator) * 3], dim=1)
    assert train_kernel(theta, ordered, ordered[0], config, seed=0)[0].encoder == "flat"


def test_sorted_items_do_not_depend_on_their_order_and_keep_every_value() -> None:
    x = torch.randn(50, 12, generator=torch_generator(0))
    shuffled = x.reshape(50, 4, 3)[:, [2, 0, 3, 1]].reshape(50, 12)
    assert torch.equal(encode(x, "sorted", Layout(3)), encode(shuffled, "sorted", Layout(3)))
    assert encode(x, "sorted", Layout(3)).shape == (50, 36)
    assert torch.equal(encode(x, "sorted", PLAIN), x.sort(dim=1).values)
    assert encode(x, "flat", Layout(3)) is x
    first = encode(x, "sorted", Layout(3))[:, :12].sort(dim=1).values
    assert torch.equal(first, x.sort(dim=1).values)


@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e6])
def test_input_scaling_is_invertible_on_any_scale(spread: float) -> None:
    x = torch.randn(500, 3, generator=torch_generator(0)) * spread
    x[:, 2] = 4.0  # a constant coordinate
    scaled = InputScaling(x)(x)
    assert torch.isfinite(scaled).all()
    assert scaled.abs().max() < 4.0
    order = x[:, 0].argsort()
    assert (scaled[order, 0].diff() >= 0).all()


def test_the_network_is_a_function_of_its_seed() -> None:
    theta, x = sample_joint(GaussianLinear(2, 1.0, 1.0), 300, seed=1)
    config = ABIConfig(network_training=TrainingSettings(max_epochs=3))
    first, second, other = (
        train_kernel(theta, x, x[0], config, seed=seed)[0](x) for seed in (7, 7, 8)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_training_keeps_the_weights_of_the_best_epoch() -> None:
    generator = torch_generator(0)
    x = torch.randn(200, 1, generator=generator)
    noise = torch.randn(200, 1, generator=generator)
    with isolated_rng(0):
        network = QuantileNetwork(
            noise, nn.Identity(), 1, torch.eye(1), torch.tensor([0.5]), (64, 64), standardize=True
        )
    held = torch.randperm(200, generator=torch_generator(0))[:20]  # as the training draws it
    seen: list[float] = []
    losses: list[float] = []

    def on_epoch(share: float) -> None:
        seen.append(share)
        with torch.no_grad():
            losses.append(float(network.loss(noise[held], x[held], 0.01)))

    log = train(
        network,
        lambda theta, rows: network.loss(theta, rows, 0.01),
        (noise, x),
        TrainingSettings(max_epochs=200, learning_rate=0.05),
        seed=0,
        on_epoch=on_epoch,
    )
    # Pure noise cannot be learned: it ends early, and the last epoch is not the best.
    assert len(seen) == log.epochs < 200
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert log.validation_loss < losses[-1]
    with torch.no_grad():
        kept = float(network.loss(noise[held], x[held], 0.01))
    assert kept == pytest.approx(log.validation_loss)
