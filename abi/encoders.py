"""What of x the networks see: an encoder maps x (n, p) to features (n, k).

Many data sets are samples, x = (items of m values each): the order of their items carries little,
and a plain network needs far more simulations to find that out than one that is shown the items
in a form without order. The fixed encoders have nothing to learn:

*flat* is x itself; *sorted* the items sorted by each of their coordinates in turn, so that none is
preferred; *moments* their mean mu, and the Cholesky factor L of their covariance as log L_jj and
asinh(L_ij / L_jj), which resolve a scale of 1e-4 and a correlation of 0.999 as well as any other;
*moments+sorted* both. ``auto`` chooses among those that fit x by the held-out loss of the quantile
regression, never by the answer.

Two are learned with the network they feed: *deep_set*, for exchangeable items (Zaheer et al. 2017),
and *conv*, one-dimensional convolutions for a series. A torch module of your own, x (n, p) ->
features (n, k), takes the same place.

All but yours end or begin with :class:`InputScaling`, a fixed invertible map per coordinate.
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

FIXED = ("flat", "sorted", "moments", "moments+sorted")
LEARNED = ("deep_set", "conv")
_ROWS = 8192  # at a time
_JITTER = 1e-6  # of a variance, keeps the factor of n <= m items or of constant ones


class InputScaling(nn.Module):
    """sign(z) log(1 + |z|) with z = (x - median) / interquartile range, coordinate by coordinate.

    A simulator's output may be heavy-tailed (M/G/1 under its prior spans four decades), and no
    ReLU network can be trained on that. The map is invertible: posteriors given x and given its
    image are the same.
    """

    center: Tensor
    scale: Tensor

    def __init__(self, x: Tensor):
        super().__init__()
        quartiles = torch.quantile(x.double(), torch.tensor([0.25, 0.5, 0.75]).double(), dim=0)
        spread = quartiles[2] - quartiles[0]
        # A coordinate whose middle half is constant keeps its standard deviation, or stays as is.
        deviation = x.double().std(dim=0, correction=0)
        spread = torch.where(spread > 0.0, spread, deviation)
        spread = torch.where(spread > 0.0, spread, torch.ones_like(spread))
        self.register_buffer("center", quartiles[1].float())
        self.register_buffer("scale", spread.float())

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, p)."""
        z = (x - self.center) / self.scale
        return torch.sign(z) * torch.log1p(z.abs())


class _Fixed(nn.Module):
    """A function x -> features with nothing to learn, scaled."""

    def __init__(self, function: Callable[[Tensor], Tensor], x: Tensor):
        super().__init__()
        self.function = function
        self.scaling = InputScaling(function(x))

    def forward(self, x: Tensor) -> Tensor:
        features: Tensor = self.scaling(self.function(x))
        return features


class DeepSet(nn.Module):
    """rho(mean_i phi(item_i)): features that do not depend on the order of the items."""

    def __init__(self, x: Tensor, item_dim: int, width: int = 64, num_features: int = 32):
        super().__init__()
        self.item_dim = item_dim
        self.scaling = InputScaling(x.reshape(-1, item_dim))
        self.items = nn.Sequential(
            nn.Linear(item_dim, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
            nn.Linear(width, width),
        )  # fmt: skip
        self.pooled = nn.Sequential(
            nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, num_features)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, num_features)."""
        items = self.items(self.scaling(x.reshape(len(x), -1, self.item_dim)))
        features: Tensor = self.pooled(torch.cat([items.mean(dim=1), items.amax(dim=1)], dim=1))
        return features


class SeriesEncoder(nn.Module):
    """Convolutions over a series of ``item_dim`` channels, then averages over quarters."""

    def __init__(self, x: Tensor, item_dim: int, width: int = 32, num_features: int = 32):
        super().__init__()
        self.item_dim = item_dim
        self.scaling = InputScaling(x)
        self.layers = nn.Sequential(
            nn.Conv1d(item_dim, width, 5, padding=2), nn.ReLU(),
            nn.Conv1d(width, width, 5, padding=2), nn.ReLU(),
            nn.Conv1d(width, width, 5, padding=2), nn.ReLU(),
        )  # fmt: skip
        self.pool = nn.AdaptiveAvgPool1d(4)
        self.out = nn.Linear(4 * width, num_features)

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, num_features)."""
        series = self.scaling(x).reshape(len(x), -1, self.item_dim).transpose(1, 2)
        features: Tensor = self.out(self.pool(self.layers(series)).flatten(start_dim=1))
        return features


