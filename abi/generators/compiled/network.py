r"""The networks that give the transforms their parameters: masked matrices with ReLU between them.

Of theta (n, d) in some order, the parameters of the i-th see those before it and the context alone
(Papamakarios et al. 2017). The weights of all layers lie in one vector, and so do their gradients:
an optimiser's step is one operation. Weights that a mask hides are 0, and stay so.

A network forth, or back, is one compiled call. Its matrix products are OpenBLAS's, by numba: at a
hundred rows and a hundred units torch's take a third longer, oneDNN's half as long again, and where
a side is short, up to ten times as long, for their calls cost more than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from ...training.compiling import compiled

_ZERO = np.float32(0.0)


@dataclass(frozen=True, eq=False)
class Layer:
    """One affine map: ``weight`` (a, b) and ``bias`` (a,), views of a vector of all weights.

    Without inputs, as of a single parameter that sees nothing, b is 0.
    """

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True, eq=False)
class Layout:
    """Where a layer lies among all weights: its first place and its widths; and its mask."""

    start: int
    outputs: int
    inputs: int
    mask: Tensor | None

    @property
    def end(self) -> int:
        """The place after its last."""
        return self.start + self.outputs * (self.inputs + 1)

    def view(self, vector: Tensor) -> Layer:
        """The layer in a vector of all weights, or of their gradients."""
        middle = self.start + self.outputs * self.inputs
        weight = vector[self.start : middle].view(self.outputs, self.inputs)
        return Layer(weight, vector[middle : self.end])


def one_after_another(
    layers: Iterable[tuple[int, int, Tensor | None]], start: int = 0
) -> list[Layout]:
    """Layers of these outputs, inputs and masks, from a first place on."""
    layouts = []
    for layer in layers:
        layouts.append(Layout(start, *layer))
        start = layouts[-1].end
    return layouts


def places_of(layouts: list[Layout]) -> Any:
    """First place, outputs and inputs of each layer, (L, 3), as compiled code is told."""
    rows = [(layout.start, layout.outputs, layout.inputs) for layout in layouts]
    return np.array(rows, np.int64).reshape(-1, 3)


@compiled
def affine_forth(weights: Any, start: int, inputs: Any, out: Any) -> None:
    """Fill ``out`` (n, a) with what the layer that starts there makes of ``inputs`` (n, b)."""
    a, b = out.shape[1], inputs.shape[1]
    bias = start + a * b
    if b:
        np.dot(inputs, weights[start:bias].reshape(a, b).T, out)
    for i in range(len(out)):
        for j in range(a):
            out[i, j] = weights[bias + j] + (out[i, j] if b else _ZERO)


@compiled
def affine_back(weights: Any, start: int, inputs: Any, of_out: Any, into: Any, first: bool) -> Any:
    """Write its gradient ``into`` its place; that of the inputs (n, b), of no rows if ``first``."""
    (n, a), b = of_out.shape, inputs.shape[1]
    bias = start + a * b
    if b:
        np.dot(of_out.T, inputs, into[start:bias].reshape(a, b))
    for j in range(a):
        into[bias + j] = _ZERO
    for i in range(n):
        for j in range(a):
            into[bias + j] += of_out[i, j]
    of_inputs = np.empty((0 if first else n, b), np.float32)
    if b and not first:
        np.dot(of_out, weights[start:bias].reshape(a, b), of_inputs)
    return of_inputs


@compiled
def network_forth(weights: Any, places: Any, inputs: Any, hidden: Any, out: Any) -> None:
    """Fill ``hidden`` and ``out`` (n, a) with what the layers give for ``inputs`` (n, b)."""
    n, at, current = len(inputs), 0, inputs
    for place in range(len(places) - 1):
        a = places[place, 1]
        units = hidden[at : at + n * a]
        own = units.reshape(n, a)
        affine_forth(weights, places[place, 0], current, own)
        for k in range(n * a):
            units[k] = max(units[k], _ZERO)
        at += n * a
        current = own
    affine_forth(weights, places[-1, 0], current, out)


@compiled
def network_back(
    weights: Any, places: Any, inputs: Any, hidden: Any, of_outputs: Any, into: Any, first: bool
) -> Any:
    """Write the gradient of the weights ``into`` theirs; that of the inputs, unless ``first``."""
    n, at, of = len(inputs), len(hidden), of_outputs
    for place in range(len(places) - 1, 0, -1):
        b = places[place, 2]
        at -= n * b
        seen = hidden[at : at + n * b].reshape(n, b)
        of = affine_back(weights, places[place, 0], seen, of, into, False)
        for i in range(n):
            for j in range(b):
                of[i, j] = of[i, j] if seen[i, j] > _ZERO else _ZERO
    return affine_back(weights, places[0, 0], inputs, of, into, first)
