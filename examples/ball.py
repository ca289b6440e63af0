"""A ball that is thrown: eight noisy looks at where it flies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Independent, Uniform

NAMES = ("speed", "angle")
LOW, HIGH = torch.tensor([1.0, 0.2]), torch.tensor([10.0, 1.4])


@dataclass(frozen=True)
class BallPrior:
    """Speed in m/s and angle in radians, uniform in a box; a dataclass can be found again."""

    @property
    def support(self) -> Any:
        return Uniform(LOW, HIGH).support

    def sample(self, shape: tuple[int, ...]) -> Tensor:
        return Independent(Uniform(LOW, HIGH), 1).sample(shape)


prior = BallPrior()


NOISE = 0.1


def throw(theta: Tensor) -> Tensor:
    """Speed and angle (n, 2) -> measured positions (n, 16): x at eight times, then y."""
    x = flight(theta)
    return x + NOISE * torch.randn(x.shape)


def flight(theta: Tensor) -> Tensor:
    """The positions without noise."""
    speed, angle = theta[:, :1], theta[:, 1:]
    time = torch.linspace(0.1, 1.0, 8)
    height = speed * torch.sin(angle) * time - 4.9 * time**2
    return torch.cat([speed * torch.cos(angle) * time, height], dim=1)