def candidates(x_dim: int, item_dim: int) -> tuple[str, ...]:
    """The fixed encoders that can tell something about x (n, x_dim)."""
    num_items = x_dim // item_dim
    if num_items < 2:
        return FIXED[:1]
    # Fewer items than values of one: their covariance has no full factor.
    return FIXED if num_items > item_dim else FIXED[:2]


def build_encoder(encoder: str | nn.Module, x: Tensor, item_dim: int = 1) -> nn.Module:
    """An encoder for data like x.

    Args:
        encoder: a name of this module's text (but ``auto``), or a module x (n, p) -> (n, k), of
        which
            a copy is made.
        x: data that set the scales, (n, p).
        item_dim: values of one item (or channels of a series); x holds its items one after another.

    Raises:
        ValueError: if the name is unknown or x does not divide into items.

    >>> build_encoder("moments", torch.randn(100, 8), item_dim=2)(torch.randn(3, 8)).shape
    torch.Size([3, 5])
    """
    if isinstance(encoder, nn.Module):
        return copy.deepcopy(encoder)
    if x.shape[1] % item_dim:
        raise ValueError(f"`item_dim` must divide x_dim = {x.shape[1]}; got {item_dim}.")
    if encoder == "flat":
        return InputScaling(x)
    if encoder == "deep_set":
        return DeepSet(x, item_dim)
    if encoder == "conv":
        return SeriesEncoder(x, item_dim)
    if encoder not in FIXED:
        names = ", ".join((*FIXED, *LEARNED))
        raise ValueError(f"`encoder` must be one of {names}, or a torch module; got {encoder!r}.")
    return _Fixed(lambda data: encode(data, encoder, item_dim), x)


def prepared(encoder: nn.Module, x: Tensor) -> tuple[nn.Module, Tensor]:
    """What to train and what to feed it: an encoder without weights is applied once, beforehand.

    Returns:
        A copy of the encoder and x; or the identity and the features.
    """
    if any(True for _ in encoder.parameters()):
        return copy.deepcopy(encoder), x
    with torch.no_grad():
        return nn.Identity(), torch.cat([encoder(part) for part in x.split(_ROWS)])


def encode(x: Tensor, encoder: str, item_dim: int) -> Tensor:
    """The features of a fixed encoder before scaling, x (n, p) -> (n, k)."""
    if encoder == "flat":
        return x
    items = x.reshape(len(x), -1, item_dim)
    if encoder == "sorted":
        return sorted_items(items)
    if encoder == "moments":
        return moments(items)
    return torch.cat([moments(items), sorted_items(items)], dim=1)


def sorted_items(items: Tensor) -> Tensor:
    """Items (n, k, m) sorted by each of their m values in turn, (n, k m m)."""
    orders = [
        items[:, :, j].argsort(dim=1)[:, :, None].expand_as(items) for j in range(items.shape[2])
    ]
    return torch.cat([items.gather(1, order).reshape(len(items), -1) for order in orders], dim=1)


def moments(items: Tensor) -> Tensor:
    """Mean and covariance of items (n, k, m) as unconstrained numbers, (n, m + m (m + 1) / 2)."""
    values = items.double()
    mean = values.mean(dim=1)
    centered = values - mean[:, None]
    covariance = centered.transpose(1, 2) @ centered / items.shape[1]
    variance = covariance.diagonal(dim1=1, dim2=2).clamp(min=1e-30)
    factor = torch.linalg.cholesky(covariance + torch.diag_embed(_JITTER * variance))
    diagonal = factor.diagonal(dim1=1, dim2=2)
    row, column = torch.tril_indices(items.shape[2], items.shape[2], -1)
    slope = torch.asinh((factor / diagonal[:, :, None])[:, row, column])
    return torch.cat([mean, diagonal.log(), slope], dim=1).float()
