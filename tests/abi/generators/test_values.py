"""Likelihoods of the values of x by linear models of each."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fits import assert_a_file_holds, pooled_everywhere, small_flow
from torch import Tensor

from abi.encoders.choice import build_encoder
from abi.generators.conditional import ConditionalFlows
from abi.generators.flow import FlowModel
from abi.generators.flow_network import FlowSettings
from abi.generators.flow_training import Conditioning
from abi.generators.pool.model import PooledFlows
from abi.generators.pool.values.law import OfValues, learn_values
from abi.generators.support import Support
from abi.training.loop import TrainingSettings
from simulators.random import torch_generator

SETTINGS = FlowSettings(num_transforms=1, hidden=(32, 32))
TRAINING = TrainingSettings(learning_rate=1e-2, batch_size=128, num_steps=600, max_epochs=25)
PRIOR = torch.distributions.Independent(torch.distributions.Normal(torch.zeros(2), 1.0), 1)
SLOPES = torch.linspace(-1.5, 1.5, 24).reshape(2, 12)
SEED = 3


def learned(theta: Tensor, x: Tensor) -> OfValues:
    """The law whose noise is normal."""
    return learn_values(theta, x)[0]


def theta_of(count: int, seed: int) -> Tensor:
    return torch.randn(count, 2, generator=torch_generator(seed))


def noise_of(count: int, seed: int) -> Tensor:
    return torch.randn(count, 12, generator=torch_generator(seed + 1_000))


def place(theta: Tensor) -> Tensor:
    """Means with squares and products."""
    return theta @ SLOPES + 0.5 * theta[:, :1] ** 2 - theta[:, :1] * theta[:, 1:]


def yes_or_no(theta: Tensor, seed: int) -> Tensor:
    """Twelve answers, whose log odds are linear in theta."""
    uniform = torch.rand(len(theta), 12, generator=torch_generator(seed))
    return (uniform < (theta @ SLOPES).sigmoid()).float()


def off_by(law: OfValues, x: Tensor, theta: Tensor, exact: Tensor) -> float:
    """The error of log p(x | theta), in sds of it among theta of the prior at one x."""
    return float((law.log_prob(x, theta) - exact).square().mean().sqrt() / exact.std())


def test_normal_values_with_curved_means() -> None:
    theta = theta_of(1_000, 0)
    law = learned(theta, place(theta) + 0.3 * noise_of(1_000, 0))
    assert len(law.place) == 6
    assert torch.equal(law.root, law.root.diag().diag())
    others, x = theta_of(400, 1), place(theta_of(1, 2)) + 0.3 * noise_of(1, 2)
    normal = torch.distributions.Normal(place(others), 0.3)
    assert off_by(law, x, others, normal.log_prob(x).sum(dim=1)) < 0.05


def test_errors_that_go_together() -> None:
    theta = theta_of(1_000, 0)
    both = 0.4 * torch.randn(1_000, 1, generator=torch_generator(5))
    law = learned(theta, place(theta) + both + 0.3 * noise_of(1_000, 0))
    others, x = theta_of(400, 1), place(theta_of(1, 2)) + 0.3 * noise_of(1, 2)
    covariance = 0.3**2 * torch.eye(12) + 0.4**2
    normal = torch.distributions.MultivariateNormal(place(others), covariance)
    assert off_by(law, x, others, normal.log_prob(x)) < 0.1


def test_answers_of_yes_or_no() -> None:
    theta = theta_of(4_000, 0)
    law = learned(theta, yes_or_no(theta, 1))
    assert len(law.place) == 3
    others, x = theta_of(400, 1), yes_or_no(theta_of(1, 2), 3)
    exact = torch.distributions.Bernoulli(logits=others @ SLOPES).log_prob(x.expand(400, -1))
    assert off_by(law, x, others, exact.sum(dim=1)) < 0.1


def test_answers_from_beyond_the_region_say_as_much_of_their_law() -> None:
    """But not of a value that is no answer there: it is a count, which is 0 or 1 in the region."""
    theta, past = theta_of(300, 0), 2.0 * theta_of(2_000, 4)
    x, beyond = yes_or_no(theta, 1), yes_or_no(past, 5)
    few, many = learned(theta, x), learn_values(theta, x, (past, beyond))[0]
    others, at = theta_of(400, 1), yes_or_no(theta_of(1, 2), 3)
    exact = torch.distributions.Bernoulli(logits=others @ SLOPES).log_prob(at.expand(400, -1))
    exact = exact.sum(dim=1)
    assert off_by(many, at, others, exact) < 0.6 * off_by(few, at, others, exact)
    beyond[:, 3] = 2.0
    counted = learn_values(theta, x, (past, beyond))[0]
    assert torch.equal(counted.log_prob(at, others), few.log_prob(at, others))


def test_both_kinds_stand_beside_each_other() -> None:
    theta = theta_of(1_000, 0)
    answers, measured = yes_or_no(theta, 1), place(theta) + noise_of(1_000, 0)
    together = learned(theta, torch.cat([answers, measured], dim=1))
    parts = [learned(theta, values) for values in (answers, measured)]
    apart = parts[0].log_prob(answers, theta) + parts[1].log_prob(measured, theta)
    whole = together.log_prob(torch.cat([answers, measured], dim=1), theta)
    torch.testing.assert_close(whole, apart, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("value", [1.5, 0.0, torch.nan, torch.inf])
def test_values_that_never_vary_or_are_not_there_say_nothing(value: float) -> None:
    theta = theta_of(500, 0)
    x = place(theta) + noise_of(500, 0)
    more = torch.cat([x, torch.full((500, 1), value)], dim=1)
    found = learned(theta, more).log_prob(more, theta)
    torch.testing.assert_close(found, learned(theta, x).log_prob(x, theta))


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_units_do_not_matter(unit: float) -> None:
    theta = theta_of(500, 0)
    x = place(theta) + noise_of(500, 0)
    found = learned(theta, unit * x).log_prob(unit * x, theta)
    usual = learned(theta, x).log_prob(x, theta)
    torch.testing.assert_close(found - found.mean(), usual - usual.mean(), rtol=1e-2, atol=1e-2)


def test_values_that_see_one_number_each_have_one_slope_each() -> None:
    theta = torch.randn(800, 10, generator=torch_generator(0))
    x = theta + torch.randn(800, 10, generator=torch_generator(1))
    slope = learned(theta, x).place[1:11]
    assert bool((slope.diagonal() > 0.3).all())
    assert int((slope != 0.0).sum()) <= 12  # two by chance, of six hundred and forty


def test_rows_of_which_some_are_measured_better() -> None:
    """Half of them with a tenth of the noise: the middle is found nearly as from these alone."""
    theta = theta_of(1_000, 0)
    better = torch.rand(1_000, 1, generator=torch_generator(5)) < 0.5
    noise = torch.where(better, 0.1, 1.0) * noise_of(1_000, 0)
    _, law, *_ = learn_values(theta, place(theta) + noise)
    chances, scales = law.tails
    narrow = scales < scales.max() / 3.0
    assert float(chances[narrow].sum()) == pytest.approx(0.5, abs=0.06)
    widths = [
        float((chances * scales)[part].sum() / chances[part].sum()) for part in (narrow, ~narrow)
    ]
    assert widths[1] / widths[0] == pytest.approx(10.0, rel=0.2)
    others, x = theta_of(400, 1), place(theta_of(1, 2)) + 0.1 * noise_of(1, 2)
    each = [torch.distributions.Normal(place(others), sd).log_prob(x).sum(1) for sd in (0.1, 1.0)]
    exact = torch.stack(each).logsumexp(dim=0)
    assert off_by(law, x, others, exact) < 0.1


def test_noise_that_is_normal_has_no_tails() -> None:
    theta = theta_of(1_000, 0)
    assert len(learn_values(theta, place(theta) + noise_of(1_000, 0))) == 1


@pytest.mark.parametrize(("exponent", "bent"), [(0.0, torch.exp), (0.5, torch.square)])
def test_sizes_and_counts_are_seen_on_their_own_scale(exponent: float, bent: Any) -> None:
    theta = theta_of(1_000, 0)
    on_scale = 5.0 + 0.3 * place(theta) + 0.1 * noise_of(1_000, 0)
    x = bent(on_scale)
    law = learned(theta, x)
    assert bool((law.exponent == exponent).all())
    other = learned(theta, on_scale)
    x_o, none, at = x[:1], torch.empty(1, 0), theta_of(400, 1)
    found = law.log_prob(law.seen(x_o, none), at)
    assert off_by(other, other.seen(on_scale[:1], none), at, found) < 0.05


def test_counts_may_be_none() -> None:
    rate = torch.exp(theta_of(1_000, 0) @ SLOPES / 2.0)
    x = torch.poisson(rate, generator=torch_generator(1))
    law = learned(theta_of(1_000, 0), x)
    seen = law.seen(x, torch.empty(1_000, 0))
    assert bool(seen.isfinite().all())
    assert bool(law.log_prob(seen, theta_of(1_000, 0)).isfinite().all())


@pytest.mark.parametrize("num_pairs", [20, 200, 2_000])
def test_what_hangs_on_nothing_is_given_no_slope(num_pairs: int) -> None:
    law = learned(theta_of(num_pairs, 0), noise_of(num_pairs, 0))
    assert int((law.place[1:] != 0.0).sum()) <= 1


def many_answers(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Theta, and sixty answers: a regression of theta on them has many numbers to find."""
    theta = theta_of(count, seed)
    return theta, torch.cat([yes_or_no(theta, 5 * seed + part) for part in range(5)], dim=1)


