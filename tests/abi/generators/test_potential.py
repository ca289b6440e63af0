"""Likelihoods of values of x as exponential families whose moments are those of one potential."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from answered_sums import DIM, PRIOR, SEED, SETTINGS, TRAINING, Sums, off_by, theta_of
from fits import assert_a_file_holds, small_flow
from torch import Tensor

from abi.encoders.choice import build_encoder
from abi.generators.flow_training import Conditioning
from abi.generators.pool.learning import Learning, prior_flow
from abi.generators.pool.likelihood import Likelihood
from abi.generators.pool.model import PooledFlows
from abi.generators.pool.potential import Convex, Potential, _NormalLoss, learn_potential
from abi.generators.pool.power import _Gain, _preferred
from abi.generators.pool.values.law import learn_values
from abi.generators.pool.values.natural import Natural, learn_natural
from abi.generators.pool.ways import closer
from abi.generators.support import Support
from simulators.random import torch_generator

SUMS = Sums(1.6)


def both(theta: Tensor, x: Tensor) -> tuple[Natural, Potential]:
    """The natural family, and the one that begins with it."""
    natural = learn_natural(theta, torch.arange(DIM), x)
    assert natural is not None
    law = learn_potential(natural, theta, x, device="cpu", seed=SEED, on_epoch=lambda _: None)
    assert law is not None
    return natural, law


def test_pairs_from_beyond_the_region_help_in_it() -> None:
    """As many again, of a prior half as wide again; those far off are left out."""
    theta, past = theta_of(300, 0), theta_of(600, 5)
    past = 1.0 + 1.5 * (past - 1.0)
    past[300:] += 50.0
    density = prior_flow(PRIOR, Support.everywhere(DIM), SETTINGS, TRAINING, SEED)
    x, few = SUMS.of(theta, 0), Learning(theta, density, SETTINGS, TRAINING, SEED, whole=True)
    many = replace(few, past=(past, SUMS.of(past, 5)))
    assert [len(part) for part in few.beyond(x)] == [300, 300]
    assert [len(part) for part in many.beyond(x)] == [600, 600]
    natural = learn_natural(theta, torch.arange(DIM), x)
    assert natural is not None
    others, errors = theta_of(400, 1), []
    for learning in (few, many):
        (found,) = learning.of_potential(natural, x, lambda _: None)
        for at in SUMS.of(theta_of(20, 2), 2):
            true = SUMS.exact(at, others)
            errors.append(off_by(found.law.log_prob(at[None], others), true))
    of_few, of_many = torch.tensor(errors).reshape(2, -1).mean(dim=1).tolist()
    assert of_many < 0.9 * of_few


@pytest.mark.parametrize(("num_pairs", "share"), [(600, 0.9), (5_000, 0.7)])
def test_sums_of_answers_are_nearer_than_by_the_natural_family(
    num_pairs: int, share: float
) -> None:
    theta = theta_of(num_pairs, 0)
    laws = both(theta, SUMS.of(theta, 0))
    others = theta_of(400, 1)
    errors = []
    for at in SUMS.of(theta_of(20, 2), 2):
        true = SUMS.exact(at, others)
        errors.append([off_by(law.log_prob(at[None], others), true) for law in laws])
    natural, potential = torch.tensor(errors).mean(dim=0).tolist()
    assert potential < share * natural


def test_a_straight_gaussian_has_its_own_likelihood() -> None:
    """Of more values than parameters, too."""
    theta = theta_of(4_000, 0)
    x = theta @ SUMS.design + 0.5 * torch.randn(4_000, 40, generator=torch_generator(1))
    others, at = theta_of(400, 2), x[0]
    true = torch.distributions.Normal(others @ SUMS.design, 0.5).log_prob(at).sum(dim=1)
    assert off_by(both(theta, x)[1].log_prob(at[None], others), true) < 0.05


def test_units_make_no_difference() -> None:
    theta = theta_of(600, 0)
    x = SUMS.of(theta, 0)
    _, law = both(theta, x)
    _, other = both(100.0 * theta + 7.0, 1e-3 * x - 2.0)
    at = law.log_prob(x[:1], theta)
    found = other.log_prob(1e-3 * x[:1] - 2.0, 100.0 * theta + 7.0)
    assert float((found - found.mean() - at + at.mean()).std()) < 0.05  # training is not exact


def test_there_is_none_of_fewer_values_than_parameters() -> None:
    theta = theta_of(600, 0)
    x = SUMS.of(theta, 0)[:, :2]
    natural = learn_natural(theta, torch.arange(DIM), x)
    assert natural is not None
    asked = {"device": "cpu", "seed": SEED, "on_epoch": lambda _: None}
    assert learn_potential(natural, theta, x, **asked) is None  # type: ignore[arg-type]


def test_its_moments_are_the_derivatives_of_one_convex_function() -> None:
    network = Convex(4.0 * torch.eye(DIM), seed=1).double()
    u = torch.randn(5, DIM, generator=torch_generator(2)).double()
    mean, covariance = network.moments(u)
    for row, slope, curved in zip(u, mean, covariance, strict=True):

        def value(at: Tensor) -> Tensor:
            return network(at[None])[0]

        torch.testing.assert_close(torch.autograd.functional.jacobian(value, row), slope)
        second = torch.autograd.functional.hessian(value, row)
        torch.testing.assert_close(second, curved, rtol=0.0, atol=1e-3)  # what keeps it definite
        assert torch.linalg.eigvalsh(curved).min() > 0.0


def test_the_gradient_of_its_loss_is_exact() -> None:
    generator = torch_generator(1)
    r = torch.randn(4, 3, generator=generator).double().requires_grad_()
    h = torch.randn(4, 3, 3, generator=generator).double()
    h = (h @ h.transpose(1, 2) + torch.eye(3).double()).requires_grad_()

    def loss(r: Tensor, h: Tensor) -> Tensor:
        value: Tensor = _NormalLoss.apply(r, 0.5 * (h + h.transpose(1, 2)))  # type: ignore[no-untyped-call]
        return value

    assert torch.autograd.gradcheck(loss, (r, h))
    own = -torch.distributions.MultivariateNormal(torch.zeros(3).double(), h).log_prob(r).mean()
    constant = 1.5 * torch.log(torch.tensor(2.0 * torch.pi).double())
    torch.testing.assert_close(loss(r, h), own - constant)


def test_it_is_tried_after_a_natural_family_and_taken_unless_pairs_lose_by_it() -> None:
    theta = theta_of(600, 0)
    x = SUMS.of(theta, 0)
    natural, law = both(theta, x)
    assert len(closer(natural, x)) == 1
    assert closer(law, x) == []
    density = prior_flow(PRIOR, Support.everywhere(DIM), SETTINGS, TRAINING, SEED)
    rows = torch.randn(100, generator=torch_generator(1)).double()
    before = _Gain(1.0, rows)
    closest, family = Likelihood(law, density), Likelihood(natural, density)
    of_values = Likelihood(learn_values(theta, x)[0], density)
    assert _preferred(closest, _Gain(1.0, rows.flip(0) - 0.01), before, family)
    assert not _preferred(closest, _Gain(1.0, rows - 0.01), before, family)
    assert not _preferred(closest, _Gain(1.0, rows.flip(0) - 0.01), before, of_values)
    assert _preferred(closest, _Gain(1.0, rows.flip(0) + 0.01), before, of_values)


def test_a_file_holds_it() -> None:
    theta = theta_of(500, 7)
    x = SUMS.of(theta, 7)
    given = Conditioning(build_encoder("flat", x), x, x[0], "flat")
    flows = small_flow(theta, Support.everywhere(DIM), 32, TRAINING, SEED, given=given)
    density = prior_flow(PRIOR, flows.support, SETTINGS, TRAINING, SEED)
    pool = PooledFlows.of(flows, Likelihood(both(theta, x)[1], density), x[0], 0.75)
    assert_a_file_holds(pool)
