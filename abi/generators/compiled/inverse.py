r"""A masked transform backwards: one value after the other, each hidden unit worked out once.

The parameters of the i-th value see those before it. Units of a network that see no value beyond
the i-th are ready as soon as that one is; sorted by this, they are computed in d parts that
together are one pass through the network, where zuko makes d passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...training.compiling import compiled
from .kernels import affine_inverse, sizes, spline_inverse
from .network import Layer, Layout

_ZERO = np.float32(0.0)


@dataclass(frozen=True, eq=False)
class Ordered:
    """A transform whose units are sorted by the value they wait for.

    Attributes:
        bins: of what maps a value: those of a spline, 0 of an affine map.
        order: the parameter that is the i-th to be found.
        width: of the context.
        weights: of the units, those that become known together beside each other: a block (a, b)
            and its biases (a,), for each value and layer.
        places: of each value and layer (d, L, 4): where its block starts, how many units are known
            before it and with it, and how many units or inputs it sees.
        hidden: how many units each hidden layer has.
    """

    bins: int
    order: list[int]
    width: int
    weights: Any
    places: Any
    hidden: Any

    @classmethod
    def of(cls, bins: int, layouts: list[Layout], layers: list[Layer], order: list[int]) -> Ordered:
        """Sort the units of a transform's network.

        Args:
            bins: of what maps a value.
            layouts: of the network's layers, with their masks.
            layers: their weights.
            order: when each of the parameters is found.
        """
        dim = len(order)
        found = sorted(range(dim), key=order.__getitem__)
        width = layouts[0].inputs - (dim if dim > 1 else 0)
        # What a unit waits for: so many values; the context for none.
        waits = torch.tensor([*(order if dim > 1 else []), *([-1] * width)]) + 1
        columns = torch.cat([torch.arange(len(waits) - width, len(waits)), torch.tensor(found)])
        columns = columns if dim > 1 else torch.arange(width)
        sorted_layers, known = [], [[width + (i if dim > 1 else 0) for i in range(dim)]]
        for place, (layout, layer) in enumerate(zip(layouts, layers, strict=True)):
            if layout.mask is None:
                waits = torch.zeros(layout.outputs, dtype=torch.long)
            else:
                waits = (layout.mask * waits).amax(dim=1)
            if place == len(layouts) - 1:  # as many parameters of each value
                each = layout.outputs // dim
                rows = torch.arange(layout.outputs).view(dim, each)[found].flatten()
                known.append([each * (i + 1) for i in range(dim)])
            else:
                rows = waits.argsort(stable=True)
                known.append([int((waits <= i).sum()) for i in range(dim)])
            sorted_layers.append(Layer(layer.weight[rows][:, columns], layer.bias[rows]))
            columns = rows
        weights, places = _blocks(sorted_layers, known)
        hidden = np.array([layout.outputs for layout in layouts[:-1]], np.int64)
        return cls(bins, found, width, weights, places, hidden)

    def inverse(self, y: Tensor, context: Tensor | None, log_slope: Tensor) -> Tensor:
        """The z (n, d) that the transform maps to y (n, d), given the context (n, k).

        The transform's log slope there is added to ``log_slope`` (n,).
        """
        n, dim = y.shape
        inputs = y.new_empty(self.width + dim, n)  # a row each, as hidden units have
        if context is not None:
            inputs[: self.width] = context.expand(n, -1).T
        hidden = np.empty((int(self.hidden.sum()), n), np.float32)
        given = self.weights, self.hidden, inputs.numpy(), hidden
        _, low, high, _ = self.places[0, -1]
        raw = y.new_empty(n, int(high - low))
        z = torch.empty_like(y)
        for i, place in enumerate(self.order):
            _known_with(self.places[i], *given, raw.numpy())
            value = y[:, place, None].contiguous()
            inputs[self.width + i] = z[:, place] = self._of(value, raw, log_slope)[:, 0]
        return z

    def _of(self, y: Tensor, raw: Tensor, log_slope: Tensor) -> Tensor:
        """The x that maps of parameters ``raw`` (n, r) bring to y (n, 1)."""
        x = torch.empty_like(y)
        if self.bins:
            e = np.empty_like(raw.numpy())
            sizes(raw.numpy(), self.bins, e)
            spline_inverse(y.numpy(), e, self.bins, x.numpy(), log_slope.numpy())
        else:
            affine_inverse(y.numpy(), raw.numpy(), x.numpy(), log_slope.numpy())
        return x


def _blocks(layers: list[Layer], known: list[list[int]]) -> tuple[Any, Any]:
    """Weights one block after another, and their places; ``known`` are inputs, then units."""
    parts, places, start = [], [], 0
    for i in range(len(known[0])):
        for seen, own, layer in zip(known, known[1:], layers, strict=False):
            low, high, b = own[i - 1] if i else 0, own[i], seen[i]
            parts += [layer.weight[low:high, :b].flatten(), layer.bias[low:high]]
            places.append((start, low, high, b))
            start += (high - low) * (b + 1)
    shape = len(known[0]), len(layers), 4
    return torch.cat(parts).numpy(), np.array(places, np.int64).reshape(shape)


@compiled
def _known_with(places: Any, weights: Any, widths: Any, inputs: Any, hidden: Any, raw: Any) -> None:
    """Fill in the ``hidden`` units that become known with a value, and its parameters ``raw``."""
    seen, at = inputs, 0
    for place in range(len(places)):
        start, low, high, b = places[place]
        a = high - low
        block = weights[start : start + a * b].reshape(a, b)
        bias = weights[start + a * b : start + a * b + a]
        if place == len(places) - 1:
            if b:
                np.dot(seen[:b].T, block.T, raw)
            else:
                raw[:] = _ZERO
            raw += bias
            return
        own = hidden[at + low : at + high]
        if a and b:
            np.dot(block, seen[:b], own)
        else:
            own[:] = _ZERO
        for j in range(a):
            for r in range(own.shape[1]):
                value = own[j, r] + bias[j]
                own[j, r] = value if value > _ZERO else _ZERO
        seen = hidden[at : at + widths[place]]
        at += widths[place]
