"""The law of values whose readings are outliers one by one, and whose noise theta makes louder."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, StudentT

from abi.generators.base import GeneratorState
from abi.generators.pool.values.law import OfValues, learn_values, restore_values
from simulators.random import isolated_rng, torch_generator

PLACES = torch.linspace(-1.0, 1.0, 20)
NO_FEATURES = torch.empty(1, 0)


def theta_of(count: int, seed: int) -> Tensor:
    """Level, slope, and log size of the noise."""
    sds = torch.tensor([0.5, 0.5, 0.4])
    return sds * torch.randn(count, 3, generator=torch_generator(seed))


def lines_of(theta: Tensor, seed: int, freedom: float | None = 2.0) -> Tensor:
    """Readings of a line in Student noise of such freedom, or in normal noise."""
    with isolated_rng(seed + 1_000):
        law = Normal(0.0, 1.0) if freedom is None else StudentT(freedom)
        noise = law.sample((len(theta), 20))
    return theta[:, :1] + theta[:, 1:2] * PLACES + 0.3 * theta[:, 2:].exp() * noise


def exact(x: Tensor, theta: Tensor, freedom: float | None = 2.0) -> Tensor:
    """Log p(x | theta) at one x."""
    size = 0.3 * theta[:, 2:].exp()
    r = (x - theta[:, :1] - theta[:, 1:2] * PLACES) / size
    law = Normal(0.0, 1.0) if freedom is None else StudentT(freedom)
    return (law.log_prob(r) - size.log()).sum(dim=1)


def error(law: OfValues, x: Tensor, theta: Tensor, freedom: float | None = 2.0) -> float:
    """The sd of what log p(x | theta) is off by among theta near the true one, in nats."""
    found = law.log_prob(law.seen(x[None], NO_FEATURES), theta)
    return float((found - exact(x, theta, freedom)).std())


@pytest.mark.parametrize("freedom", [1.0, 2.0, 4.0, None])
def test_readings_of_a_line_have_nearly_the_exact_likelihood(freedom: float | None) -> None:
    theta = theta_of(4_000, 0)
    normal, *_, law = learn_values(theta, lines_of(theta, 0, freedom))
    assert bool(law.apart)
    true = theta_of(20, 1)
    errors = []
    for at, x in zip(true, lines_of(true, 1, freedom), strict=True):
        near = at + 0.1 * torch.randn(300, 3, generator=torch_generator(7))
        errors.append([error(each, x, near, freedom) for each in (law, normal)])
    found, of_normal = torch.tensor(errors).mean(dim=0)
    assert found < 0.2
    assert of_normal > 3.0 * found


def test_the_level_of_the_noise_is_found_on_the_scale_of_theta() -> None:
    theta = theta_of(4_000, 2)
    law = learn_values(theta, lines_of(theta, 2))[-1]
    slopes = law.loudness / law.scale
    torch.testing.assert_close(slopes, torch.tensor([0.0, 0.0, 1.0]), atol=0.06, rtol=0.0)


@pytest.mark.parametrize("distance", [30.0 * 0.3, 1e7])
def test_an_outlier_moves_the_likelihood_by_little(distance: float) -> None:
    """Of thirty sds, or beyond all that was simulated: by normal tails it would outweigh all."""
    theta = theta_of(4_000, 3)
    law = learn_values(theta, lines_of(theta, 3))[-1]
    x = lines_of(torch.zeros(1, 3), 4)[0]
    near = 0.1 * torch.randn(300, 3, generator=torch_generator(8))
    x[5] += distance
    assert error(law, x, near) < 0.6


@pytest.mark.parametrize("distance", [30.0, 60.0, 120.0, 250.0, 500.0, 1_000.0])
def test_outliers_say_as_much_wherever_they_lie(distance: float) -> None:
    """Two readings of Cauchy noise, far out: each says that it is a little louder, no more."""
    theta = theta_of(4_000, 3)
    law = learn_values(theta, lines_of(theta, 3, 1.0))[-1]
    x = lines_of(torch.zeros(1, 3), 4, 1.0)[0]
    near = 0.1 * torch.randn(300, 3, generator=torch_generator(8))
    x[5] += 0.3 * distance
    x[12] -= 0.3 * 1.1 * distance
    assert error(law, x, near, 1.0) < 0.25


def test_values_of_normal_noise_alone_have_no_such_law() -> None:
    theta = theta_of(3_000, 5)
    theta[:, 2] = 0.0
    assert not any(bool(law.apart) for law in learn_values(theta, lines_of(theta, 5, None)))


def test_a_law_comes_back_from_a_file_and_one_from_before_it_has_none() -> None:
    theta = theta_of(2_000, 6)
    law = learn_values(theta, lines_of(theta, 6))[-1]
    state = law.state()
    x = law.seen(lines_of(theta[:5], 9), NO_FEATURES)
    torch.testing.assert_close(
        restore_values(state).log_prob(x, theta[:5]), law.log_prob(x, theta[:5])
    )
    old = {name: part for name, part in state.tensors.items() if name not in ("apart", "loudness")}
    assert not bool(restore_values(GeneratorState(state.kind, old, {})).apart)
