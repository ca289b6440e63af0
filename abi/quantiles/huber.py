"""The Huber quantile loss and its gradient in one compiled pass over all directions and levels.

torch makes a dozen passes over (n, K', H + 1) numbers for the same, forth and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable


def huber_loss(targets: Tensor, predicted: Tensor, levels: Tensor, kappa: float) -> Tensor:
    """The mean of rho_{tau,kappa}(u), eq. (2.7), over rows, directions and levels; float32, CPU.

    Args:
        targets: <phi_k, theta>, (n, K').
        predicted: quantiles, (n, K', H + 1), whose gradient is known.
        levels: tau, (H + 1,).
        kappa: the half-width of the quadratic part.
    """
    value: Tensor = _Huber.apply(predicted, targets, levels, kappa)  # type: ignore[no-untyped-call]
    return value


class _Huber(torch.autograd.Function):
    """The mean loss, and its first derivative by the predictions."""

    @staticmethod
    def forward(
        ctx: Any, predicted: Tensor, targets: Tensor, levels: Tensor, kappa: float
    ) -> Tensor:
        gradient = torch.empty_like(predicted)
        total = _loss_and_gradient(
            targets.detach().numpy(), predicted.detach().contiguous().numpy(), levels.numpy(),
            np.float32(kappa), gradient.numpy(),
        )  # fmt: skip
        ctx.gradient = gradient
        return torch.tensor(total / predicted.numel(), dtype=torch.float32)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_value: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.gradient * (of_value / ctx.gradient.numel()), None, None, None


@njit(nogil=True, cache=True, fastmath={"reassoc", "nsz", "contract"})
def _loss_and_gradient(
    targets: Any, predicted: Any, levels: Any, kappa: Any, gradient: Any
) -> float:
    """The sum of the losses; fills ``gradient`` (n, K', H + 1) with the slopes of each."""
    zero, half, one = np.float32(0.0), np.float32(0.5), np.float32(1.0)
    total = 0.0
    for i in range(predicted.shape[0]):
        row = np.float32(0.0)
        for k in range(predicted.shape[1]):
            for h in range(predicted.shape[2]):
                u = targets[i, k] - predicted[i, k, h]
                weight = abs(levels[h] - (one if u < 0 else zero))
                near = min(max(u, -kappa), kappa)
                row += weight * near * (u - half * near)
                gradient[i, k, h] = -weight * near / kappa
        total += row / kappa
    return total
