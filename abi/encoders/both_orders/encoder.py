"""Items in the order given and sorted by each of their values, where neither is known to matter.

Beside the sorted items the encoder convolves over the items in the order given, and over the items
sorted by each coordinate, with the gaps between neighbours and what the order given has around
each. Where a posterior hangs on edges and gaps of the data, as those of uniform laws do, the gap
after the k-th item says it whatever k is: a convolution sees that at once, and a network of the
sorted values must learn it k by k. Which items an edge is to be read from, their neighbours in
time may tell: on the M/G/1 queue, whether the server was waiting. There the gaps take the flow's
log score from 0.4 below the exact posterior's to level with it, and what is around the items
halves the error of the posterior's sd, which four times as many simulations did not.

On the CPU all convolutions are one compiled call, and their gradient another (:mod:`.whole`).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..item import InputScaling, along, as_image, places_of, sorted_by_each, taken
from ..layout import Layout

_AROUND = 16  # features of what is around an item in the order given
_LEAST_GAP = 1e-4  # of the interquartile range, keeps the log of equal items
_TAPS = 3


class BothOrders(nn.Module):
    """The sorted items, and convolutions over them and over the items in the order given.

    Of every item the convolution over the sorted ones sees, besides its value and the gap after
    it, what that over the order given has found around it.
    """

    def __init__(self, x: Tensor, layout: Layout):
        super().__init__()
        self.layout = layout
        items, item_dim = layout.items(x), layout.width
        orders = sorted_by_each(items)
        self.values = InputScaling(items.reshape(-1, item_dim))
        self.whole = InputScaling(torch.cat([order.flatten(1) for order in orders], dim=1))
        gaps = [self._gaps(order, j) for j, order in enumerate(orders)]
        self.gaps = nn.ModuleList([InputScaling(gap.reshape(-1, 1)) for gap in gaps])
        self.given = Convolution(item_dim + 1, _AROUND, 16, (1, 2, 4))
        seen = item_dim + 2 + _AROUND  # values, the gap and the place, and what is around
        self.ranked = nn.ModuleList([Convolution(seen, 32, 32, (1, 1, 1)) for _ in range(item_dim)])

    def forward(self, x: Tensor) -> Tensor:
        """Map x (n, p) to (n, p m + 32 m + 16)."""
        items = self.layout.items(x)
        places, orders, ranked = places_of(items), [], []
        for j, order in enumerate(taken(items, own) for own in places):
            gaps = self.gaps[j](self._gaps(order, j)[:, :, None])
            gaps = nn.functional.pad(gaps, (0, 0, 0, 1))  # the last item has none after it
            orders.append(order.flatten(1))
            ranked.append(torch.cat([self.values(order), gaps], dim=2))
        convolutions: list[Convolution] = [self.given, *self.ranked]
        way = _by_loops if _compilable(x, self) else _by_torch
        pooled = way(convolutions, self.values(items), ranked, places)
        given, *others = (
            convolution.out(part) for convolution, part in zip(convolutions, pooled, strict=True)
        )
        return torch.cat([self.whole(torch.cat(orders, dim=1)), *others, given], dim=1)

    def _gaps(self, order: Tensor, j: int) -> Tensor:
        """Log gaps between neighbours in coordinate j, (n, k, m) -> (n, k - 1)."""
        return torch.log(order[:, :, j].diff(dim=1) / self.values.scale[j] + _LEAST_GAP)


class Convolution(nn.Module):
    """Convolutions over k places, pooled by mean, by maximum, and by where attention lies."""

    def __init__(self, channels: int, width: int, num_features: int, dilations: tuple[int, ...]):
        super().__init__()
        sizes = [channels, *(width for _ in dilations)]
        layers: list[nn.Module] = []
        for before, dilation in zip(sizes, dilations, strict=False):
            layers += [along(before, width, _TAPS, dilation=dilation), nn.ReLU()]
        self.layers = nn.Sequential(*layers)
        self.attention = nn.Linear(width, width)
        self.out = nn.Sequential(nn.Linear(3 * width, 64), nn.ReLU(), nn.Linear(64, num_features))

    def pooled(self, series: Tensor) -> tuple[Tensor, Tensor]:
        """Map (n, k, channels - 1) to (n, 3 width), and to (n, k, width) place by place.

        The place is a channel more.
        """
        place = torch.linspace(-1.0, 1.0, series.shape[1]).to(series)
        place = place[None, :, None].expand(len(series), -1, 1)
        image = self.layers(as_image(torch.cat([series, place], dim=2)))
        hidden = image[:, :, 0].transpose(1, 2)
        located = (self.attention(hidden).softmax(dim=1) * series[:, :, :1]).sum(dim=1)
        return torch.cat([hidden.mean(dim=1), hidden.amax(dim=1), located], dim=1), hidden

    def table(self) -> list[tuple[int, int, int]]:
        """Channels, width and dilation of each layer, and of its attention, as loops are told."""
        convolutions = [layer for layer in self.layers if isinstance(layer, nn.Conv2d)]
        width = self.attention.in_features
        return [
            *((one.in_channels, one.out_channels, one.dilation[1]) for one in convolutions),
            (width, width, 0),
        ]

    def weights(self) -> list[Tensor]:
        """All that the loops need: what attention adds to all places alike makes no difference."""
        parts = []
        for layer in self.layers:
            if isinstance(layer, nn.Conv2d) and layer.bias is not None:
                parts += [layer.weight[:, :, 0].transpose(1, 2).flatten(), layer.bias]
        return [*parts, self.attention.weight.flatten()]


def _compilable(x: Tensor, encoder: BothOrders) -> bool:
    """Whether loops can do it: on the CPU, in single precision, and nobody asks how x matters."""
    weights = encoder.given.attention.weight
    plain = all(part.device.type == "cpu" and part.dtype == torch.float32 for part in (x, weights))
    return plain and not x.requires_grad


def _by_torch(
    convolutions: list[Convolution], given: Tensor, ranked: list[Tensor], places: list[Tensor]
) -> list[Tensor]:
    """What each convolution pools, (n, 3 width), of items in the order given and sorted."""
    first, around = convolutions[0].pooled(given)
    others = [
        convolution.pooled(torch.cat([order, taken(around, own)], dim=2))[0]
        for convolution, order, own in zip(convolutions[1:], ranked, places, strict=True)
    ]
    return [first, *others]


def _by_loops(
    convolutions: list[Convolution], given: Tensor, ranked: list[Tensor], places: list[Tensor]
) -> list[Tensor]:
    """The same."""
    from .whole import Pooled

    weights = torch.cat([part for one in convolutions for part in one.weights()])
    tables = [one.table() for one in convolutions]
    items = given, torch.stack(ranked), torch.stack(places)
    pooled: Tensor = Pooled.apply(weights, *items, tables)  # type: ignore[no-untyped-call]
    return list(pooled.split([3 * table[-1][1] for table in tables], dim=1))
