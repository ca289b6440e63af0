"""What a straight line says of theta: one feature of x for each parameter.

Many data say of theta little more than some weighted sums of their values: a hundred yes and no, of
which ten sums matter. Principal axes miss these where the noise is as large, and a network of all
values spends its simulations on finding them. Here ridge regression of theta on x finds them, with
theta on the real line, and the features are its predictions.

Source: Fearnhead & Prangle (2012), "Constructing summary statistics for approximate Bayesian
computation".
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..training.ridge import best_line
from .item import InputScaling, some_rows

MOST_VALUES = 512  # of x


class Regression(nn.Module):
    """Predictions of theta on the real line, z (n, d), from x (n, p); nothing more is learned.

    Without z a module of two parameters, into which that of a file is loaded.
    """

    slope: Tensor

    def __init__(self, x: Tensor, z: Tensor | None):
        super().__init__()
        self.values = InputScaling(x)
        slope = torch.zeros(x.shape[1], 2)
        if z is not None:
            standard = (z - z.mean(dim=0)) / z.std(dim=0).clamp_min(1e-30)
            slope = best_line(self.values(x).double(), standard.double()).slope.float()
        self.register_buffer("slope", slope)
        self.scaling = InputScaling(self.values(some_rows(x)) @ slope)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, d)."""
        features: Tensor = self.scaling(self.values(x) @ self.slope)
        return features

    def _load_from_state_dict(self, state: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        """Take on the number of parameters, which other data decided."""
        self.slope = torch.empty_like(state[f"{prefix}slope"])
        self.scaling.center = torch.empty_like(state[f"{prefix}scaling.center"])
        self.scaling.scale = torch.empty_like(state[f"{prefix}scaling.scale"])
        super()._load_from_state_dict(state, prefix, *rest)
