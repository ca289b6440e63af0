"""The transforms of one value at a time: what the networks of a flow give the parameters of.

Each maps x (n, d) by parameters (n, d r) to y (n, d) and log slopes, and back, and knows the
gradients of both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from . import kernels


class Univariate(Protocol):
    """One of the two kinds below."""

    def forward(
        self, x: Tensor, raw: Tensor, log_slope: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Y, and what :meth:`backward` wants to know again; adds to the sums ``log_slope`` (n,)."""
        ...

    def backward(
        self, known: tuple[Tensor, ...], of_y: Tensor, of_log: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradients of x and of the parameters, given those of y (n, d) and of the sums (n,)."""
        ...

    def inverse(self, y: Tensor, raw: Tensor, log_slope: Tensor) -> Tensor:
        """The x that :meth:`forward` maps to y (n, d); adds what that adds to ``log_slope``."""
        ...


class Affine:
    """x exp(a) + b."""

    def forward(
        self, x: Tensor, raw: Tensor, log_slope: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """As the protocol says."""
        y = torch.empty_like(x)
        kernels.affine(x.numpy(), raw.numpy(), y.numpy(), log_slope.numpy())
        return y, (x, raw)

    def backward(
        self, known: tuple[Tensor, ...], of_y: Tensor, of_log: Tensor
    ) -> tuple[Tensor, Tensor]:
        """As the protocol says."""
        x, raw = known
        of_x, of_raw = torch.empty_like(x), torch.empty_like(raw)
        given = x.numpy(), raw.numpy(), of_y.numpy(), of_log.numpy()
        kernels.affine_gradient(*given, of_x.numpy(), of_raw.numpy())
        return of_x, of_raw

    def inverse(self, y: Tensor, raw: Tensor, log_slope: Tensor) -> Tensor:
        """As the protocol says."""
        x = torch.empty_like(y)
        kernels.affine_inverse(y.numpy(), raw.numpy(), x.numpy(), log_slope.numpy())
        return x


@dataclass(frozen=True)
class Spline:
    """A rational-quadratic spline of some bins within [-5, 5], and the identity beyond."""

    bins: int

    def forward(
        self, x: Tensor, raw: Tensor, log_slope: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """As the protocol says."""
        e, y = self._exponentials(raw), torch.empty_like(x)
        kernels.spline(x.numpy(), e.numpy(), self.bins, y.numpy(), log_slope.numpy())
        return y, (x, raw, e)

    def backward(
        self, known: tuple[Tensor, ...], of_y: Tensor, of_log: Tensor
    ) -> tuple[Tensor, Tensor]:
        """As the protocol says."""
        x, raw, e = known
        of_x, of_raw = torch.empty_like(x), torch.empty_like(raw)
        given = x.numpy(), raw.numpy(), e.numpy(), self.bins, of_y.numpy(), of_log.numpy()
        kernels.spline_gradient(*given, of_x.numpy(), of_raw.numpy())
        return of_x, of_raw

    def inverse(self, y: Tensor, raw: Tensor, log_slope: Tensor) -> Tensor:
        """As the protocol says."""
        e, x = self._exponentials(raw), torch.empty_like(y)
        kernels.spline_inverse(y.numpy(), e.numpy(), self.bins, x.numpy(), log_slope.numpy())
        return x

    def _exponentials(self, raw: Tensor) -> Tensor:
        e = torch.empty_like(raw)
        kernels.limited(raw.numpy(), self.bins, e.numpy())
        return e.exp_()
