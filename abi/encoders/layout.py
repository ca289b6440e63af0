"""How the values of one x are arranged: as items, or as series, one after another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """What a simulator declares by attributes of these names; one of them at most differs from 1.

    Attributes:
        item_dim: values of one item, where x (k m,) is a list of k items of m values each.
        num_series: series, where x (m k,) is m series of k values each.
    """

    item_dim: int = 1
    num_series: int = 1

    @staticmethod
    def of(simulator: Any, x_dim: int) -> Layout:
        """What ``simulator`` declares.

        Raises:
            ValueError: if that does not make up the ``x_dim`` values of x, or both are declared.
        """
        item_dim = int(getattr(simulator, "item_dim", 1))
        num_series = int(getattr(simulator, "num_series", 1))
        if item_dim < 1 or x_dim % item_dim:
            raise ValueError(
                f"`simulator` declares items of {item_dim} values, which do not make up the "
                f"{x_dim} values of x_o."
            )
        if num_series < 1 or x_dim % num_series:
            raise ValueError(
                f"`simulator` declares {num_series} series, which do not make up the "
                f"{x_dim} values of x_o."
            )
        if item_dim > 1 and num_series > 1:
            raise ValueError(
                "`simulator` declares item_dim and num_series; x is a list of items or some "
                "series one after another: keep one of them."
            )
        return Layout(item_dim, num_series)

    @property
    def width(self) -> int:
        """Values that belong together, m: of one item, or of all series at one time."""
        return max(self.item_dim, self.num_series)

    def length(self, x_dim: int) -> int:
        """How many items or times ``x_dim`` values make up, k."""
        return x_dim // self.width

    def items(self, x: Tensor) -> Tensor:
        """X (n, p) as items or times, (n, k, m)."""
        if self.num_series > 1:
            return x.reshape(len(x), self.num_series, -1).transpose(1, 2)
        return x.reshape(len(x), -1, self.item_dim)


PLAIN = Layout()
"""Values of which nothing is known."""
