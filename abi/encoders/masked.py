"""Encoders of x with gaps that differ from x to x: what is there, and how much that is.

A feature that what is there does not determine, as the sd of one item, is NaN first and then takes
the place of its median, 0; beside it stands what tells it apart: which values are there (*flat* and
*principal*), or of how many items (the others), as log(1 + n) and as a share.

*sorted* is, for each coordinate, the quantiles of the items that are there at the levels
i / (k - 1), i = 0 ... k - 1, of the k items there may be, the other coordinates beside them: the
sorted items where none is missing, and always from the least to the largest. *moments* are means,
log sds and correlations r, as asinh(r / sqrt(1 - r^2)), of the values, or pairs of values, that are
there. *deep_set* pools over what is there.

Source: Zaheer et al. (2017) for the pooling; Rubin (1976) for what the mask may say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from .item import InputScaling
from .layout import Layout
from .principal import PrincipalScores

MASKED = ("flat", "sorted", "moments", "moments+sorted", "principal", "deep_set")
"""The encoders that have such a form."""
_LEAST_VARIANCE = 1e-30
_MOST_CORRELATION = 1.0 - 1e-6
_ENOUGH = 2  # items that have a variance; one more have a correlation


def masked(encoder: str, x: Tensor, layout: Layout) -> nn.Module:
    """An encoder of that name for data like x (n, p), in which NaN is missing.

    Raises:
        ValueError: if there is none.
    """
    if encoder not in MASKED:
        raise ValueError(
            f"`encoder` must be one of {', '.join(MASKED)}, or a torch module, for x with gaps; "
            f"got {encoder!r}."
        )
    if encoder == "deep_set":
        return MaskedDeepSet(x, layout)
    if encoder == "principal":
        return FilledScores(x, layout)
    if encoder == "flat" and layout.missing == "values":
        return SeenValues(x)
    return SeenItems(x, layout, encoder)


class SeenValues(nn.Module):
    """Scaled values, 0 where they are missing, and which are there, of those that may be missing.

    The mask of places that are always there, or never, says nothing.
    """

    varying: Tensor

    def __init__(self, x: Tensor):
        super().__init__()
        absent = x.isnan()
        self.register_buffer("varying", (absent.any(dim=0) & ~absent.all(dim=0)).nonzero()[:, 0])
        self.scaling = InputScaling(x)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, p + places that vary)."""
        there = (~x[:, self.varying].isnan()).to(x)
        return torch.cat([self.scaling(x).nan_to_num(nan=0.0), there], dim=1)

    def _load_from_state_dict(self, state: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        """Take on as many places as were kept."""
        self.varying = torch.empty_like(state[f"{prefix}varying"])
        super()._load_from_state_dict(state, prefix, *rest)


class FilledScores(nn.Module):
    """Scores on principal axes of x with its medians where values are missing, and the mask."""

    def __init__(self, x: Tensor, layout: Layout):
        super().__init__()
        self.values = SeenValues(x)
        self.scores = PrincipalScores(self._filled(x), layout, lags=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, axes + 2 + places that vary)."""
        there = (~x[:, self.values.varying].isnan()).to(x)
        return torch.cat([self.scores(self._filled(x)), there], dim=1)

    def _filled(self, x: Tensor) -> Tensor:
        return torch.where(x.isnan(), self.values.scaling.center, x)


class SeenItems(nn.Module):
    """A function of the items that are there, scaled, and their numbers; nothing is learned."""

    def __init__(self, x: Tensor, layout: Layout, name: str):
        super().__init__()
        self.layout, self.functions = layout, _FUNCTIONS[name]
        self.scaling = InputScaling(self._features(x), logs=False)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, features + 2 m)."""
        filled = self.scaling(self._features(x)).nan_to_num(nan=0.0)
        return torch.cat([filled, counts(self.layout.items(x))], dim=1)

    def _features(self, x: Tensor) -> Tensor:
        items = self.layout.items(x)
        return torch.cat([function(items) for function in self.functions], dim=1)


class MaskedDeepSet(nn.Module):
    """rho(mean phi, max phi, numbers) over the items that are there, of which phi sees the gaps."""

    def __init__(self, x: Tensor, layout: Layout, width: int = 64, num_features: int = 32):
        super().__init__()
        self.layout = layout
        items = layout.items(x).flatten(end_dim=1)
        m = layout.width
        self.scaling = InputScaling(items[~items.isnan().all(dim=1)])
        self.items = nn.Sequential(
            nn.Linear(2 * m, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, width), nn.ReLU(),
        )  # fmt: skip
        self.pooled = nn.Sequential(
            nn.Linear(2 * width + 2 * m, width), nn.ReLU(), nn.Linear(width, num_features)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, num_features)."""
        items = self.layout.items(x)
        there = (~items.isnan()).to(x)
        any_there = there.amax(dim=2, keepdim=True)
        inputs = torch.cat([self.scaling(items).nan_to_num(nan=0.0), there], dim=2)
        hidden = self.items(inputs) * any_there  # at least 0, so that absent items are no maximum
        mean = hidden.sum(dim=1) / any_there.sum(dim=1).clamp_min(1.0)
        features: Tensor = self.pooled(torch.cat([mean, hidden.amax(dim=1), counts(items)], dim=1))
        return features


def counts(items: Tensor) -> Tensor:
    """Of items (n, k, m), how many have each value: log(1 + n_j), and the share of k, (n, 2 m)."""
    number = (~items.isnan()).to(items).sum(dim=1)
    return torch.cat([number.log1p(), number / items.shape[1]], dim=1)


def seen_moments(items: Tensor) -> Tensor:
    """Means, log sds and correlations of items (n, k, m); NaN where too few are there."""
    there = (~items.isnan()).double()
    values = items.double().nan_to_num(nan=0.0)
    number = there.sum(dim=1)
    mean = values.sum(dim=1) / number  # NaN of none
    centered = (values - mean[:, None]).nan_to_num(nan=0.0) * there
    pairs = there.transpose(1, 2) @ there
    covariance = centered.transpose(1, 2) @ centered / pairs
    variance = covariance.diagonal(dim1=1, dim2=2)
    log_sd = 0.5 * variance.clamp_min(_LEAST_VARIANCE).log()
    log_sd = log_sd.where(number >= _ENOUGH, torch.nan)
    row, column = torch.tril_indices(items.shape[2], items.shape[2], -1)
    sds = (variance[:, row] * variance[:, column]).clamp_min(_LEAST_VARIANCE).sqrt()
    r = (covariance[:, row, column] / sds).clamp(-_MOST_CORRELATION, _MOST_CORRELATION)
    slope = torch.asinh(r / (1.0 - r**2).sqrt()).where(pairs[:, row, column] > _ENOUGH, torch.nan)
    return torch.cat([mean, log_sd, slope], dim=1).float()


def seen_quantiles(items: Tensor) -> Tensor:
    """Items (n, k, m) between the least and the largest that are there, by each value in turn."""
    k, m = items.shape[1:]
    share = torch.linspace(0.0, 1.0, k).to(items) if k > 1 else torch.zeros(1).to(items)
    orders = []
    for j in range(m):
        column = items[:, :, j]
        places = torch.where(column.isnan(), torch.inf, column).argsort(dim=1)
        last = (~column.isnan()).sum(dim=1, keepdim=True).clamp_min(1) - 1
        at = share * last
        below = at.floor().long()
        part = (at - below)[:, :, None]
        lower, upper = (
            items.gather(1, places.gather(1, index)[:, :, None].expand(-1, -1, m))
            for index in (below, torch.minimum(below + 1, last))
        )
        # Where both are one item, what is between is it; 0 of a gap is nothing.
        orders.append(torch.where(part > 0.0, lower + part * (upper - lower), lower).flatten(1))
    return torch.cat(orders, dim=1)


_FUNCTIONS: dict[str, tuple[Callable[[Tensor], Tensor], ...]] = {
    "flat": (lambda items: items.flatten(1),),
    "sorted": (seen_quantiles,),
    "moments": (seen_moments,),
    "moments+sorted": (seen_moments, seen_quantiles),
}
