"""Likelihoods of values whose means are a network of theta."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch
from fits import assert_a_file_holds, pooled_everywhere, small_flow
from torch import Tensor
from torch.distributions import Independent, Normal

from abi.encoders.choice import build_encoder
from abi.generators.conditional import ConditionalFlows
from abi.generators.flow_network import FlowSettings
from abi.generators.flow_training import Conditioning
from abi.generators.pool.cover import cover_of, everywhere
from abi.generators.pool.curves import curves
from abi.generators.pool.emulator import Emulator, learn_emulator
from abi.generators.pool.learning import prior_flow
from abi.generators.pool.likelihood import Likelihood
from abi.generators.pool.model import PooledFlows
from abi.generators.pool.values.law import learn_values
from abi.generators.support import Support
from abi.training.loop import TrainingSettings
from simulators.random import isolated_rng, torch_generator

TIMES = torch.arange(1.0, 41.0) / 40.0
DIM = 3
MIDDLE, SDS = torch.tensor([2.0, 0.0, 0.0]), torch.tensor([0.3, 0.2, 0.3])
PRIOR = Independent(Normal(MIDDLE, SDS), 1)
SETTINGS = FlowSettings(num_transforms=1, hidden=(32,))
TRAINING = TrainingSettings(learning_rate=1e-2, batch_size=128, num_steps=600, max_epochs=25)
NO_FEATURES = torch.empty(1, 0)


def theta_of(count: int, seed: int) -> Tensor:
    """Turns of a wave, the log of its height, and the log of the noise's size."""
    return MIDDLE + SDS * torch.randn(count, DIM, generator=torch_generator(seed))


def means_of(theta: Tensor) -> Tensor:
    return theta[:, 1:2].exp() * (2.0 * math.pi * theta[:, :1] * TIMES).cos()


def waves_of(theta: Tensor, seed: int) -> Tensor:
    noise = torch.randn(len(theta), len(TIMES), generator=torch_generator(seed + 1_000))
    return means_of(theta) + 0.4 * theta[:, 2:].exp() * noise


def exact(x: Tensor, theta: Tensor) -> Tensor:
    """Log p(x | theta) at one x, or at one each."""
    return Normal(means_of(theta), 0.4 * theta[:, 2:].exp()).log_prob(x).sum(dim=1)


def learned(theta: Tensor, x: Tensor, seed: int = 0) -> Emulator | None:
    return learn_emulator(theta, x, device="cpu", seed=seed, on_epoch=lambda share: None)


def waves_learned(count: int, seed: int) -> Emulator:
    theta = theta_of(count, seed)
    law = learned(theta, waves_of(theta, seed))
    assert law is not None
    return law


@pytest.fixture(scope="module")
def law() -> Emulator:
    return waves_learned(4_000, 0)


def test_waves_have_nearly_their_exact_likelihood_where_squares_and_products_do_not(
    law: Emulator,
) -> None:
    theta = theta_of(4_000, 0)
    normal = learn_values(theta, waves_of(theta, 0))[0]
    true = theta_of(20, 1)
    errors = []
    for at, x in zip(true, waves_of(true, 1), strict=True):
        near = at + 0.1 * SDS * torch.randn(300, DIM, generator=torch_generator(7))
        laws = (law, normal)
        found = [each.log_prob(each.seen(x[None], NO_FEATURES), near) for each in laws]
        errors.append([float((each - exact(x, near)).std()) for each in found])
    by_network, by_lines = torch.tensor(errors).mean(dim=0)
    assert by_network < 0.25
    assert by_lines > 3.0 * by_network


def test_its_density_is_that_of_the_waves(law: Emulator) -> None:
    theta = theta_of(2_000, 2)
    x = waves_of(theta, 2)
    lost = exact(x, theta) - law.log_prob(law.seen(x, NO_FEATURES), theta)
    assert 0.0 < float(lost.mean()) < 1.0  # of forty values


def test_errors_that_go_together_and_rows_that_are_outliers_are_described() -> None:
    theta = theta_of(3_000, 3)
    generator = torch_generator(5)
    shared = torch.randn(3_000, 1, generator=generator)
    louder = torch.where(torch.rand(3_000, 1, generator=generator) < 0.2, 5.0, 1.0)
    own = torch.randn(3_000, len(TIMES), generator=generator)
    law = learned(theta, means_of(theta) + 0.2 * louder * (own + shared))
    assert law is not None
    covariance = law.root @ law.root.T
    away = covariance / covariance.diagonal().outer(covariance.diagonal()).sqrt()
    assert abs(float(away[0, 20]) - 0.5) < 0.1
    assert float(law.tails[1].max() / law.tails[1].min()) > 3.0


