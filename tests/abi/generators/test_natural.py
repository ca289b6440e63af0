"""Likelihoods of values of x as exponential families."""

from __future__ import annotations

import pytest
import torch
from answered_sums import DIM, PRIOR, SEED, SETTINGS, TRAINING, Sums, off_by, theta_of
from fits import assert_a_file_holds, small_flow
from torch import Tensor

from abi.encoders.choice import build_encoder
from abi.generators.conditional import ConditionalFlows
from abi.generators.flow_training import Conditioning
from abi.generators.pool.learning import prior_flow
from abi.generators.pool.likelihood import Likelihood, numbers_of, one_each
from abi.generators.pool.model import PooledFlows
from abi.generators.pool.power import _Gain, _preferred
from abi.generators.pool.values.law import learn_values
from abi.generators.pool.values.natural import Natural, learn_natural
from abi.generators.support import Support
from simulators.random import torch_generator

SUMS = Sums(0.5)
ALL = torch.arange(DIM)


def learned(theta: Tensor, x: Tensor) -> Natural:
    law = learn_natural(theta, ALL, x)
    assert law is not None
    return law


@pytest.mark.parametrize(("num_pairs", "most"), [(500, 0.3), (5_000, 0.1)])
def test_sums_are_nearer_than_by_a_normal_law(num_pairs: int, most: float) -> None:
    theta = theta_of(num_pairs, 0)
    x = SUMS.of(theta, 0)
    others = theta_of(400, 1)
    natural, normal = learned(theta, x), learn_values(theta, x)[0]
    errors = []
    for at in SUMS.of(theta_of(20, 2), 2):
        true = SUMS.exact(at, others)
        seen = normal.seen(at[None], torch.empty(1, 0))
        ways = natural.log_prob(at[None], others), normal.log_prob(seen, others)
        errors.append([off_by(found, true) for found in ways])
    natural_error, normal_error = torch.tensor(errors).mean(dim=0).tolist()
    assert natural_error < most
    assert natural_error < 0.7 * normal_error


def test_a_straight_gaussian_has_its_own_likelihood() -> None:
    theta = theta_of(4_000, 0)
    x = theta @ SUMS.design + 0.5 * torch.randn(4_000, 40, generator=torch_generator(1))
    others, at = theta_of(400, 2), x[0]
    true = torch.distributions.Normal(others @ SUMS.design, 0.5).log_prob(at).sum(dim=1)
    assert off_by(learned(theta, x).log_prob(at[None], others), true) < 0.05


def test_units_make_no_difference() -> None:
    theta = theta_of(600, 0)
    x = SUMS.of(theta, 0)
    law, other = learned(theta, x), learned(100.0 * theta + 7.0, 1e-3 * x - 2.0)
    at = law.log_prob(x[:1], theta)
    found = other.log_prob(1e-3 * x[:1] - 2.0, 100.0 * theta + 7.0)
    torch.testing.assert_close(found - found[0], at - at[0], rtol=0.0, atol=1e-2)


def test_a_value_that_never_varies_says_nothing() -> None:
    theta = theta_of(600, 0)
    x = SUMS.of(theta, 0)
    more = torch.cat([x, torch.full((600, 1), 3.0)], dim=1)
    found, other = learned(theta, more).log_prob(more[:1], theta), learned(theta, x)
    torch.testing.assert_close(found, other.log_prob(x[:1], theta), rtol=0.0, atol=1e-3)


def test_there_is_none_from_few_pairs_or_where_values_are_missing() -> None:
    theta = theta_of(100, 0)
    x = SUMS.of(theta, 0)
    assert learn_natural(theta[:12], ALL, x[:12]) is None
    x[3, 2] = float("nan")
    assert learn_natural(theta, ALL, x) is None


def test_theta_in_a_box_stands_for_itself() -> None:
    lower = torch.tensor([0.0, -torch.inf, 2.0])
    support = Support(lower, torch.tensor([1.0, torch.inf, 5.0]))
    theta = torch.tensor([[0.2, -3.0, 4.0], [0.7, 11.0, 2.5]])
    torch.testing.assert_close(numbers_of(theta, support)[:, one_each(support)], theta)


def test_it_need_not_be_surely_better_as_it_is_as_simple() -> None:
    theta = theta_of(500, 0)
    x = SUMS.of(theta, 0)
    density = prior_flow(PRIOR, Support.everywhere(DIM), SETTINGS, TRAINING, SEED)
    rows = torch.randn(100, generator=torch_generator(1)).double()
    before, better = _Gain(1.0, rows - rows.mean()), _Gain(1.0, (rows - rows.mean()).flip(0) + 0.01)
    laws = learned(theta, x), learn_values(theta, x)[0]
    natural, normal = (Likelihood(law, density) for law in laws)
    assert _preferred(natural, better, before, normal)
    assert not _preferred(natural, before, better, normal)
    assert not _preferred(normal, better, before, natural)


def test_an_answer_gains_by_it_and_a_file_holds_it() -> None:
    theta = theta_of(500, 7)
    x = SUMS.of(theta, 7)
    given = Conditioning(build_encoder("flat", x), x, x[0], "flat")
    flows = small_flow(theta, Support.everywhere(DIM), 32, TRAINING, SEED, given=given)

    law = learned(theta, x)
    density = prior_flow(PRIOR, flows.support, SETTINGS, TRAINING, SEED)
    pool = PooledFlows.of(flows, Likelihood(law, density), x[0], 0.75)
    theta, x = theta_of(400, 9), SUMS.of(theta_of(400, 9), 9)
    both = (ConditionalFlows.of(model) for model in (pool, pool.alone))
    with_it, without = (float(q.log_prob(theta[None], x).mean()) for q in both if q is not None)
    assert with_it > without + 0.01

    assert_a_file_holds(pool)
