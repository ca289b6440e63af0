"""The prior on the real line, where flows have no edges to leak over.

ABI maps theta through the prior's support before it fits a flow (:mod:`abi.generators.support`);
the flows of the baselines get the same map. A prior with density p(theta) has, at z with theta =
T(z), the density p(T(z)) |dT/dz|: a uniform prior becomes a standard normal.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from simulators import Prior
from simulators.given.priors import as_sampler

from ..generators.support import Support, allowed, has_density, prior_log_prob
from ..rounds.problem import Problem

_MAX_TRIES = 200


class RealPrior(Distribution):
    """A prior over theta as a distribution of torch over z."""

    arg_constraints: dict[str, constraints.Constraint] = {}  # noqa: RUF012 - torch's own attribute

    def __init__(self, prior: Prior, support: Support):
        super().__init__(event_shape=support.lower.shape, validate_args=False)
        self.prior, self.box = prior, support

    @property
    def support(self) -> constraints.Constraint:
        """The whole space."""
        return constraints.independent(constraints.real, 1)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw (*sample_shape, d) with the global stream."""
        shape = torch.Size(sample_shape)
        theta = torch.as_tensor(self.prior.sample((shape.numel(),))).detach().float()
        return self.box.to_real(theta).reshape(*shape, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log density of z (..., d)."""
        z = value.reshape(-1, value.shape[-1])
        density = prior_log_prob(self.prior, self.box.from_real(z))
        return (density + self.box.log_jacobian(z)).reshape(value.shape[:-1])


def require_density(prior: Any, who: str) -> None:
    """Refuse a prior that is only a sampler.

    Raises:
        ValueError: if ``prior`` has no density.
    """
    if not has_density(as_sampler(prior)):
        raise ValueError(
            f"`prior` must have log_prob for {who}; got {type(prior).__name__}, a sampler only. "
            "Use snpe with one round, wgan_gp, abc_ss, rejection_abc or abi.fit, which need no "
            "density."
        )


def draw_inside(
    problem: Problem, propose: Callable[[int], Tensor], num_samples: int, who: str
) -> Tensor:
    """Draws theta (n, d) of a network on the real line, those outside the prior drawn again.

    Args:
        problem: its prior and support say what is inside.
        propose: n -> z (n, d).
        num_samples: n.
        who: the method, to be named where it fails.

    Raises:
        RuntimeError: if next to no draw is inside.
    """
    kept: list[Tensor] = []
    for _ in range(_MAX_TRIES):
        theta = problem.support.from_real(propose(num_samples))
        kept.append(theta[allowed(problem.prior, problem.support, theta)])
        if sum(map(len, kept)) >= num_samples:
            return torch.cat(kept)[:num_samples]
    raise RuntimeError(
        f"`{who}` put nearly all of its mass outside the prior: {sum(map(len, kept))} of "
        f"{_MAX_TRIES * num_samples} draws were inside. Use more simulations."
    )