def test_units_of_theta_and_x_make_next_to_no_difference() -> None:
    theta = theta_of(1_000, 4)
    x = waves_of(theta, 4)
    law, other = learned(theta, x), learned(100.0 * theta + 7.0, 1e-3 * x)
    assert law is not None
    assert other is not None
    found = law.log_prob(law.seen(x, NO_FEATURES), theta)
    scaled = other.log_prob(other.seen(1e-3 * x, NO_FEATURES), 100.0 * theta + 7.0)
    away = scaled - len(TIMES) * math.log(1e3) - found
    assert float(away.abs().mean()) < 0.1


def test_the_same_seed_gives_the_same_law_and_leaves_the_global_generator() -> None:
    theta = theta_of(300, 5)
    x = waves_of(theta, 5)
    with isolated_rng(3):
        before = torch.random.get_rng_state()
        one, other = learned(theta, x), learned(theta, x)
        assert torch.equal(torch.random.get_rng_state(), before)
    assert one is not None
    assert other is not None
    seen = one.seen(x, NO_FEATURES)
    assert torch.equal(one.log_prob(seen, theta), other.log_prob(seen, theta))


def test_values_that_never_vary_or_are_not_always_there_say_nothing() -> None:
    theta = theta_of(300, 6)
    x = waves_of(theta, 6)
    gone = torch.where(theta[:, :1] > 2.3, torch.nan, x[:, :1])
    more = torch.cat([x[:, :5], torch.full((300, 1), 2.5), gone, x[:, 5:]], dim=1)
    found, other = learned(theta, more), learned(theta, x)
    assert found is not None
    assert other is not None
    of_more = found.log_prob(found.seen(more, NO_FEATURES), theta)
    torch.testing.assert_close(of_more, other.log_prob(other.seen(x, NO_FEATURES), theta))


def test_answers_of_yes_or_no_say_nothing_and_there_is_none_where_all_do() -> None:
    theta = theta_of(300, 6)
    x = waves_of(theta, 6)
    assert learned(theta, torch.full_like(x, 2.5)) is None
    assert learned(theta, (x > 0.0).float()) is None
    answers = torch.cat([x, (x[:, 3:4] > 0.0).float()], dim=1)
    found, other = learned(theta, answers), learned(theta, x)
    assert found is not None
    assert other is not None
    of_others = other.log_prob(other.seen(x, NO_FEATURES), theta)
    torch.testing.assert_close(found.log_prob(found.seen(answers, NO_FEATURES), theta), of_others)


def test_an_answer_gains_by_it_and_a_file_holds_it() -> None:
    theta = theta_of(1_500, 7)
    x = waves_of(theta, 7)
    given = Conditioning(build_encoder("flat", x), x, x[0], "flat")
    flows = small_flow(theta, Support.everywhere(DIM), 32, TRAINING, 3, given=given)
    how = {"settings": flows.settings, "training": TRAINING, "seed": 3}
    pool = pooled_everywhere(flows, x, theta, PRIOR, **how)
    assert isinstance(pool, PooledFlows)
    assert isinstance(pool.likelihood.law, Emulator)
    theta = theta_of(400, 9)
    both = (ConditionalFlows.of(model) for model in (pool, pool.alone))
    at = [q.log_prob(theta[None], waves_of(theta, 9)).mean() for q in both if q is not None]
    assert at[0] > at[1] + 0.2

    assert_a_file_holds(pool)


def test_it_has_a_density_at_theta_far_from_all_that_was_simulated(law: Emulator) -> None:
    density = prior_flow(
        PRIOR, Support.everywhere(DIM), FlowSettings(num_transforms=1, hidden=(32,)), TRAINING, 3
    )
    theta = MIDDLE + 20.0 * SDS * torch.randn(50, DIM, generator=torch_generator(8))
    x = waves_of(MIDDLE[None], 8)
    joint = Likelihood(law, density).log_joint(theta, law.seen(x, NO_FEATURES))
    at_truth = Likelihood(law, density).log_joint(MIDDLE[None], law.seen(x, NO_FEATURES))
    assert not joint.isnan().any()
    assert bool((joint < at_truth).all())


