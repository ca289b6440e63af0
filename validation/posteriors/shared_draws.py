"""One sample of q for all tests, and two posteriors made of it that are wrong on purpose.

A test that does not reject says nothing unless it would reject what is wrong. So the same tests see

- *prior*: at each x the theta of other pairs, which are draws of the prior and know nothing of x;
- *wide*: q's own draws at each x, spread 1.5 times about their mean.

Neither costs a simulation, or more draws of q than the tests themselves. They offer draws alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from simulators.random import torch_generator
from simulators.summary import summary

from ..controls import spread
from ..seeds import part_seed
from .draws import drawn
from .protocol import Posterior
from .stored_samples import StoredSamples


@dataclass(frozen=True, eq=False)
class SharedDraws(Posterior):
    """A posterior that was sampled once at the joint pairs' x, for all tests."""

    q: Any
    stored: StoredSamples

    __repr__ = summary

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """The stored draws where they suffice, else new ones."""
        if num_samples <= len(self.stored.samples):
            try:
                return self.stored.sample(num_samples, x)
            except ValueError:
                pass  # an x that was not drawn for
        return drawn(self.q, num_samples, x, self.stored.samples.shape[2], seed)

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """The density of the posterior, where it has one."""
        if not hasattr(self.q, "log_prob"):
            raise NotImplementedError("this posterior offers draws only, no density.")
        values: Tensor = self.q.log_prob(theta, x)
        return values

    def to_base(self, theta: Tensor, x: Tensor) -> Tensor:
        """The inverse of the flow, where it is one."""
        if not hasattr(self.q, "to_base"):
            raise NotImplementedError("this posterior is not a flow with a known inverse.")
        z: Tensor = self.q.to_base(theta, x)
        return z


def wrong_on_purpose(
    shared: SharedDraws, theta: Tensor, seed: int
) -> dict[str, tuple[SharedDraws, int]]:
    """The wrong posteriors by name, each with the most draws at an x that are all different.

    Args:
        shared: of the posterior under test, at the x of N pairs.
        theta: of the pairs, (N, d).
        seed: of who gets whose theta.
    """
    x, samples = shared.stored.x, shared.stored.samples
    others = StoredSamples(x, _of_others(theta, len(samples), seed))
    widened = StoredSamples(x, spread(samples))
    return {
        "prior": (SharedDraws(PairsTheta(theta), others), len(theta) - 1),
        "wide": (SharedDraws(Widened(shared), widened), len(samples)),
    }


@dataclass(frozen=True, eq=False)
class PairsTheta(Posterior):
    """The theta (N, d) of all pairs, drawn with replacement whatever x is."""

    theta: Tensor

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draws (num_samples, n, d) that know nothing of x (n, p)."""
        generator = torch_generator(part_seed(seed, 0))
        rows = torch.randint(len(self.theta), (num_samples, len(x)), generator=generator)
        return self.theta[rows]


@dataclass(frozen=True, eq=False)
class Widened(Posterior):
    """The draws of q, spread about their mean at each x."""

    q: SharedDraws

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draws (num_samples, n, d) given x (n, p)."""
        return spread(self.q.sample(num_samples, x, seed))


def _of_others(theta: Tensor, num_samples: int, seed: int) -> Tensor:
    """Theta of other pairs for each of N pairs, (num_samples, N, d), each once while there are any.

    The pairs sit in a circle in random order, and each takes the theta of those so many places on.
    """
    count = len(theta)
    generator = torch_generator(seed)
    order = torch.randperm(count, generator=generator)
    steps = 1 + torch.randperm(count - 1, generator=generator)
    taken = steps[torch.arange(num_samples) % (count - 1)]
    found = torch.empty(num_samples, count, theta.shape[1])
    found[:, order] = theta[order[(torch.arange(count) + taken[:, None]) % count]]
    return found
