"""Objects with ``sample_batched``, as sbi's and ABI's are, and a density for a batch of x."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

import validation
from simulators import GaussianLinear, sample_joint
from simulators.random import torch_generator
from validation import as_posterior

TASK = GaussianLinear(2, 1.0, 1.0)  # theta given x is N(x / 2, 1/2)
SPREAD = 0.5**0.5


class Batched:
    """Draws from the posterior of the task, the first argument a shape and the seed its own."""

    def __init__(self, width: float = SPREAD) -> None:
        self.width = width
        self.seeds: list[int] = []

    def sample_batched(self, sample_shape: Sequence[int], x: Tensor, *, seed: int = 0) -> Tensor:
        self.seeds.append(seed)
        noise = torch.randn(*sample_shape, *x.shape, generator=torch_generator(seed))
        return x / 2 + self.width * noise

    def sample(self, sample_shape: Sequence[int] = (), x: Tensor | None = None) -> Tensor:
        raise AssertionError("one observation at a time would be slow")

    def log_prob(self, theta: Tensor, x: Tensor | None = None) -> Tensor:
        raise AssertionError("it takes one observation")


class WithDensity(Batched):
    """The same with a density at theta (K, n, d) given x (n, p)."""

    def log_prob_batched(self, theta: Tensor, x: Tensor) -> Tensor:
        return torch.distributions.Normal(x / 2, self.width).log_prob(theta).sum(dim=2)


@pytest.fixture(scope="module")
def pairs() -> tuple[Tensor, Tensor]:
    return sample_joint(TASK, 150, seed=0)


def test_draws_are_asked_for_in_batches_and_laid_out_samples_first(
    pairs: tuple[Tensor, Tensor],
) -> None:
    q = as_posterior(Batched(), batch_size=40)
    draws = q.sample(7, pairs[1], 3)
    assert draws.shape == (7, 150, 2)
    assert torch.equal(q.sample(7, pairs[1], 3), draws)
    assert not torch.equal(q.sample(7, pairs[1], 4), draws)
    mean = q.sample(4_000, pairs[1][:3], 0).mean(dim=0)
    # Four standard errors of the mean of 4,000 draws.
    torch.testing.assert_close(mean, pairs[1][:3] / 2, atol=4 * SPREAD / 4_000**0.5, rtol=0.0)


def test_each_batch_has_a_seed_of_its_own(pairs: tuple[Tensor, Tensor]) -> None:
    batched = Batched()
    as_posterior(batched, batch_size=40).sample(7, pairs[1], 3)
    assert len(batched.seeds) == len(set(batched.seeds)) == 4


def test_the_density_is_the_one_for_batches(pairs: tuple[Tensor, Tensor]) -> None:
    theta, x = pairs
    q = WithDensity()
    together = theta.expand(3, -1, -1)
    found = as_posterior(q).log_prob(together, x)  # type: ignore[attr-defined]
    torch.testing.assert_close(found, q.log_prob_batched(together, x))


def test_an_object_without_a_density_for_batches_offers_draws_only(
    pairs: tuple[Tensor, Tensor],
) -> None:
    theta, x = pairs
    with pytest.raises(NotImplementedError, match="Batched offers draws only, no density"):
        as_posterior(Batched()).log_prob(theta[None], x)  # type: ignore[attr-defined]


def test_tests_take_it_as_it_is_and_tell_a_right_one_from_a_wide_one(
    pairs: tuple[Tensor, Tensor],
) -> None:
    for test in (validation.sbc, validation.hpd):
        assert not test(WithDensity(), *pairs, num_samples=100).reject(0.001)
        assert test(WithDensity(2 * SPREAD), *pairs, num_samples=100).reject(0.001)


def test_draws_of_another_shape_are_refused_by_its_name(pairs: tuple[Tensor, Tensor]) -> None:
    class Turned(Batched):
        def sample_batched(
            self, sample_shape: Sequence[int], x: Tensor, *, seed: int = 0
        ) -> Tensor:
            return super().sample_batched(sample_shape, x, seed=seed).transpose(0, 1)

    with pytest.raises(
        ValueError, match=r"`q` \(Turned\) must draw samples of shape \(9, 150, d\)"
    ):
        as_posterior(Turned()).sample(9, pairs[1])
