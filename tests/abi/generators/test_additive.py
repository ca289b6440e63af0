"""Likelihoods of features whose noise has any law, the same at every theta."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from fits import assert_a_file_holds, pooled_everywhere, small_flow
from torch import Tensor, nn
from torch.distributions import Independent, Uniform

from abi.encoders.choice import build_encoder
from abi.generators.compiled.shifted import Shifted
from abi.generators.flow_network import FlowSettings, build_flow
from abi.generators.flow_training import Conditioning
from abi.generators.pool.additive import Additive, learn_additive
from abi.generators.pool.learning import Learning, prior_flow
from abi.generators.pool.model import PooledFlows
from abi.generators.support import Support
from abi.training.loop import TrainingSettings
from simulators.random import isolated_rng, torch_generator

PRIOR = Independent(Uniform(-torch.ones(2), torch.ones(2)), 1)
BOX = Support(-torch.ones(2), torch.ones(2))
SETTINGS = FlowSettings(num_transforms=1, hidden=(32,))
TRAINING = TrainingSettings(learning_rate=1e-2, batch_size=128, num_steps=600, max_epochs=25)
BEND = 3.0


def theta_of(count: int, seed: int) -> Tensor:
    return 2.0 * torch.rand(count, 2, generator=torch_generator(seed)) - 1.0


def means_of(theta: Tensor) -> Tensor:
    """Two numbers, one of which theta's sign does not change."""
    return torch.stack([theta.sum(dim=1).abs(), theta[:, 1] - theta[:, 0]], dim=1)


def x_of(theta: Tensor, seed: int) -> Tensor:
    """Noise like a banana: one number is normal, and bends the other."""
    along, across = torch.randn(2, len(theta), generator=torch_generator(1_000 + seed))
    return means_of(theta) + 0.2 * torch.stack([0.2 * across + BEND * along**2 / 5, along], dim=1)


def exact(x: Tensor, theta: Tensor) -> Tensor:
    """Log p(x | theta), (n,)."""
    rest = (x - means_of(theta)) / 0.2
    along = rest[:, 1]
    across = (rest[:, 0] - BEND * along**2 / 5) / 0.2
    constant = math.log(2.0 * math.pi) + math.log(0.2**3)
    return -0.5 * (along**2 + across**2) - constant


def learned(theta: Tensor, x: Tensor, seed: int = 0) -> Additive | None:
    return learn_additive(theta, x, seed=seed, on_epoch=lambda share: None)


@pytest.fixture(scope="module")
def law() -> Additive:
    theta = theta_of(1_000, 0)
    found = learned(theta, x_of(theta, 0))
    assert found is not None
    return found


def test_noise_like_a_banana_about_a_mean_with_a_kink_is_nearly_exact(law: Additive) -> None:
    theta = theta_of(2_000, 1)
    x = x_of(theta, 1)
    lost = exact(x, theta) - law.log_prob(law.seen(x, x), theta)
    assert 0.0 < float(lost.mean()) < 0.25


def test_it_gains_on_a_flow_whose_noise_may_hang_on_theta(law: Additive) -> None:
    theta = theta_of(1_000, 0)
    density = prior_flow(PRIOR, BOX, SETTINGS, TRAINING, 0)
    learning = Learning(theta, density, FlowSettings(), TrainingSettings(), seed=0)
    flow = learning.of_features(x_of(theta, 0), lambda share: None).law
    fresh = theta_of(2_000, 1)
    x, numbers = x_of(fresh, 1), torch.cat([BOX.to_real(fresh), fresh], dim=1)
    gain = law.log_prob(x, fresh) - flow.log_prob(x, numbers)
    assert float(gain.mean()) > 0.1


