"""A likelihood of the items of x, each of which is a lesson about theta."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from fits import assert_a_file_holds, pooled_everywhere
from torch import Tensor

from abi.encoders.choice import build_encoder, is_list
from abi.encoders.layout import PLAIN, Layout
from abi.files.fitted import restored
from abi.generators.conditional import ConditionalFlows
from abi.generators.flow import FlowModel
from abi.generators.flow_network import FlowSettings
from abi.generators.flow_training import Conditioning, fit_flow
from abi.generators.pool.learning import Learning, prior_flow
from abi.generators.pool.likelihood import Likelihood, OfFeatures, OfItems
from abi.generators.pool.model import PooledFlows
from abi.generators.support import Support
from abi.training.loop import TrainingSettings
from simulators.random import isolated_rng

SETTINGS = FlowSettings(num_transforms=1, hidden=(64, 64))
TRAINING = TrainingSettings(learning_rate=1e-2, batch_size=128, num_steps=1_200, max_epochs=40)
PRIOR = torch.distributions.Independent(
    torch.distributions.Uniform(-2 * torch.ones(2), 2 * torch.ones(2)), 1
)
SUPPORT = Support.of(PRIOR, 2)
POINTS = Layout(item_dim=2)
NUM_POINTS, SEED = 4, 3


def pairs_of(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Points about (theta_1^2, theta_2) with an sd of exp(theta_1 / 2)."""
    with isolated_rng(seed):
        theta = PRIOR.sample((count,))
        noise = torch.randn(count, NUM_POINTS, 2)
    place = torch.stack([theta[:, 0] ** 2, theta[:, 1]], dim=1)
    points = place[:, None] + (0.5 * theta[:, 0]).exp()[:, None, None] * noise
    return theta, points.flatten(1)


def exact_log_likelihood(theta: Tensor, x: Tensor) -> Tensor:
    place = torch.stack([theta[:, 0] ** 2, theta[:, 1]], dim=1)
    sd = (0.5 * theta[:, 0]).exp()[:, None, None].expand(-1, NUM_POINTS, 2)
    law = torch.distributions.Normal(place[:, None].expand_as(sd), sd)
    each: Tensor = law.log_prob(x.view(-1, NUM_POINTS, 2)).sum(dim=2)
    return each


@pytest.fixture(scope="module")
def pairs() -> tuple[Tensor, Tensor]:
    return pairs_of(2_000)


@pytest.fixture(scope="module")
def density() -> FlowModel:
    return prior_flow(PRIOR, SUPPORT, SETTINGS, TRAINING, seed=0)


def untold(share: float) -> None:
    """Nobody asks."""


def learned(pairs: tuple[Tensor, Tensor], density: FlowModel, layout: Layout) -> Likelihood:
    theta, x = pairs
    return Learning(theta, density, SETTINGS, TRAINING, SEED).of_items(x, layout, untold)


@pytest.fixture(scope="module")
def of_points(pairs: tuple[Tensor, Tensor], density: FlowModel) -> Likelihood:
    return learned(pairs, density, POINTS)


def off_by(likelihood: Likelihood, theta: Tensor, x: Tensor, exact: Tensor) -> float:
    """The error of log p(x | theta) that nine in ten do not exceed; a learned tail is anything."""
    found = likelihood.log_joint(theta, x) - likelihood.prior.log_prob(theta)
    return float((found - exact).abs().quantile(0.9))


def test_it_is_the_product_of_the_items(of_points: Likelihood) -> None:
    theta, x = pairs_of(1_000, seed=5)
    exact = exact_log_likelihood(theta, x).sum(dim=1)
    assert off_by(of_points, theta, x, exact) < 0.1 * float(exact.std())
    mixed = x.view(-1, NUM_POINTS, 2)[:, [2, 0, 3, 1]].flatten(1)
    torch.testing.assert_close(of_points.log_joint(theta, x), of_points.log_joint(theta, mixed))


def test_missing_items_count_for_nothing(density: FlowModel) -> None:
    theta, x = pairs_of(2_000, seed=1)
    items = x.view(-1, NUM_POINTS, 2).clone()
    with isolated_rng(2):
        missing = torch.rand(len(x), NUM_POINTS) < 0.3
    items[missing] = torch.nan
    layout = replace(POINTS, missing="items")
    found = learned((theta, items.flatten(1)), density, layout)
    there = torch.where(missing, 0.0, exact_log_likelihood(theta, x)).sum(dim=1)
    assert off_by(found, theta, items.flatten(1), there) < 0.1 * float(there.std())


