r"""The networks that give the transforms their parameters: masked matrices with ReLU between them.

Of theta (n, d) in some order, the parameters of the i-th see those before it and the context alone
(Papamakarios et al. 2017). The weights of all layers lie in one vector, and so do their gradients:
an optimiser's step is one operation. Weights that a mask hides are 0, and stay so.

A network forth, or back, is one compiled call. Its matrix products are OpenBLAS's, by numba: at a
hundred rows and a hundred units torch's take a third longer, oneDNN's half as long again, and where
a side is short, up to ten times as long, for their calls cost more than the arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from torch import Tensor

_ZERO = np.float32(0.0)
_compiled = njit(nogil=True, cache=True, error_model="numpy")


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
    def place(self) -> tuple[int, int, int]:
        """Where it lies, as compiled code is told."""
        return self.start, self.outputs, self.inputs

    @property
    def end(self) -> int:
        """The place after its last."""
        return self.start + self.outputs * (self.inputs + 1)

    def view(self, vector: Tensor) -> Layer:
        """The layer in a vector of all weights, or of their gradients."""
        middle = self.start + self.outputs * self.inputs
        weight = vector[self.start : middle].view(self.outputs, self.inputs)
        return Layer(weight, vector[middle : self.end])


@_compiled
def network_forth(weights: Any, places: Any, inputs: Any, hidden: Any, out: Any) -> None:
    """Fill ``hidden`` and ``out`` (n, a) with what the layers give for ``inputs`` (n, b)."""
    n, at, current = len(inputs), 0, inputs
    for place in range(len(places)):
        start, a, b = places[place]
        last = place == len(places) - 1
        target = out if last else hidden[at : at + n * a].reshape(n, a)
        at += n * a
        bias = weights[start + a * b : start + a * b + a]
        if b:
            np.dot(current, weights[start : start + a * b].reshape(a, b).T, target)
        else:
            target[:] = _ZERO
        for i in range(n):
            for j in range(a):
                value = target[i, j] + bias[j]
                target[i, j] = value if last or value > _ZERO else _ZERO
        current = target


@_compiled
def network_back(
    weights: Any, places: Any, inputs: Any, hidden: Any, of_outputs: Any, into: Any, first: bool
) -> Any:
    """Write the gradient of the weights ``into`` theirs; that of the inputs, unless ``first``."""
    n, at, of = len(inputs), len(hidden), of_outputs
    for place in range(len(places) - 1, -1, -1):
        start, a, b = places[place]
        if place:
            at -= n * b
            seen = hidden[at : at + n * b].reshape(n, b)
        else:
            seen = inputs
        if b:
            np.dot(of.T, seen, into[start : start + a * b].reshape(a, b))
        of_bias = into[start + a * b : start + a * b + a]
        of_bias[:] = _ZERO
        for i in range(n):
            for j in range(a):
                of_bias[j] += of[i, j]
        if place == 0 and first:
            return of
        before = np.empty((n, b), np.float32)
        if b:
            np.dot(of, weights[start : start + a * b].reshape(a, b), before)
        if place:
            for i in range(n):
                for j in range(b):
                    before[i, j] = before[i, j] if seen[i, j] > _ZERO else _ZERO
        of = before
    return of
