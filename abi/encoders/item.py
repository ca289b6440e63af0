"""Encoders that are learned with the network they feed; x is a list of items of m values each.

*deep_set* is for exchangeable items (Zaheer et al. 2017), *conv* for a series. *both_orders* knows
neither (:mod:`abi.encoders.both_orders`).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from simulators.random import some_rows

from .layout import Layout

_STRAIGHT = 3.0  # interquartile ranges: four sds of a normal
_LEAST_SHARE = 1e-30  # of the largest distance, a unit: its inverse is well within float32
_ENDS = 0.05, 0.5, 0.95  # quantiles that tell on which scale values lie evenly
_FAR_LOPSIDED = 2.0  # times as far from the median
_LEAST_LOGGED = 1e-38  # about the smallest normal float32


class InputScaling(nn.Module):
    """z = (x - median) / interquartile range, and beyond |z| = 3 its logarithm, in each coordinate.

        z -> sign(z) (t + log(1 + |z| - t)) where |z| > t = 3

    A simulator's output may be heavy-tailed (M/G/1 under its prior spans four decades), and no
    ReLU network can be trained on that. Where x is not, its map is straight, so that theta which is
    linear in x stays so (:mod:`abi.generators.trend`). Of values that are all positive and lie
    far more evenly on a logarithmic scale the logarithm is taken first, for what is small beside
    the median may tell most: of prey near extinction, 1e-5 from 1e-4 (the predator-prey ODE, 10,000
    calls, an x_o of that kind: C2ST fell from above .75 to .58). The map is invertible: posteriors
    given x and given its image are the same.

    Args:
        x: what sets the scales, (n, p).
        logs: whether logarithms may be taken; not of features that are made of them.
    """

    center: Tensor
    scale: Tensor
    straight: Tensor
    logged: Tensor

    def __init__(self, x: Tensor, *, logs: bool = True):
        super().__init__()
        none = torch.zeros(x.shape[1], dtype=torch.bool)
        self.register_buffer("logged", _on_log_scale(x) if logs else none)
        center, scale = quartiles(self._logs(x))
        self.register_buffer("center", center)
        self.register_buffer("scale", scale)
        self.register_buffer("straight", torch.tensor(_STRAIGHT))

    def forward(self, x: Tensor) -> Tensor:
        """Map x (..., p) to (..., p)."""
        z = (self._logs(x) - self.center) / self.scale
        far = torch.log1p((z.abs() - self.straight).clamp_min(0.0))
        return z.clamp(-self.straight, self.straight) + torch.sign(z) * far

    def _logs(self, x: Tensor) -> Tensor:
        return torch.where(self.logged, x.clamp_min(_LEAST_LOGGED).log(), x)

    def _load_from_state_dict(self, state: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        """Take on as many coordinates; files of before version 8 hold maps straight nowhere.

        Those of before version 11 take no logarithms first.
        """
        self.center = torch.empty_like(state[f"{prefix}center"])
        self.scale = torch.empty_like(state[f"{prefix}scale"])
        self.logged = torch.empty_like(self.center, dtype=torch.bool)
        state.setdefault(f"{prefix}straight", torch.tensor(0.0))
        state.setdefault(f"{prefix}logged", torch.zeros_like(self.logged))
        super()._load_from_state_dict(state, prefix, *rest)


def _on_log_scale(x: Tensor) -> Tensor:
    """Which coordinates of x (n, p) are positive, lopsided, and less so as logarithms, (p,)."""
    known = ~x.isnan()
    positive = ((x > 0.0) | ~known).all(dim=0) & known.any(dim=0)
    if not positive.any():
        return positive
    rows = enough(x).double()
    plain, logs = _lopsided(rows), _lopsided(rows.clamp_min(_LEAST_LOGGED).log())
    return positive & (plain > math.log(_FAR_LOPSIDED)) & (logs.abs() < plain)


def _lopsided(x: Tensor) -> Tensor:
    """The log of how much farther the upper end lies from the median than the lower one, (p,)."""
    lower, center, upper = torch.nanquantile(x, torch.tensor(_ENDS, dtype=x.dtype), dim=0)
    log_ratio: Tensor = ((upper - center) / (center - lower)).log()
    return log_ratio


def quartiles(x: Tensor) -> tuple[Tensor, Tensor]:
    """The median and the interquartile range of each coordinate of x (n, p), (p,) each.

    Of the values that are there; 0 and 1 where there are none.
    """
    levels = torch.tensor([0.25, 0.5, 0.75]).double()
    gaps = bool(x.isnan().any())
    quantile = torch.nanquantile if gaps else torch.quantile
    lower, center, upper = quantile(enough(x).double(), levels, 0)
    if gaps:
        lower, center, upper = (level.nan_to_num(0.0) for level in (lower, center, upper))
        x = torch.where(x.isnan(), center.to(x), x)
    spread = upper - lower
    # A coordinate whose middle half is constant keeps its standard deviation, or stays as is.
    deviation = x.double().std(dim=0, correction=0)
    spread = torch.where(spread > 0.0, spread, deviation)
    spread = torch.where(spread > 0.0, spread, torch.ones_like(spread))
    # In units of a far smaller middle half the other half would overflow.
    furthest = (x.double() - center).abs().amax(dim=0)
    least = (_LEAST_SHARE * furthest).clamp(min=torch.finfo(torch.float32).tiny)
    return center.float(), torch.maximum(spread, least).float()


def enough(x: Tensor) -> Tensor:
    """Some rows of x (n, p): quantiles need no more, and sorting very many takes seconds."""
    return some_rows(max(1_000, min(100_000, 10_000_000 // x.shape[1])), x)[0]


class DeepSet(nn.Module):
    """rho(mean_i phi(item_i), max_i phi(item_i)): features blind to the order of the items."""

    def __init__(self, x: Tensor, layout: Layout, width: int = 64, num_features: int = 32):
        super().__init__()
        self.layout = layout
        self.scaling = InputScaling(layout.items(x).flatten(end_dim=1))
        self.items = nn.Sequential(
            nn.Linear(layout.width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, width),
        )  # fmt: skip
        self.pooled = nn.Sequential(
            nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, num_features)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, num_features)."""
        items = self.items(self.scaling(self.layout.items(x)))
        features: Tensor = self.pooled(torch.cat([items.mean(dim=1), items.amax(dim=1)], dim=1))
        return features


