"""The M/G/1 queue: one server, interdeparture times observed, arrivals hidden.

=================== =================================== ============ ====================
symbol              meaning                             unit         prior (default)
=================== =================================== ============ ====================
theta_1             shortest service time               time         U(0, 10)
theta_2 - theta_1   width of the service times          time         U(0, 10)
theta_3             arrival rate                        1 / time     U(0, 1/3)
=================== =================================== ============ ====================

    W_i ~ Exp(theta_3), V_i = W_1 + ... + W_i      arrival of customer i
    U_i ~ U(theta_1, theta_2)                      service time
    Y_i = U_i + max(0, V_i - X_{i-1})              interdeparture time, observed
    X_i = Y_1 + ... + Y_i                          departure of customer i, X_0 = 0

Two priors are on offer. ``"width"``, the default, is that of Fearnhead & Prangle (2012) and of
Shestopaloff & Neal (2014): the width theta_2 - theta_1 ~ U(0, 10). ``"truncated"`` reads the text
of Lu & Wong (2025), theta_1, theta_2 ~ U(0, 10), with theta_1 < theta_2. The first is the default
because the data set and the posterior means that Lu & Wong compare with (Table 4 of Shestopaloff &
Neal) were made with it. Both use the same coordinates (theta_1, theta_2 - theta_1, theta_3).

Source: Lu & Wong (2025), Section 4.2 and Appendix F.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.distributions import constraints

from ...arguments import choice, count, settle
from ...base import Prior, as_draws, as_observation
from ..declared import Constant, Observation, run_compiled, uniform_box

_UPPER = (10.0, 10.0, 1.0 / 3.0)

# The Intermediate data set of Shestopaloff & Neal (2014), made with (4, 3, 0.15).
_INTERMEDIATE = (
    6.19, 6.04, 9.52, 4.49, 4.36, 9.86, 9.91, 5.02, 5.76, 4.67,
    6.25, 4.77, 5.52, 6.10, 6.67, 6.88, 5.64, 4.42, 4.45, 4.77,
    6.52, 4.76, 6.44, 4.73, 6.79, 5.05, 4.59, 4.75, 5.85, 5.42,
    5.05, 6.49, 5.76, 8.67, 16.65, 4.86, 6.27, 6.26, 5.14, 10.60,
    4.23, 6.15, 5.59, 6.34, 6.80, 4.39, 5.71, 5.41, 4.04, 5.01,
)  # fmt: skip


class _TruncatedPrior:
    """Two ordered U(0, 10) as (theta_1, width), uniform on a triangle, and theta_3 ~ U(0, 1/3)."""

    support = constraints.independent(constraints.interval(torch.zeros(3), torch.tensor(_UPPER)), 1)
    """The box around the triangle; ``log_prob`` is -inf in its empty half."""

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw (*sample_shape, 3)."""
        draws = torch.rand(*sample_shape, 3)
        ends = (10.0 * draws[..., :2]).sort(dim=-1).values
        width = ends[..., 1] - ends[..., 0]
        return torch.stack([ends[..., 0], width, draws[..., 2] / 3.0], dim=-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log density of (..., 3)."""
        inside = ((value >= 0.0) & (value <= torch.tensor(_UPPER))).all(dim=-1)
        inside &= value[..., 0] + value[..., 1] <= _UPPER[0]
        density = -math.log(0.5 * _UPPER[0] * _UPPER[1] * _UPPER[2])
        return torch.where(inside, torch.tensor(density), torch.tensor(-math.inf))


@dataclass(frozen=True)
class MG1:
    """A queue (M/G/1): the times between departures of its first ``num_customers`` customers.

    x (n, num_customers) holds Y_1, Y_2, ... in order. The default observation is the Intermediate
    data set of Shestopaloff & Neal (2014), simulated with theta = (4, 3, 0.15).

    Args:
        num_customers: length of the series.
        prior_kind: ``"width"`` or ``"truncated"``; see the module's text.
    """

    num_customers: int = 50
    prior_kind: Literal["width", "truncated"] = "width"

    theta_dim = 3
    parameter_names = ("theta_1", "theta_2 - theta_1", "theta_3")
    true_theta = Constant(4.0, 3.0, 0.15)
    """The parameters behind the default observation, (3,)."""
    observation = Observation(2014, _INTERMEDIATE)
    """The default observation, (num_customers,): published for 50, simulated otherwise."""

    def __post_init__(self) -> None:
        settle(self, prior_kind=choice("width", "truncated"), num_customers=count())

    @property
    def x_dim(self) -> int:
        """One value a customer."""
        return self.num_customers

    @property
    def prior(self) -> Prior:
        """The prior over (theta_1, theta_2 - theta_1, theta_3)."""
        if self.prior_kind == "truncated":
            return _TruncatedPrior()
        return uniform_box([0.0] * 3, _UPPER)

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 3) -> x (n, num_customers), float32."""
        from .kernels import simulate_queues

        return run_compiled(simulate_queues, self, theta, seed, first_row)

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, 3) from the exact posterior at ``x_o`` (num_customers,).

        Gibbs over the hidden arrival times, with a joint rescaling of arrivals and rate; four
        chains, thinned. See :mod:`simulators.models.mg1.kernels` for the conditionals.

        Raises:
            ValueError: if ``x_o`` holds a time that is not positive, or one below every service
                time the prior allows.
        """
        from .kernels import sample_posterior

        x_o = as_observation(x_o, self.x_dim)
        num_samples, seed = as_draws(num_samples, seed)
        if x_o.min() <= 0.0:
            raise ValueError(
                f"`x_o` must hold positive interdeparture times; its minimum is {x_o.min():g}."
            )
        end_limit = 10.0 if self.prior_kind == "truncated" else 20.0
        samples = sample_posterior(x_o.double().numpy(), num_samples, end_limit, seed)
        return torch.from_numpy(samples).float()
