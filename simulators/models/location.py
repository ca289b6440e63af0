"""What Gaussian location models share, whatever their prior: x is theta in Gaussian noise."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ..base import numbered_names
from .declared import prepared


class GaussianLocation:
    """x | theta ~ N(theta, noise_variance I), as many values as parameters."""

    theta_dim: int
    noise_variance: float

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """theta_1 ... theta_d."""
        return numbered_names(self.theta_dim)

    @property
    def x_dim(self) -> int:
        """One value a parameter."""
        return self.theta_dim

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, d) -> x (n, d), float32."""
        from ..streams.xoshiro import row_normals

        rows, seed = prepared(theta, self.theta_dim, seed)
        noise = row_normals(seed, len(rows), self.x_dim, first_row)
        return torch.from_numpy(rows + math.sqrt(self.noise_variance) * noise).float()
