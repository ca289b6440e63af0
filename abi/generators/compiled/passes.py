"""A whole flow forth, and back, as one compiled call each: its networks, and the maps they bend.

Dozens of small calls cost more than their arithmetic. What a pass leaves for the way back lies in
one array, the ``room``: of each transform the values that came in, its network's inputs, hidden
units and outputs, and their exponentials.

A flow is told by a vector of ``weights``; by its ``layers``, (L, 3): the first place of a layer's
weights, its outputs, and its inputs; and by its ``parts``, (T, 4), one a transform: its first
layer, the one after its last, the bins of its splines, 0 of affine maps, and the numbers that a row
leaves behind in it. The context is (n, k), or (1, k), the same for all rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...training.compiling import compiled
from .kernels import affine, affine_gradient, sizes, spline, spline_gradient
from .network import Layout, network_back, network_forth
from .normal import LOG_NORMAL

_HALF, _LOG_NORMAL = np.float32(0.5), np.float32(LOG_NORMAL)


def left_behind(dim: int, layers: list[Layout], bins: int) -> int:
    """Numbers that a row of theta (n, d) leaves behind in a transform with these layers."""
    outputs = [layer.outputs for layer in layers]
    return dim + layers[0].inputs + sum(outputs) + (outputs[-1] if bins else 0)


@compiled
def forth(
    weights: Any, layers: Any, parts: Any, theta: Any, context: Any, room: Any, kept: bool,
    log_slopes: Any,
) -> Any:  # fmt: skip
    """Where theta (n, d) come to in the base, (n, d); adds to the sums ``log_slopes`` (n,).

    The room is ``kept`` for the way back, or used again by each transform.
    """
    count, dim, width = len(theta), theta.shape[1], context.shape[1]
    z, at = theta, 0
    for part in range(len(parts)):
        own, bins = layers[parts[part, 0] : parts[part, 1]], parts[part, 2]
        x, inputs, hidden, raw, e = _views(room, at, count, dim, own, bins)
        at += count * parts[part, 3] if kept else 0
        seen = inputs.shape[1] - width  # of theta; a single parameter sees the context alone
        for i in range(count):
            row = i if len(context) > 1 else 0
            for j in range(dim):
                x[i, j] = z[i, j]
            for j in range(seen):
                inputs[i, j] = z[i, j]
            for j in range(width):
                inputs[i, seen + j] = context[row, j]
        network_forth(weights, own, inputs, hidden, raw)
        z = np.empty((count, dim), np.float32)
        if bins:
            sizes(raw, bins, e)
            spline(x, e, bins, z, log_slopes)
        else:
            affine(x, raw, z, log_slopes)
    return z


@compiled
def add_log_normal(base: Any, values: Any) -> None:
    """Add the log density of N(0, I) at base (n, d) to ``values`` (n,)."""
    for i in range(len(base)):
        for j in range(base.shape[1]):
            values[i] += _LOG_NORMAL - _HALF * base[i, j] * base[i, j]


@compiled
def back(
    weights: Any, layers: Any, parts: Any, mask: Any, room: Any, base: Any, of_values: Any,
    width: int, wanted: bool, into: Any,
) -> Any:  # fmt: skip
    """The gradients of theta, (n, d), and of the context, (n, k), of log densities.

    Args:
        weights: the vector of all weights.
        layers: of the flow.
        parts: likewise.
        mask: 0 where a weight is hidden, and has no gradient.
        room: what :func:`forth` left.
        base: what it gave, (n, d).
        of_values: gradient of the log densities, (n,).
        width: of the context.
        wanted: whether anybody asks for these gradients; the context's has no columns if not.
        into: filled with the gradient of all weights.
    """
    count, dim = base.shape
    of_z, of_context = np.empty_like(base), np.zeros((count, width if wanted else 0), np.float32)
    for i in range(count):
        for j in range(dim):
            of_z[i, j] = -of_values[i] * base[i, j]
    at = len(room)
    for part in range(len(parts) - 1, -1, -1):
        own, bins = layers[parts[part, 0] : parts[part, 1]], parts[part, 2]
        at -= count * parts[part, 3]
        x, inputs, hidden, raw, e = _views(room, at, count, dim, own, bins)
        of_x, of_raw = np.empty_like(x), np.empty_like(raw)
        if bins:
            spline_gradient(x, raw, e, bins, of_z, of_values, of_x, of_raw)
        else:
            affine_gradient(x, raw, of_z, of_values, of_x, of_raw)
        of_z, alone, seen = of_x, part == 0 and not wanted, inputs.shape[1] - width
        of_inputs = network_back(weights, own, inputs, hidden, of_raw, into, alone)
        for i in range(0 if alone else count):
            for j in range(seen):
                of_z[i, j] += of_inputs[i, j]
            for j in range(of_context.shape[1]):
                of_context[i, j] += of_inputs[i, seen + j]
    for k in range(len(into)):
        into[k] *= mask[k]
    return of_z, of_context


@compiled
def _views(room: Any, at: int, count: int, dim: int, layers: Any, bins: int) -> Any:
    """What a transform leaves behind, from this place on."""
    outputs, width, units = layers[-1, 1], layers[0, 2], 0
    for place in range(len(layers) - 1):
        units += layers[place, 1]
    x = room[at : at + count * dim].reshape(count, dim)
    at += count * dim
    inputs = room[at : at + count * width].reshape(count, width)
    at += count * width
    hidden = room[at : at + count * units]
    at += count * units
    raw = room[at : at + count * outputs].reshape(count, outputs)
    at += count * outputs if bins else 0
    e = room[at : at + count * outputs].reshape(count, outputs)
    return x, inputs, hidden, raw, e
