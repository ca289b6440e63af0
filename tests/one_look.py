"""Theta ~ N(0, I) seen once, as x ~ N(theta, I): posteriors that are exact, or wrong on purpose."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Normal

from simulators import GaussianLinear

TASK = GaussianLinear(2, 1.0, 1.0)
SD = 0.5**0.5
"""Of theta given x, whose mean is x / 2."""


def exact(num_samples: int, x: Tensor) -> Tensor:
    return x / 2 + SD * torch.randn(num_samples, *x.shape)


def exact_law(x: Tensor) -> Normal:
    return Normal(x / 2, SD)


def prior(num_samples: int, x: Tensor) -> Tensor:
    return torch.randn(num_samples, *x.shape)


def wrong_for_positive_x(num_samples: int, x: Tensor) -> Tensor:
    """Off by two standard deviations where x_1 > 0, exact elsewhere."""
    return exact(num_samples, x) + 1.4 * (x[:, :1] > 0)