def flows_of(theta: Tensor, x: Tensor, layout: Layout = POINTS) -> FlowModel:
    encoder = build_encoder("moments", x, layout)
    given = Conditioning(encoder, x, x[0], "moments", layout)
    flows, _ = fit_flow(
        theta, SUPPORT, settings=SETTINGS, training=TRAINING, seed=SEED, num_flows=2, given=given
    )
    return flows


def pool_of(theta: Tensor, x: Tensor, flows: FlowModel) -> FlowModel:
    how = {"settings": SETTINGS, "training": TRAINING, "seed": SEED}
    return pooled_everywhere(flows, x, theta, PRIOR, **how)


@pytest.fixture(scope="module")
def pool() -> PooledFlows:
    theta, x = pairs_of(600, seed=4)
    found = pool_of(theta, x, flows_of(theta, x))
    assert isinstance(found, PooledFlows)
    return found


def mean_log_density(model: Any, theta: Tensor, x: Tensor) -> float:
    q = ConditionalFlows.of(model)
    assert q is not None
    return float(q.log_prob(theta[None], x)[0].mean())


def test_independent_items_bring_the_answer_nearer_at_every_x(pool: PooledFlows) -> None:
    assert isinstance(pool.likelihood.law, OfItems)
    assert pool.likelihood.law.layout == POINTS
    theta, x = pairs_of(400, seed=6)
    assert mean_log_density(pool, theta, x) > mean_log_density(pool.alone, theta, x) + 0.1


def test_it_is_read_at_another_x_as_at_its_own(pool: PooledFlows) -> None:
    q = ConditionalFlows.of(pool)
    assert q is not None
    _, x = pairs_of(3, seed=7)
    draws = q.sample(4_000, x, seed=1)
    for row, there in zip(x, draws.unbind(dim=1), strict=True):
        own = q.at(row)
        away = own.sample(4_000, 2).mean(dim=0) - there.mean(dim=0)
        assert float((away / there.std(dim=0)).abs().max()) < 0.1
        values = q.log_prob(there[:20, None], row[None])[:, 0]
        torch.testing.assert_close(own.log_prob(there[:20]), values, atol=0.05, rtol=0.0)


def test_a_file_holds_the_items_of_x_o(pool: PooledFlows) -> None:
    assert_a_file_holds(pool)


def test_files_of_before_laws_had_names_are_read(pool: PooledFlows) -> None:
    state = pool.state()
    law = state.values["likelihood"]
    values = {key: value for key, value in state.values.items() if key != "law"}
    values["likelihood"] = law["flow"]
    version_12 = {"kind": state.kind, "values": values | {"items": law["items"]}}
    again = restored(state.tensors, version_12, None)
    assert torch.equal(again.sample(50, 3), pool.sample(50, 3))
    older = {key: value for key, value in state.tensors.items() if key != "shown"}
    before = restored(older, {"kind": state.kind, "values": values}, None)
    assert isinstance(before, PooledFlows)
    assert isinstance(before.likelihood.law, OfFeatures)
    assert torch.equal(before.shown, before.context[:1])  # type: ignore[index]


def test_items_that_are_copies_of_each_other_are_no_lessons() -> None:
    """Their product would take one for four, and be twice too sure."""
    theta, x = pairs_of(1_000, seed=8)
    copies = x.view(-1, NUM_POINTS, 2)[:, :1].expand(-1, NUM_POINTS, -1).flatten(1).clone()
    copies += 1e-3 * torch.randn(copies.shape, generator=torch.Generator().manual_seed(0))
    found = pool_of(theta, copies, flows_of(theta, copies))
    of_items = isinstance(found, PooledFlows) and isinstance(found.likelihood.law, OfItems)
    assert not of_items or found.power < 0.5  # type: ignore[attr-defined]


def test_a_list_is_declared_or_seen_without_order() -> None:
    assert is_list(POINTS, "flat")
    assert is_list(PLAIN, "sorted")
    assert is_list(replace(PLAIN, missing="items"), "deep_set")
    assert not is_list(PLAIN, "flat")
    assert not is_list(Layout(num_series=2), "moments")
    assert not is_list(replace(POINTS, missing="values"), "moments")
