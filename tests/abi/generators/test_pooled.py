"""Flows of theta given x, pooled with a likelihood learned from the same pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

import pytest
import torch
from fits import assert_a_file_holds
from torch import Tensor

from abi.encoders.choice import build_encoder
from abi.generators.base import GeneratorState
from abi.generators.conditional import ConditionalFlows
from abi.generators.flow import FlowModel
from abi.generators.flow_network import FlowSettings
from abi.generators.flow_training import Conditioning, fit_flow
from abi.generators.pool.learning import prior_flow
from abi.generators.pool.likelihood import Law
from abi.generators.pool.model import PooledFlows, chosen
from abi.generators.pool.power import Inside, lowered, pooled
from abi.generators.support import Support
from abi.training.loop import TrainingSettings
from simulators import GaussianLinearUniform, sample_joint
from simulators.random import isolated_rng

SETTINGS = FlowSettings(num_transforms=1, hidden=(32, 32))
TRAINING = TrainingSettings(learning_rate=1e-2, batch_size=128, num_steps=600, max_epochs=25)
TASK = GaussianLinearUniform(theta_dim=3)
SUPPORT = Support.of(TASK.prior, 3)
X_O = torch.tensor([1.2, 0.1, -1.1])  # beyond the prior's edge at both ends
SEED = 4


def everywhere(theta: Tensor) -> Tensor:
    return torch.ones(len(theta), dtype=torch.bool)


def flows_of(theta: Tensor, x: Tensor, x_o: Tensor = X_O) -> FlowModel:
    given = Conditioning(build_encoder("flat", x), x, x_o, "flat")
    flows, _ = fit_flow(
        theta, SUPPORT, settings=SETTINGS, training=TRAINING, seed=SEED, num_flows=2, given=given
    )
    return flows


@pytest.fixture(scope="module")
def pairs() -> tuple[Tensor, Tensor]:
    return sample_joint(TASK, 2_000, seed=1)


@pytest.fixture(scope="module")
def flows(pairs: tuple[Tensor, Tensor]) -> FlowModel:
    return flows_of(*pairs)


@pytest.fixture(scope="module")
def pool(flows: FlowModel, pairs: tuple[Tensor, Tensor]) -> PooledFlows:
    found = pool_of(flows, pairs)
    assert isinstance(found, PooledFlows)
    return found


def pool_of(
    flows: FlowModel,
    pairs: tuple[Tensor, Tensor],
    prior: torch.distributions.Distribution = TASK.prior,
    inside: Inside = everywhere,
) -> FlowModel:
    theta, x = pairs
    how = {"settings": SETTINGS, "training": TRAINING, "seed": SEED}
    return pooled(flows, x, theta, X_O, prior, inside, **how)  # type: ignore[arg-type]


def mean_error(model: FlowModel) -> float:
    """The largest error of a mean, in sds of the exact posterior."""
    exact = TASK.reference_posterior(X_O, 20_000, seed=0)
    away = model.sample(20_000, seed=1).mean(dim=0) - exact.mean(dim=0)
    return float((away / exact.std(dim=0)).abs().max())


def test_a_likelihood_that_is_easier_than_the_posterior_brings_the_answer_nearer(
    flows: FlowModel, pool: PooledFlows
) -> None:
    """Near the prior's edges the posterior bends; the noise is normal everywhere."""
    assert pool.power >= 0.5
    assert mean_error(pool) < 0.1
    assert mean_error(pool) < 0.5 * mean_error(flows)


def test_the_density_is_normalised_and_that_of_the_draws(pool: PooledFlows) -> None:
    grid = torch.cartesian_prod(*[torch.linspace(-0.975, 0.975, 40)] * 3)
    density = pool.log_prob(grid).exp()
    assert math.isclose(float(density.sum()) * 0.05**3, 1.0, abs_tol=0.05)
    mean = (density[:, None] * grid).sum(dim=0) / density.sum()
    torch.testing.assert_close(pool.sample(20_000, 0).mean(dim=0), mean, atol=0.01, rtol=0.0)
    assert pool.log_prob(torch.tensor([[0.0, 0.0, 1.01]])).item() == -torch.inf


def test_it_answers_at_every_x_as_at_its_own(pool: PooledFlows) -> None:
    q = ConditionalFlows.of(pool)
    assert q is not None
    x = torch.stack([X_O, torch.zeros(3)])
    theta = q.sample(5_000, x, seed=2)
    for row, there in zip(x, theta.unbind(dim=1), strict=True):
        exact = TASK.reference_posterior(row, 5_000, seed=0)
        torch.testing.assert_close(there.mean(dim=0), exact.mean(dim=0), atol=0.04, rtol=0.0)
    points = theta[:50]
    values = q.log_prob(points, x)
    torch.testing.assert_close(values[:, 0], pool.log_prob(points[:, 0]), atol=0.05, rtol=0.0)
    away = q.relative_log_prob(points, x) - values
    torch.testing.assert_close(away, away[:1].expand(50, 2), atol=1e-4, rtol=0.0)


def test_members_are_draws_of_one_flow_of_each_side(pool: PooledFlows) -> None:
    q = ConditionalFlows.of(pool)
    assert q is not None
    each = q.of_members(X_O, 2_000, seed=0)
    assert each.shape == (len(pool.flows), 2_000, 3)
    torch.testing.assert_close(
        each.mean(dim=(0, 1)), pool.sample(20_000, 0).mean(dim=0), atol=0.02, rtol=0.0
    )


