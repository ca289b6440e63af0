r"""Smooth curves of theta, one for each value of x, and how large errors about them are.

    m(u) = B u + e^{a(u)} V h(u),    l(u) = b u + v h(u)

B, b and a are affine, h a network of four layers that ends in 24 shapes, V what each value takes of
each: values of a series, or of a curve, have most of their course in common, and so fewer numbers
to find. What theta only makes larger or smaller is left to a. The first units are sines, for what
comes back. Of small counts m is the log of the mean (:mod:`.values.counts`). (Of waves in noise,
5,000 pairs from the prior, the law fell short of the exact one by 4 nats a pair; by 27 with two
layers, and neither shapes nor a. Of 10,000 pairs whose noise hides the wave, by .5 and 2.0. Of
epidemics, 400 pairs, it gained .6 nats; of predators and prey, 600, 10.)

On the CPU it is trained by compiled code (:mod:`abi.generators.compiled.curves`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor, nn

from simulators.random import isolated_rng

from .values import counts

if TYPE_CHECKING:
    from ..compiled.curves import CompiledCurves

_WIDTH, _SHAPES, _LAYERS = 64, 24, 4
_MOST_STRENGTH = 6.0  # of its logarithm


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
        shapes = self.layers[0](u).sin()
        for layer in self.layers[1:-1]:
            shapes = nn.functional.silu(layer(shapes))
        shapes = self.layers[-1](shapes)
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

    def compiled(self) -> CompiledCurves:
        """A copy that is quick to train on the CPU, and writes its weights back."""
        from ..compiled.curves import CompiledCurves

        others = [
            (self.straight.weight, self.straight.bias), (self.shares.weight,),
            (self.size.weight, self.size.bias), (self.bent_size.weight,),
            (self.strength.weight, self.strength.bias), (self.log_unit,),
        ]  # fmt: skip
        most = _MOST_STRENGTH, counts.MOST_LOG
        return CompiledCurves(cast("list[nn.Linear]", self.layers), others, self.shape, most)


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
