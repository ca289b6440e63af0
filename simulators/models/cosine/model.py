"""The cosine model: one wave in noise, its frequency and phase hidden in the order of the values.

========== ======================= ========= ============
symbol     meaning                 unit      prior
========== ======================= ========= ============
omega      frequency               1 / step  U(0, 1/10)
phi        phase at step 0         radian    U(0, 2 pi)
log sigma  log of the noise's sd   log of Y  N(0, 1)
log A      log of the amplitude    log of Y  N(0, 1)
========== ======================= ========= ============

    Y_t = A cos(2 pi omega t + phi) + sigma eps_t,  eps_t ~ N(0, 1),  t = 1 ... 100

phi is an angle, 0 and 2 pi the same: a posterior that covers the seam shows as two modes. The true
values behind the default observation are omega = 1/80, phi = pi/4, sigma = 1, A = 2.

Source: Bernton, Jacob, Gerber & Robert (2019); Lu & Wong (2025), Section 4.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import constraints

from ...arguments import count, settle
from ...base import as_draws, as_observation
from ..declared import Constant, Observation, run_compiled

_MAX_OMEGA = 0.1


class _CosinePrior:
    """U(0, 1/10) x U(0, 2 pi) x N(0, 1) x N(0, 1)."""

    support = constraints.cat(
        [
            constraints.interval(torch.zeros(2), torch.tensor([_MAX_OMEGA, 2.0 * math.pi])),
            constraints.real,
        ],
        dim=-1,
        lengths=[2, 2],
    )

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw (*sample_shape, 4)."""
        uniform = torch.rand(*sample_shape, 2) * torch.tensor([_MAX_OMEGA, 2.0 * math.pi])
        return torch.cat([uniform, torch.randn(*sample_shape, 2)], dim=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log density of (..., 4)."""
        upper = torch.tensor([_MAX_OMEGA, 2.0 * math.pi])
        inside = ((value[..., :2] >= 0.0) & (value[..., :2] <= upper)).all(dim=-1)
        area = _MAX_OMEGA * 2.0 * math.pi
        density = -0.5 * (value[..., 2:] ** 2).sum(dim=-1) - math.log(2.0 * math.pi * area)
        return torch.where(inside, density, torch.tensor(-math.inf))


@dataclass(frozen=True)
class Cosine:
    """A noisy cosine at ``num_steps`` steps; x (n, num_steps) holds Y_1, Y_2, ... in order.

    Args:
        num_steps: length of the series.
    """

    num_steps: int = 100

    theta_dim = 4
    parameter_names = ("omega", "phi", "log sigma", "log A")
    prior = _CosinePrior()
    """U(0, 1/10) x U(0, 2 pi) x N(0, 1) x N(0, 1)."""
    true_theta = Constant(1.0 / 80.0, math.pi / 4.0, 0.0, math.log(2.0))
    """The parameters behind the default observation, (4,)."""
    observation = Observation(seed=2019)
    """The default observation, (num_steps,): one series at ``true_theta``."""

    def __post_init__(self) -> None:
        settle(self, num_steps=count())

    @property
    def x_dim(self) -> int:
        """One value a step."""
        return self.num_steps

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 4) -> x (n, num_steps), float32."""
        from .kernels import simulate_waves

        return run_compiled(simulate_waves, self, theta, seed, first_row)

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, 4) independently from the exact posterior at ``x_o`` (num_steps,).

        The noise is integrated out, the other three are drawn on a box cut up around the peaks of
        the posterior, however many and narrow. See :mod:`simulators.models.cosine.posterior`.
        """
        from .posterior import sample_posterior

        y = as_observation(x_o, self.x_dim).double().numpy()
        num_samples, seed = as_draws(num_samples, seed)
        return torch.from_numpy(sample_posterior(y, num_samples, seed)).float()