def test_a_file_holds_flows_likelihood_and_prior(pool: PooledFlows) -> None:
    assert_a_file_holds(pool, 100)


def test_a_likelihood_that_misleads_is_left_out(
    flows: FlowModel, pairs: tuple[Tensor, Tensor]
) -> None:
    """Here by a prior that is not that of the pairs."""
    narrow = torch.distributions.Independent(
        torch.distributions.Normal(torch.full((3,), 0.5), torch.full((3,), 0.2)), 1
    )
    assert pool_of(flows, pairs, narrow) is flows


def test_pairs_of_a_region_are_judged_as_cut_to_it(pairs: tuple[Tensor, Tensor]) -> None:
    """Flows know the cut, and p(x | theta) p(theta) does not."""
    middle = partial(inside_box, 0.3)
    theta, x = sample_joint(TASK, 80_000, seed=2)
    kept = middle(theta)
    cut = theta[kept], x[kept]
    flows = flows_of(*cut, torch.zeros(3))
    assert isinstance(pool_of(flows, cut, inside=middle), PooledFlows)
    assert pool_of(flows, cut) is flows


def inside_box(end: float, theta: Tensor) -> Tensor:
    return (theta.abs() <= end).all(dim=1)


def test_many_features_are_no_likelihood_to_learn(flows: FlowModel) -> None:
    theta, x = sample_joint(TASK, 600, seed=1)
    wide = x.repeat(1, 60)
    of_wide = flows_of(theta, wide, X_O.repeat(60))
    assert pool_of(of_wide, (theta, wide)) is of_wide


@dataclass(frozen=True)
class Mirrored:
    """A law that takes each theta for its opposite."""

    law: Law

    def seen(self, x: Tensor, features: Tensor) -> Tensor:
        return self.law.seen(x, features)

    def log_prob(self, seen: Tensor, numbers: Tensor) -> Tensor:
        return self.law.log_prob(seen, -numbers)

    def state(self) -> GeneratorState:
        return self.law.state()


def test_where_likelihood_and_flows_contradict_each_other_at_x_o_it_counts_less(
    pool: PooledFlows,
) -> None:
    wrong = replace(pool.likelihood, law=Mirrored(pool.likelihood.law))
    same = lowered(pool, seed=0)
    assert same is not None
    assert (same.power, same.each) == (pool.power, 4)
    less = lowered(replace(pool, likelihood=wrong), seed=0)
    assert less is None or less.power < pool.power


def test_the_prior_s_density_is_found_from_its_draws() -> None:
    """A normal one by its trend alone, another by a flow, without a density of its own."""
    normal = torch.distributions.MultivariateNormal(
        torch.tensor([3.0, -1.0]), torch.tensor([[1.0, 0.8], [0.8, 2.0]])
    )
    found = prior_flow(normal, Support.everywhere(2), SETTINGS, TRAINING, seed=0)
    assert found.settings.num_transforms == 0
    points = drawn(normal, 200)
    assert float((found.log_prob(points) - normal.log_prob(points)).abs().mean()) < 0.03
    half = torch.distributions.Independent(
        torch.distributions.Gamma(torch.full((1,), 3.0), torch.ones(1)), 1
    )
    found = prior_flow(half, Support.of(half, 1), SETTINGS, TRAINING, seed=0)
    points = drawn(half, 500)
    assert float((found.log_prob(points) - half.log_prob(points)).abs().mean()) < 0.05


def drawn(prior: torch.distributions.Distribution, count: int) -> Tensor:
    with isolated_rng(0):
        return prior.sample((count,))


def test_draws_are_chosen_once_at_most_with_chances_as_their_weights() -> None:
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 0.0, 10.0])
    log_weights = weights.log()[:, None].expand(-1, 20_000)
    index = chosen(log_weights, 2, seed=0)
    assert index.shape == (2, 20_000)
    assert not (index[0] == index[1]).any()
    share = torch.bincount(index.flatten(), minlength=6) / 20_000
    # The last, of half the weight, is taken for certain; the others share what is left.
    expected = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.0, 1.0])
    torch.testing.assert_close(share, expected, atol=0.015, rtol=0.0)


def test_draws_of_equal_weight_are_all_as_likely() -> None:
    index = chosen(torch.zeros(12, 6_000), 3, seed=1)
    share = torch.bincount(index.flatten(), minlength=12) / 6_000
    torch.testing.assert_close(share, torch.full((12,), 0.25), atol=0.03, rtol=0.0)


def test_a_row_s_few_draws_are_as_their_truth() -> None:
    """25 of 100 draws of a law half a sd off: ranks of truths are uniform but for .01."""
    with isolated_rng(3):
        z = 0.5 + torch.randn(100, 8_000, 2)
        truth = torch.randn(8_000)
    log_weights = (0.5 * (z - 0.5) ** 2 - 0.5 * z**2).sum(dim=2)
    kept = z[..., 0].gather(0, chosen(log_weights, 25, seed=0))
    share = (kept < truth).float().mean(dim=0)
    assert abs(float(share.mean()) - 0.5) < 0.015
    assert math.isclose(float(share.var()), (1 / 12) * 27 / 25, rel_tol=0.05)