@pytest.fixture(scope="module")
def answers() -> tuple[Tensor, Tensor]:
    return many_answers(400, 7)


@pytest.fixture(scope="module")
def flows(answers: tuple[Tensor, Tensor]) -> FlowModel:
    theta, x = answers
    given = Conditioning(build_encoder("flat", x), x, x[0], "flat")
    return small_flow(theta, Support.everywhere(2), 32, TRAINING, SEED, given=given)


@pytest.fixture(scope="module")
def pool(answers: tuple[Tensor, Tensor], flows: FlowModel) -> PooledFlows:
    theta, x = answers
    how = {"settings": SETTINGS, "training": TRAINING, "seed": SEED}
    found = pooled_everywhere(flows, x, theta, PRIOR, **how)
    assert isinstance(found, PooledFlows)
    return found


def test_an_answer_gains_by_it_at_every_x(pool: PooledFlows) -> None:
    assert isinstance(pool.likelihood.law, OfValues)
    theta, x = many_answers(400, 9)
    both = (ConditionalFlows.of(model) for model in (pool, pool.alone))
    with_it, without = (float(q.log_prob(theta[None], x).mean()) for q in both if q is not None)
    assert with_it > without + 0.05


def test_a_file_holds_it(pool: PooledFlows) -> None:
    assert_a_file_holds(pool)


def test_pairs_held_out_choose_the_law_and_then_tell_of_it_too(
    pool: PooledFlows, answers: tuple[Tensor, Tensor]
) -> None:
    theta, x = answers
    assert isinstance(pool.likelihood.law, OfValues)
    assert torch.equal(pool.likelihood.law.place, learn_values(theta, x)[0].place)
