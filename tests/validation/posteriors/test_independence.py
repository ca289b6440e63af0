"""Draws that hang together, in a chain or over x, are told or put in another order."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import validation
from simulators import GaussianLinear, sample_joint
from simulators.random import torch_generator

SD = 0.5**0.5


@pytest.fixture(scope="module")
def pairs() -> tuple[Tensor, Tensor]:
    return sample_joint(GaussianLinear(2, 1.0, 1.0), 150, seed=1)


def chain(length: int, x: Tensor, seed: int, memory: float = 0.95) -> Tensor:
    """Draws (L, n, d) of the exact posterior, each near the one before it."""
    noise = torch.randn(length, *x.shape, generator=torch_generator(seed))
    for step in range(1, length):
        noise[step] = memory * noise[step - 1] + (1 - memory**2) ** 0.5 * noise[step]
    return x / 2 + SD * noise


def test_stored_chains_of_an_exact_posterior_are_not_rejected(pairs: tuple[Tensor, Tensor]) -> None:
    theta, x = pairs
    draws = chain(4_000, x, seed=2)
    for stored in (draws, draws.sort(dim=0).values):
        q = validation.as_posterior((theta, x, stored), layout="samples_first")
        assert validation.sbc(q, theta, x, num_samples=100).p_value > 0.05


def test_stored_draws_without_a_chain_stay_in_their_order(pairs: tuple[Tensor, Tensor]) -> None:
    theta, x = pairs
    draws = chain(200, x, seed=2, memory=0.0)
    q = validation.as_posterior((theta, x, draws), layout="samples_first")
    assert torch.equal(q.sample(200, x), draws)


def test_stored_chains_that_are_too_short_are_told(pairs: tuple[Tensor, Tensor]) -> None:
    theta, x = pairs
    with pytest.warns(UserWarning, match=r"the 200 draws .* worth about \d+ independent"):
        validation.as_posterior((theta, x, chain(200, x, seed=2)), layout="samples_first")


def same_noise(num_samples: int, x_o: Tensor) -> NDArray[np.float64]:
    return x_o.numpy() / 2 + SD * np.random.default_rng(0).normal(size=(num_samples, 2))


def reshaped(num_samples: int, x: Tensor) -> Tensor:
    """Draws (n, K, d) that were not transposed, but forced into (K, n, d)."""
    noise = torch.randn(len(x), num_samples, 2)
    return (x[:, None] / 2 + SD * noise).reshape(num_samples, len(x), 2)


@pytest.mark.parametrize(
    ("q", "words"),
    [
        (same_noise, "nearly the same order at every x"),
        (
            lambda num_samples, x: torch.randn(num_samples, 1, 2).expand(-1, len(x), -1),
            "at every x",
        ),
        (reshaped, "reshapes draws in place of swapping"),
        (lambda num_samples, x: chain(num_samples, x, seed=2), "neighbours have the correlation"),
    ],
    ids=["a seed inside", "the same draws", "axes mixed up", "a chain"],
)
def test_draws_that_hang_together_are_told_once(
    q: Callable[..., object], words: str, pairs: tuple[Tensor, Tensor]
) -> None:
    with pytest.warns(UserWarning, match=words) as told:
        validation.validate(q, *pairs, methods=["sbc", "tarp"])
    assert len(told) == 1


@pytest.mark.parametrize("kind", ["normal", "all the same", "yes and no", "heavy tails"])
def test_independent_draws_of_any_law_are_not_told(kind: str, pairs: tuple[Tensor, Tensor]) -> None:
    def q(num_samples: int, x: Tensor) -> Tensor:
        noise = torch.randn(num_samples, *x.shape)
        made = {"normal": noise, "all the same": 0 * noise, "yes and no": (noise > 1).float()}
        return x / 2 + made.get(kind, noise / torch.randn_like(noise))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for num_samples in (25, 100):
            validation.sbc(q, *pairs, num_samples=num_samples)


def test_stored_draws_with_one_noise_for_all_x_are_not_taken_for_chains(
    pairs: tuple[Tensor, Tensor],
) -> None:
    """All x together have then the neighbours of one, of which some are close by chance."""
    theta, x = pairs
    for seed in range(20):
        noise = torch.randn(100, 1, 2, generator=torch_generator(seed))
        q = validation.as_posterior((theta, x, x / 2 + SD * noise), layout="samples_first")
        with pytest.warns(UserWarning, match="nearly the same order at every x"):
            validation.sbc(q, theta, x, num_samples=100)
