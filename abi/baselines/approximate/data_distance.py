"""The Wasserstein distance between two data sets, each taken as the law of its items.

    W_p^p(x, x_o) = min over permutations s of  1/n sum_i |x_i - x_{o,s(i)}|^p

For items of one value the sorted order is the best permutation; for others the assignment problem
is solved exactly. The order of the items is lost. For a series two forms bring it back: *curve*
matching makes the time a coordinate, (weight t, x_t); *delay* reconstruction takes as items the
vectors (x_t, x_{t+1}, ..., x_{t+lag}). Of several series x_t is the vector of their values at t.

Source: Bernton, Jacob, Gerber & Robert (2019), Sections 2.1, 2.3 and 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from simulators.arguments import at_least, choice, count, optional, settle

from ...encoders.layout import PLAIN, Layout

View = Literal["items", "curve", "delay"]


@dataclass(frozen=True)
class DataDistance:
    """W_p between the items of simulations and those of the observation.

    Attributes:
        layout: of the items or series of x.
        order: p >= 1.
        view: ``"items"``, or ``"curve"`` or ``"delay"`` for series.
        lag: of the delay reconstruction.
        curve_weight: of the time in curve matching; the range of x_o over its length when omitted.
    """

    layout: Layout = PLAIN
    order: float = 1.0
    view: View = "items"
    lag: int = 1
    curve_weight: float | None = None

    def __post_init__(self) -> None:
        settle(
            self,
            order=at_least(1.0),
            view=choice(*get_args(View)),
            lag=count(),
            curve_weight=optional(at_least(0.0)),
        )
        if self.view != "items" and self.layout.item_dim != 1:
            raise ValueError(
                f"`view` must be 'items' where an item has {self.layout.item_dim} values; got "
                f"{self.view!r}."
            )

    def __call__(self, x_o: Tensor, x: Tensor) -> Tensor:
        """Distance of each row of x (n, p) to x_o (1, p): (n,); infinite where x is not finite."""
        x, x_o = x.double(), x_o.double()
        out = torch.full((len(x),), torch.inf, dtype=x.dtype)
        finite = torch.isfinite(x).all(dim=1)
        if not finite.any():
            return out.float()
        rows, target = self._items(x[finite], x_o), self._items(x_o, x_o)[0]
        if rows.shape[2] == 1:
            gap = (rows[:, :, 0].sort(dim=1).values - target[:, 0].sort().values).abs()
            out[finite] = (gap**self.order).mean(dim=1) ** (1.0 / self.order)
        else:
            out[finite] = self._assigned(rows, target)
        return out.float()

    def _items(self, x: Tensor, x_o: Tensor) -> Tensor:
        """The items of each row, (n, number of items, values of one)."""
        values = self.layout.items(x)
        length = values.shape[1]
        if self.view == "delay":
            if self.lag >= length:
                raise ValueError(
                    f"`lag` must be less than the {length} values of a series; got {self.lag}."
                )
            return values.unfold(1, self.lag + 1, 1).flatten(start_dim=2)
        if self.view == "curve":
            weight = self.curve_weight
            if weight is None:
                weight = float(x_o.max() - x_o.min()) / length
            time = weight * torch.arange(length, dtype=x.dtype)
            return torch.cat([time.expand(len(x), length)[:, :, None], values], dim=2)
        return values

    def _assigned(self, rows: Tensor, target: Tensor) -> Tensor:
        from scipy.optimize import linear_sum_assignment

        values: list[float] = []
        for part in rows.split(1_024):
            # The form by products of matrices loses what is small beside the values.
            apart = torch.cdist(
                part,
                target.expand(len(part), -1, -1),
                compute_mode="donot_use_mm_for_euclid_dist",
            )
            costs = (apart**self.order).numpy()
            values += [float(cost[linear_sum_assignment(cost)].mean()) for cost in costs]
        return torch.tensor(values, dtype=rows.dtype) ** (1.0 / self.order)
