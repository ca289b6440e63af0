r"""Smooth curves of theta, one for each value of x, and how large errors about them are.

    m(u) = B u + e^{a(u)} V h(u),    l(u) = b u + v h(u)

B, b and a are affine, h a network of four layers that ends in 24 shapes, V what each value takes of
each: values of a series, or of a curve, have most of their course in common, and so fewer numbers
to find. What theta only makes larger or smaller is left to a. The first units are sines, for what
comes back. Of small counts m is the log of the mean (:mod:`.values.counts`). (Of waves in noise,
5,000 pairs from the prior, the law fell short of the exact one by 4 nats a pair; by 27 with two
layers, and neither shapes nor a. Of 10,000 pairs whose noise hides the wave, by .5 and 2.0. Of
epidemics, 400 pairs, it gained .6 nats; of predators and prey, 600, 10.)

The gradient is worked out by hand: a step takes four fifths of its time by autograd, whose calls
cost more than the arithmetic of layers as small as these.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from simulators.random import isolated_rng

from .values import counts

_WIDTH, _SHAPES, _LAYERS = 64, 24, 4
_MOST_STRENGTH = 6.0  # of its logarithm
_silu = nn.functional.silu
_silu_back: Callable[[Tensor, Tensor], Tensor] = torch.ops.aten.silu_backward


class Curves(nn.Module):
    """A network of numbers u (n, c) of theta for k values.

    Those that are counts have shapes r, (k,), while it is trained; that of others is 0.
    """

    shape: Tensor

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.register_buffer("shape", torch.zeros(outputs), persistent=False)
        widths = [inputs, *_LAYERS * [_WIDTH], _SHAPES]
        self.layers = nn.ModuleList(map(nn.Linear, widths[:-1], widths[1:]))
        self.shares = nn.Linear(_SHAPES, outputs, bias=False)
        self.straight = nn.Linear(inputs, outputs)
        self.size = nn.Linear(inputs, 1)
        self.bent_size = nn.Linear(_SHAPES, 1, bias=False)
        self.strength = nn.Linear(inputs, 1)
        nn.init.zeros_(self.strength.weight)
        nn.init.zeros_(self.strength.bias)
        self.log_unit = nn.Parameter(torch.zeros(outputs))
        """Of the errors of each value, as long as nothing else is known of them."""

    def forward(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Means (n, k) of the values, or their logs, and log sizes of the others' errors (n, 1)."""
        shapes = self._passed(u)[-1].made
        strength = self.strength(u).clamp(-_MOST_STRENGTH, _MOST_STRENGTH).exp()
        means = self.straight(u) + self.shares(strength * shapes)
        return means, self.size(u) + self.bent_size(shapes)

    def loss(self, u: Tensor, z: Tensor) -> Tensor:
        """Less the mean log density of values z (n, k), each of its own, but for a constant.

        Counts are what they are, others in units.
        """
        means, log_size = self(u)
        counted, log_size = self.shape > 0.0, log_size + self.log_unit
        of_measured = log_size + 0.5 * ((z - means) / log_size.exp()).square()
        of_counts = counts.log_density(z[:, counted], means[:, counted], self.shape[counted])
        value: Tensor = (of_measured[:, ~counted].sum() - of_counts.sum()) / z.numel()
        return value

    @torch.no_grad()
    def descend(self, u: Tensor, z: Tensor) -> Tensor:
        """The loss, leaving its gradient with the parameters."""
        measured = self.shape == 0.0
        passed = self._passed(u)
        shapes, log_strength = passed[-1].made, self.strength(u)
        limited = log_strength.clamp(-_MOST_STRENGTH, _MOST_STRENGTH)
        strength = limited.exp()
        swollen = strength * shapes
        log_size = self.size(u) + self.bent_size(shapes)
        precision, each = (-log_size).exp(), (-self.log_unit).exp()
        means = self.straight(u).addmm_(swollen, self.shares.weight.T)
        left = (z - means).mul_(precision).mul_(each).mul_(measured)
        squares = left.square()
        of_rows, count = squares.sum(dim=1, keepdim=True), measured.sum()
        value: Tensor = count * log_size.sum() + len(z) * self.log_unit[measured].sum()
        value = value + 0.5 * of_rows.sum()

        of_means = left.mul_(precision / -z.numel()).mul_(each)
        if count < z.shape[1]:
            of_means[:, ~measured], of_counts = self._of_counts(z, means)
            value = value - of_counts
        of_size = (count - of_rows) / z.numel()
        of_swollen = of_means @ self.shares.weight
        of_strength = (of_swollen * shapes).sum(dim=1, keepdim=True) * strength
        self.log_unit.grad = (len(z) * measured - squares.sum(dim=0)) / z.numel()
        _leave(self.straight, u, of_means)
        _leave(self.shares, swollen, of_means)
        _leave(self.size, u, of_size)
        _leave(self.bent_size, shapes, of_size)
        _leave(self.strength, u, of_strength * (limited == log_strength))
        self._back(passed, (of_swollen * strength).addmm_(of_size, self.bent_size.weight))
        return value / z.numel()

    def _of_counts(self, z: Tensor, log_means: Tensor) -> tuple[Tensor, Tensor]:
        """The gradient at the logs of the counts' means, and their log density."""
        counted = self.shape > 0.0
        x, eta, shape = z[:, counted], log_means[:, counted], self.shape[counted]
        mean = counts.mean_of(eta)
        gradient = (mean - x) / (1.0 + mean / shape) / z.numel()
        return gradient, counts.log_density(x, eta, shape).sum()

    def _passed(self, u: Tensor) -> list[_Passed]:
        """What went through each layer."""
        passed = [_Passed(u, self.layers[0](u))]
        for k, layer in enumerate(self.layers[1:]):
            given = _silu(passed[-1].made) if k else passed[-1].made.sin()
            passed.append(_Passed(given, layer(given)))
        return passed

    def _back(self, passed: list[_Passed], of_made: Tensor) -> None:
        """Leave the layers' gradients, from that of what the last one made."""
        for k in range(len(passed) - 1, 0, -1):
            layer = cast("nn.Linear", self.layers[k])
            _leave(layer, passed[k].given, of_made)
            of_given = of_made @ layer.weight
            before = passed[k - 1].made
            of_made = _silu_back(of_given, before) if k > 1 else of_given.mul_(before.cos())
        _leave(cast("nn.Linear", self.layers[0]), passed[0].given, of_made)


