"""What of x the quantile network sees: all of it in its order, or its items sorted.

Many data sets are samples: the order of their items carries little, and a plain network needs far
more simulations to find that out than a network that is shown the items sorted. Items of several
values are sorted by each of their coordinates in turn, and all these orders are shown, so that no
coordinate is preferred. Which form serves is decided by the held-out loss of the quantile
regression, never by the answer.
"""

from __future__ import annotations

import torch
from torch import Tensor

ENCODERS = ("flat", "sorted")


def encode(x: Tensor, encoder: str, item_dim: int) -> Tensor:
    """What the network sees of x (n, p), items of ``item_dim`` values one after the other.

    Returns:
        x itself, (n, p), or its items sorted by each coordinate, (n, p item_dim).
    """
    if encoder == "flat":
        return x
    items = x.reshape(len(x), -1, item_dim)
    orders = [items[:, :, j].argsort(dim=1)[:, :, None].expand_as(items) for j in range(item_dim)]
    return torch.cat([items.gather(1, order).reshape(len(x), -1) for order in orders], dim=1)
