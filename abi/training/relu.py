"""The plain network that the others are made of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn


def relu_network(widths: Sequence[int]) -> nn.Sequential:
    """Affine maps with ReLU between them, d_0 -> ... -> d_{L+1} (Definition 2.4)."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])