class _Passed(NamedTuple):
    """What a layer was given (n, a), and what it made of it (n, b), not yet bent."""

    given: Tensor
    made: Tensor


def _leave(layer: nn.Linear, given: Tensor, of_made: Tensor) -> None:
    """Leave a layer's gradient, from that of what it made of what it was given."""
    layer.weight.grad = of_made.T @ given
    if layer.bias is not None:
        layer.bias.grad = of_made.sum(dim=0)


class EarlierCurves(nn.Module):
    """What files of before version 25 hold: straight lines, and two layers that bend them."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.straight = nn.Linear(inputs, outputs + 1)
        self.bent = nn.Sequential(
            nn.Linear(inputs, _WIDTH), nn.SiLU(), nn.Linear(_WIDTH, _WIDTH), nn.SiLU(),
            nn.Linear(_WIDTH, outputs + 1, bias=False),
        )  # fmt: skip
        self.log_unit = nn.Parameter(torch.zeros(outputs))

    def forward(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """Means (n, k) of the values, and log sizes of their errors (n, 1)."""
        both = self.straight(u) + self.bent(u)
        return both[:, :-1], both[:, -1:]


def curves(inputs: int, log_means: Tensor, shape: Tensor, seed: int) -> Curves:
    """An untrained network of these numbers for k values.

    Args:
        inputs: how many numbers.
        log_means: of those that are counts, where it starts, (k,); 0 of the others.
        shape: r of the counts, (k,); 0 of the others.
        seed: of its first weights.
    """
    with isolated_rng(seed):
        made = Curves(inputs, len(shape))
    made.shape.copy_(shape)
    made.straight.bias.data += log_means
    return made


def restored(weights: dict[str, Tensor], inputs: int, outputs: int) -> Curves | EarlierCurves:
    """That of a file."""
    form = Curves if "strength.weight" in weights else EarlierCurves
    with isolated_rng(0):
        made = form(inputs, outputs)
    made.load_state_dict(weights)
    return made.eval()
