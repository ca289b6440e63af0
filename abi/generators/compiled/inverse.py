r"""A masked transform backwards: one value after the other, each hidden unit worked out once.

The parameters of the i-th value see those before it. Units of a network that see no value beyond
the i-th are ready as soon as that one is; sorted by this, they are computed in d parts that
together are one pass through the network, where zuko makes d passes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .network import Layer, Layout
from .univariate import Univariate


@dataclass(frozen=True, eq=False)
class Ordered:
    """A transform whose units are sorted by the value they wait for.

    Attributes:
        univariate: what maps a value.
        places: the parameter that is the i-th to be found.
        layers: of its network; inputs are the context, then theta in the order of ``places``.
        ready: of each layer and i, how many units are known before the i-th value is, (d + 1) each;
            of the last layer there are as many parameters a value as ``univariate`` takes.
    """

    univariate: Univariate
    places: list[int]
    layers: list[Layer]
    ready: list[list[int]]

    @classmethod
    def of(
        cls, univariate: Univariate, layouts: list[Layout], layers: list[Layer], order: list[int]
    ) -> Ordered:
        """Sort the units of a transform's network.

        Args:
            univariate: what maps a value.
            layouts: of the network's layers, with their masks.
            layers: their weights.
            order: when each of the parameters is found.
        """
        dim = len(order)
        places = sorted(range(dim), key=order.__getitem__)
        width = layouts[0].inputs - (dim if dim > 1 else 0)
        # What a unit waits for: so many values; the context for none.
        waits = torch.tensor([*(order if dim > 1 else []), *([-1] * width)]) + 1
        columns = torch.cat([torch.arange(len(waits) - width, len(waits)), torch.tensor(places)])
        columns = columns if dim > 1 else torch.arange(width)
        sorted_layers, ready = [], []
        for place, (layout, layer) in enumerate(zip(layouts, layers, strict=True)):
            if layout.mask is None:
                waits = torch.zeros(layout.outputs, dtype=torch.long)
            else:
                waits = (layout.mask * waits).amax(dim=1)
            last = place == len(layouts) - 1
            if last:
                each = layout.outputs // dim
                rows = torch.arange(layout.outputs).view(dim, each)[places].flatten()
            else:
                rows = waits.argsort(stable=True)
            sorted_layers.append(Layer(layer.weight[rows][:, columns], layer.bias[rows]))
            ready.append([int((waits <= i).sum()) for i in range(dim)])
            columns = rows
        return cls(univariate, places, sorted_layers, ready)

    def inverse(self, y: Tensor, context: Tensor | None, log_slope: Tensor) -> Tensor:
        """The z (n, d) that the transform maps to y (n, d), given the context (n, k).

        The transform's log slope there is added to ``log_slope`` (n,).
        """
        dim, first = len(self.places), self.layers[0].weight.shape[1]
        width = first - dim if dim > 1 else first
        inputs = y.new_zeros(len(y), width + dim)
        if context is not None:
            inputs[:, :width] = context
        hidden = [y.new_empty(len(y), len(layer.bias)) for layer in self.layers[:-1]]
        each = len(self.layers[-1].bias) // dim
        for i, place in enumerate(self.places):
            seen = inputs[:, : width + i if dim > 1 else width]
            for number, layer in enumerate(self.layers[:-1]):
                low, high = self.ready[number][i - 1] if i else 0, self.ready[number][i]
                if high > low:
                    some = layer.weight[low:high, : seen.shape[1]]
                    values = torch.addmm(layer.bias[low:high], seen, some.T)
                    hidden[number][:, low:high] = values.relu_()
                seen = hidden[number][:, :high]
            rows = slice(each * i, each * (i + 1))
            last = self.layers[-1]
            raw = torch.addmm(last.bias[rows], seen, last.weight[rows, : seen.shape[1]].T)
            value = y[:, place, None].contiguous()
            inputs[:, width + i] = self.univariate.inverse(value, raw, log_slope)[:, 0]
        out = torch.empty_like(y)
        out[:, self.places] = inputs[:, width:]
        return out
