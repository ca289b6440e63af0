"""The quantile network: one ReLU network for every slice and level of the posterior of theta.

It learns Q(x) (K', H + 1), the quantiles at tau_0 .. tau_H of <phi_k, theta> given x, by the Huber
quantile loss over pairs (theta, x),

    rho_{tau,kappa}(u) = |tau - 1(u < 0)| * ( u^2 / (2 kappa)   if |u| <= kappa
                                              |u| - kappa / 2   otherwise ),
    u = <phi_k, theta> - Q[k, h](x)                                                  (2.6, 2.7)

Predictions are sorted over the levels afterwards, not during training (Remark 2.5).

Differs from the paper: x enters through an encoder (:mod:`abi.encoders.choice`), which at the least
tames heavy tails; and theta is measured in the standard deviations of the pairs (``standardize``),
because MSW adds up coordinates and would otherwise see only the parameter with the largest unit.

Source: Lu & Wong (2025), Section 2.1.2 and Algorithm 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from ..training.relu import relu_network
from .distance import QuantileTable


def huber_quantile_loss(residual: Tensor, levels: Tensor, kappa: float) -> Tensor:
    """rho_{tau,kappa}(u) of eq. (2.7), elementwise.

    Args:
        residual: u = target - prediction, (..., H + 1).
        levels: tau, (H + 1,).
        kappa: the half-width of the quadratic part, in the units of u, > 0.
    """
    size = residual.abs()
    huber = torch.where(size <= kappa, 0.5 / kappa * residual**2, size - 0.5 * kappa)
    return (levels - (residual < 0).to(residual.dtype)).abs() * huber


class QuantileNetwork(nn.Module):
    """x (n, p) -> the quantiles of theta given x along every direction, (n, K', H + 1).

    Args:
        theta: parameters whose location and scale set the units, (n, d).
        encoder: what of x the network sees, (n, p) -> (n, k), or the identity where x is encoded.
        num_features: k.
        directions: (K', d), the last d the axes.
        levels: (H + 1,).
        hidden: widths of the hidden layers.
        standardize: measure theta in its standard deviations, as the module's text explains.
    """

    directions: Tensor
    levels: Tensor
    theta_center: Tensor
    theta_scale: Tensor

    def __init__(
        self,
        theta: Tensor,
        encoder: nn.Module,
        num_features: int,
        directions: Tensor,
        levels: Tensor,
        hidden: Sequence[int],
        *,
        standardize: bool,
    ):
        super().__init__()
        center, scale = theta.mean(dim=0), theta.std(dim=0)
        # A parameter that does not vary has next to no scale: nothing moves it.
        scale = torch.where(scale > 0, scale, 1e-6 * (1.0 + center.abs()))
        if not standardize:
            center, scale = torch.zeros_like(center), torch.ones_like(scale)
        self.register_buffer("theta_center", center)
        self.register_buffer("theta_scale", scale)
        self.register_buffer("directions", directions)
        self.register_buffer("levels", levels)
        self.encoder = encoder
        self.layers = relu_network((num_features, *hidden, len(directions) * len(levels)))

    def forward(self, x: Tensor) -> Tensor:
        """Unsorted predictions (n, K', H + 1) in the units of :meth:`project`."""
        flat = self.layers(self.encoder(x))
        return cast(Tensor, flat.reshape(len(x), len(self.directions), len(self.levels)))

    def project(self, theta: Tensor) -> Tensor:
        """<phi_k, theta> in the network's units, theta (n, d) -> (n, K')."""
        return ((theta - self.theta_center) / self.theta_scale) @ self.directions.T

    def loss(self, theta: Tensor, x: Tensor, kappa: float) -> Tensor:
        """The empirical risk of eq. (2.6), averaged over rows, directions and levels."""
        targets, predicted = self.project(theta), self(x)
        if predicted.device.type == "cpu":
            from .huber import huber_loss

            return huber_loss(targets, predicted, self.levels, kappa)
        residual = targets[:, :, None] - predicted
        return huber_quantile_loss(residual, self.levels, kappa).mean()

    @torch.no_grad()
    def table(self, x: Tensor) -> QuantileTable:
        """The sorted quantiles at every x (n, p)."""
        parts = [self(part).sort(dim=-1).values for part in x.split(8192)]
        return QuantileTable(torch.cat(parts), self.directions, self.levels)