def test_between_places_where_theta_were_simulated_it_says_that_nothing_lies_there() -> None:
    theta = 0.3 * (theta_of(4_000, 4) - MIDDLE)
    theta[:, 0] += torch.arange(1.0, 5.0, 2.0).repeat(2_000)  # a turn, or three
    law = learned(theta, waves_of(theta, 4))
    assert law is not None
    unsure = replace(law, radius=torch.tensor(torch.inf))
    x = law.seen(waves_of(torch.tensor([[1.0, 0.0, 0.0]]), 5), NO_FEATURES)
    torch.testing.assert_close(law.log_prob(x, theta), unsure.log_prob(x, theta))
    between = torch.tensor([[2.0, 0.0, 0.0]])
    assert float(law.log_prob(x, between)) < float(unsure.log_prob(x, between)) - 5.0


@pytest.mark.parametrize(("count", "numbers"), [(1, 2), (20, 3), (500, 1), (5_000, 4)])
def test_balls_about_few_theta_hold_all_of_them(count: int, numbers: int) -> None:
    u = torch.randn(count, numbers, generator=torch_generator(count))
    cover = cover_of(u)
    assert len(cover.centers) <= max(1, count // 16)
    torch.testing.assert_close(cover.loss(u), torch.zeros(count), rtol=0.0, atol=1e-3)
    far = 50.0 + cover.radius * torch.ones(1, numbers)
    assert float(cover.loss(far)) > 100.0
    assert torch.equal(everywhere(numbers).loss(far), torch.zeros(1))


@pytest.mark.parametrize("counted", [False, True])
def test_a_step_has_the_gradient_of_its_loss(counted: bool) -> None:
    shape = counted * torch.tensor([0.0, 3.0, 0.0, 0.0, 1e4, 0.0, 0.0])
    network = curves(DIM, torch.where(shape > 0.0, 0.5, 0.0), shape, seed=0)
    with isolated_rng(1):
        u, z = torch.randn(50, DIM), torch.randn(50, 7)
        z = torch.where(shape > 0.0, z.exp().round(), z)
        for part in network.parameters():  # none at 0, where much would be hidden
            torch.nn.init.normal_(part, std=0.2)
    quick, before = network.compiled(), copy.deepcopy(network)
    value = quick.descend(u, z)
    assert quick.weights.grad is not None
    torch.testing.assert_close(quick.loss(u, z), value)
    quick.weights.data -= quick.weights.grad
    quick.write_back()
    exact = copy.deepcopy(before).double()
    loss = exact.loss(u.double(), z.double())
    loss.backward()
    if not counted:
        torch.testing.assert_close(value.double(), loss.detach())
    # A constant apart: the loss of counts leaves out what does not hang on the network.
    moved = quick.loss(u, z) - value
    torch.testing.assert_close(
        network.loss(u, z).double() - loss, moved.double(), check_dtype=False, rtol=1e-4, atol=1e-5
    )
    for (name, old), new, known in zip(
        before.named_parameters(), network.parameters(), exact.parameters(), strict=True
    ):
        torch.testing.assert_close((old - new).double(), known.grad, msg=name, rtol=1e-4, atol=1e-6)


def test_what_theta_makes_larger_is_learned_from_few_pairs_where_noise_hides_most_of_it() -> None:
    theta = theta_of(3_000, 6)
    theta[:, 2] += 1.0  # the noise is as large as the wave
    law, true = learned(theta, waves_of(theta, 6)), theta_of(2_000, 8)
    assert law is not None
    true[:, 2] += 1.0
    x = waves_of(true, 8)
    lost = exact(x, true) - law.log_prob(law.seen(x, NO_FEATURES), true)
    assert 0.0 < float(lost.mean()) < 0.5


def test_small_counts_are_described_as_such_where_their_means_bend() -> None:
    def log_means(theta: Tensor) -> Tensor:
        """Of less than a hundredth, and of dozens."""
        return 0.5 + 1.5 * means_of(theta)[:, ::4]

    theta, true = theta_of(1_000, 10), theta_of(40, 12)
    x = torch.poisson(log_means(theta).exp(), generator=torch_generator(11))
    law, lines = learned(theta, x), learn_values(theta, x)[0]
    assert law is not None
    assert (law.shape > 0.0).sum() > 3
    at = torch.poisson(log_means(true).exp(), generator=torch_generator(13))
    errors = {"network": [], "lines": []}
    for x_o, middle in zip(at, true, strict=True):
        near = middle + 0.1 * SDS * torch.randn(300, DIM, generator=torch_generator(14))
        truth = (x_o * log_means(near) - log_means(near).exp()).sum(dim=1)
        for name, other in (("network", law), ("lines", lines)):
            found = other.log_prob(other.seen(x_o[None], NO_FEATURES), near)
            errors[name].append(float((found - truth).std()))
    by_network, by_lines = (sum(errors[name]) / len(at) for name in ("network", "lines"))
    assert by_network < 0.5 * by_lines