class SeriesEncoder(nn.Module):
    """Convolutions along items or series, their values as channels, then averages over quarters."""

    def __init__(self, x: Tensor, layout: Layout, width: int = 32, num_features: int = 32):
        super().__init__()
        self.layout = layout
        self.scaling = InputScaling(x)
        self.layers = nn.Sequential(
            along(layout.width, width, 5), nn.ReLU(),
            along(width, width, 5), nn.ReLU(),
            along(width, width, 5, stride=2), nn.ReLU(),
        )  # fmt: skip
        self.pool = nn.AdaptiveAvgPool2d((1, 4))
        self.out = nn.Linear(4 * width, num_features)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, num_features)."""
        series = self.layout.items(self.scaling(x))
        features: Tensor = self.out(self.pool(self.layers(as_image(series))).flatten(start_dim=1))
        return features


def along(
    channels: int, width: int, places: int, *, stride: int = 1, dilation: int = 1
) -> nn.Conv2d:
    """A convolution over a series laid out as an image one pixel high."""
    padding = dilation * (places // 2)
    return nn.Conv2d(
        channels, width, (1, places), (1, stride), padding=(0, padding), dilation=(1, dilation)
    )


def as_image(series: Tensor) -> Tensor:
    """(n, k, m) -> (n, m, 1, k), channels last: convolutions on CPU take half the time so."""
    return series.transpose(1, 2)[:, :, None].contiguous(memory_format=torch.channels_last)


def sorted_by_each(items: Tensor) -> list[Tensor]:
    """Items (n, k, m) sorted by each of their m values in turn, m of (n, k, m)."""
    return [taken(items, places) for places in places_of(items)]


def places_of(items: Tensor) -> list[Tensor]:
    """The places (n, k) that sort items (n, k, m) by each of their m values."""
    return [items[:, :, j].argsort(dim=1) for j in range(items.shape[2])]


def taken(items: Tensor, places: Tensor) -> Tensor:
    """Items (n, k, m) in the order of places (n, k)."""
    return items.gather(1, places[:, :, None].expand(-1, -1, items.shape[2]))