def test_pairs_of_elsewhere_show_the_same_noise() -> None:
    theta, past = theta_of(150, 2), theta_of(800, 3)
    density = prior_flow(PRIOR, BOX, SETTINGS, TRAINING, 0)
    x, fresh = x_of(theta, 2), theta_of(1_000, 4)
    numbers = torch.cat([BOX.to_real(fresh), fresh], dim=1)
    found = []
    for known in (None, (past, 2.0 * x_of(past, 3))):
        learning = Learning(theta, density, SETTINGS, TRAINING, seed=1, past=known)
        law = learning.of_noise(x, lambda x: x / 2.0, lambda share: None)[0].law
        found.append(float(law.log_prob(x_of(fresh, 4), numbers).mean()))
    assert found[1] > found[0] + 0.3


def test_pairs_too_far_to_say_anything_are_not_looked_at() -> None:
    theta = theta_of(60, 2)
    density = prior_flow(PRIOR, BOX, SETTINGS, TRAINING, 0)
    far = 1e-3 * theta, x_of(theta, 2)
    learning = Learning(1e-9 * theta, density, SETTINGS, TRAINING, seed=1, past=far)
    numbers, seen = learning.beyond(far[1], lambda x: x.reshape(len(x), -1, 1)[:, :, 0])
    assert len(numbers) == len(seen) == int(learning.others.sum())


def test_units_of_theta_and_features_make_next_to_no_difference(law: Additive) -> None:
    theta = theta_of(1_000, 0)
    x = x_of(theta, 0)
    other = learned(100.0 * theta + 7.0, 1e-3 * x)
    assert other is not None
    fresh = theta_of(2_000, 1)
    x = x_of(fresh, 1)
    scaled = other.log_prob(1e-3 * x, 100.0 * fresh + 7.0) - 2.0 * math.log(1e3)
    assert abs(float((scaled - law.log_prob(x, fresh)).mean())) < 0.05


def test_the_same_seed_gives_the_same_law_at_one_x_and_at_many(law: Additive) -> None:
    theta = theta_of(1_000, 0)
    x = x_of(theta, 0)
    again = learned(theta, x)
    assert again is not None
    assert torch.equal(again.log_prob(x, theta), law.log_prob(x, theta))
    for_all = again.log_prob(x[:1], theta)
    torch.testing.assert_close(for_all, again.log_prob(x[:1].expand(1_000, -1), theta))


def test_there_is_none_of_a_feature_that_never_varies() -> None:
    theta = theta_of(200, 5)
    assert learned(theta, torch.cat([x_of(theta, 5), torch.ones(200, 1)], dim=1)) is None


def test_an_answer_gains_by_it_and_a_file_holds_it() -> None:
    theta = theta_of(800, 7)
    x = x_of(theta, 7)
    given = Conditioning(build_encoder("flat", x), x, x[0], "flat")
    flows = small_flow(theta, BOX, 32, TRAINING, 3, given=given)
    how = {"settings": flows.settings, "training": TRAINING, "seed": 3}
    pool = pooled_everywhere(flows, x, theta, PRIOR, **how)
    assert isinstance(pool, PooledFlows)
    assert isinstance(pool.likelihood.law, Additive)
    assert_a_file_holds(pool)


def test_the_compiled_gradient_is_that_of_torch() -> None:
    flow = build_flow(3, 0, FlowSettings(hidden=(16,)), seed=1)
    with isolated_rng(4):
        network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        for weights in flow.parameters():
            weights.data += 0.1 * torch.randn_like(weights)
        rows, numbers = torch.randn(50, 3), torch.randn(50, 4)
    loss = -flow(None).log_prob(rows - network(numbers)).mean()  # type: ignore[operator]
    loss.backward()
    quick = Shifted(flow, network)
    torch.testing.assert_close(quick.descend(rows, numbers), loss.detach(), rtol=1e-4, atol=1e-5)
    for weights in (quick.weights, quick.flow.weights):
        assert weights.grad is not None
        weights.data.copy_(weights.grad)
    gradient, means = (copy.deepcopy(part) for part in (flow, network))
    quick.write_to(gradient, means)
    for found, known in ((gradient, flow), (means, network)):
        for a, b in zip(found.parameters(), known.parameters(), strict=True):
            torch.testing.assert_close(a.detach(), b.grad, rtol=1e-3, atol=1e-5)
