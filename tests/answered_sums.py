"""Sums of answers of yes or no, whose likelihood is known, and how laws of them are learned."""

from __future__ import annotations

import torch
from torch import Tensor

from abi.generators.flow_network import FlowSettings
from abi.training.loop import TrainingSettings
from simulators.random import torch_generator

SETTINGS = FlowSettings(num_transforms=1, hidden=(32, 32))
TRAINING = TrainingSettings(learning_rate=1e-2, batch_size=128, num_steps=600, max_epochs=25)
DIM = 6
PRIOR = torch.distributions.Independent(torch.distributions.Normal(torch.ones(DIM), 0.6), 1)
SEED = 3


class Sums:
    """Six sums of what goes with the yes of forty answers, whose log odds are linear in theta."""

    def __init__(self, size: float) -> None:
        self.design = size * torch.randn(DIM, 40, generator=torch_generator(11))

    def of(self, theta: Tensor, seed: int) -> Tensor:
        chance = torch.rand(len(theta), 40, generator=torch_generator(seed + 1_000))
        return (chance < (theta @ self.design).sigmoid()).float() @ self.design.T

    def exact(self, x: Tensor, theta: Tensor) -> Tensor:
        """Log p(x | theta) at one x, less what does not hang on theta."""
        return theta @ x - torch.nn.functional.softplus(theta @ self.design).sum(dim=1)


def theta_of(count: int, seed: int) -> Tensor:
    return 1.0 + 0.6 * torch.randn(count, DIM, generator=torch_generator(seed))


def off_by(found: Tensor, true: Tensor) -> float:
    """The error of log p(x | theta) but for a constant, in sds of it among these theta."""
    return float((found - true).std() / true.std())
