"""A learned simulator's curves as one function of a vector of their weights, with its gradient.

What is worked out is the loss of :class:`~abi.generators.pool.curves.Curves`. In torch a step is a
hundred operations on small tensors, whose calls cost more than their arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from numba import njit
from torch import Tensor, nn

from ...training.compiling import compiled
from ...training.elementary import exponentiate, sines
from .network import affine_back, affine_forth, one_after_another, places_of

_ZERO, _ONE, _HALF = np.float32(0.0), np.float32(1.0), np.float32(0.5)
_STRAIGHT, _SHARES, _SIZE, _BENDS, _STRENGTH, _UNITS = range(6)  # in the order of their places


class CompiledCurves(nn.Module):
    """A copy of such a network on the CPU, quick to train, which gives its weights back.

    Args:
        layers: of what is bent, the first one first.
        others: its other parts, tensors that lie beside each other: weight and bias of what is
            straight; what each value takes of each shape; weight and bias of the log size; what
            this takes of each shape; weight and bias of the log strength; the values' log units.
        shape: r of the values that are counts, (k,); 0 of the others.
        most: limits of the log strength and of the log of a count's mean.
    """

    def __init__(
        self,
        layers: Sequence[nn.Linear],
        others: Sequence[Sequence[Tensor]],
        shape: Tensor,
        most: tuple[float, float],
    ):
        super().__init__()
        parts = [*((layer.weight, layer.bias) for layer in layers), *others]
        self._tensors = [tensor for part in parts for tensor in part]
        bent = one_after_another((layer.out_features, layer.in_features, None) for layer in layers)
        sizes = (sum(tensor.numel() for tensor in part) for part in others)
        starts = np.array([*accumulate(sizes, initial=bent[-1].end)], np.int64)
        self._form = places_of(bent), starts, shape.numpy(), np.array(most, np.float32)
        self.weights = nn.Parameter(
            torch.cat([tensor.detach().flatten() for tensor in self._tensors])
        )
        self._gradient = torch.empty_like(self.weights.detach())

    @torch.no_grad()
    def loss(self, u: Tensor, z: Tensor) -> Tensor:
        """The loss of values z (n, k) given numbers u (n, c)."""
        return self._loss(u, z, np.empty(0, np.float32))

    @torch.no_grad()
    def descend(self, u: Tensor, z: Tensor) -> Tensor:
        """The loss, of which the weights are left the gradient."""
        self.weights.grad = self._gradient
        return self._loss(u, z, self._gradient.numpy())

    @torch.no_grad()
    def write_back(self) -> None:
        """Give the network these weights."""
        sizes = [part.numel() for part in self._tensors]
        for part, values in zip(self._tensors, self.weights.detach().split(sizes), strict=True):
            part.copy_(values.view_as(part))

    def _loss(self, u: Tensor, z: Tensor, into: Any) -> Tensor:
        given = u.contiguous().numpy(), z.contiguous().numpy(), into
        return torch.tensor(_loss(self.weights.detach().numpy(), *self._form, *given))


@compiled
def _loss(
    weights: Any, layers: Any, places: Any, shape: Any, most: Any, u: Any, z: Any, into: Any
) -> float:
    """The loss; and ``into``, unless it is empty, its gradient."""
    n, k, m = len(u), z.shape[1], layers[-1, 1]
    bent = np.empty((len(layers) - 1, n, layers[0, 1]), np.float32)
    slope, shapes = np.empty_like(bent), np.empty((n, m), np.float32)
    _bend(weights, layers, u, bent, slope, shapes)
    rows, swollen = np.empty((n, 3), np.float32), np.empty_like(shapes)
    _sizes(weights, places, most[0], u, shapes, rows, swollen)
    means, added = np.empty_like(z), np.empty_like(z)
    affine_forth(weights, places[_STRAIGHT], u, means)
    shares = weights[places[_SHARES] : places[_SHARES] + k * m].reshape(k, m)
    np.dot(swollen, shares.T, added)
    units = weights[places[_UNITS] : places[_UNITS] + k]
    of_size, of_units = np.empty(n, np.float32), np.zeros(k, np.float32)
    loss = _errors(units, shape, most[1], rows, z, added, means, of_size, of_units)
    if len(into):
        for j in range(k):
            into[places[_UNITS] + j] = of_units[j]
        affine_back(weights, places[_STRAIGHT], u, means, into, True)
        np.dot(means.T, swollen, into[places[_SHARES] : places[_SHARES] + k * m].reshape(k, m))
        of_shapes = np.empty_like(shapes)
        np.dot(means, shares, of_shapes)
        _back_to_shapes(weights, places, u, shapes, rows, of_size, of_shapes, into)
        _unbend(weights, layers, u, bent, slope, of_shapes, into)
    return loss


@compiled
def _bend(weights: Any, layers: Any, u: Any, bent: Any, slope: Any, shapes: Any) -> None:
    """Fill in what each layer hands on, sines first, with its slope; and the shapes (n, m)."""
    given = u
    for place in range(len(layers) - 1):
        own = bent[place]
        affine_forth(weights, layers[place, 0], given, own)
        flat, of_flat = own.reshape(-1), slope[place].reshape(-1)
        if place == 0:
            sines(flat, of_flat)
        else:
            for i in range(len(flat)):
                of_flat[i] = -flat[i]
            exponentiate(of_flat)
            for i in range(len(flat)):
                share = _ONE / (_ONE + of_flat[i])
                of_flat[i] = share * (_ONE + flat[i] * (_ONE - share))
                flat[i] *= share
        given = own
    affine_forth(weights, layers[-1, 0], given, shapes)


@compiled
def _sizes(
    weights: Any, places: Any, most: Any, u: Any, shapes: Any, rows: Any, swollen: Any
) -> None:
    """What theta says of each row: the log size of its errors, and how strong its shapes are.

    The third of a row is the strength again, or 0 where it has come to its limit.
    """
    c, (n, m) = u.shape[1], shapes.shape
    size, bends, strength = places[_SIZE], places[_BENDS], places[_STRENGTH]
    for i in range(n):
        log_size, log_strength = weights[size + c], weights[strength + c]
        for j in range(c):
            log_size += weights[size + j] * u[i, j]
            log_strength += weights[strength + j] * u[i, j]
        for j in range(m):
            log_size += weights[bends + j] * shapes[i, j]
        limited = min(max(log_strength, -most), most)
        rows[i, 0], rows[i, 1] = log_size, math.exp(limited)
        rows[i, 2] = rows[i, 1] if limited == log_strength else _ZERO
        for j in range(m):
            swollen[i, j] = rows[i, 1] * shapes[i, j]


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"reassoc"})
def _errors(
    units: Any, shape: Any, most: Any, rows: Any, z: Any, added: Any, means: Any, of_size: Any,
    of_units: Any,
) -> float:  # fmt: skip
    """The loss of means and what is ``added`` to them; ``means`` become the gradient there.

    Fills in the gradients of the rows' log sizes (n,) and of the values' units (k,), too.
    """
    n, k = z.shape
    share, loss, count = np.float32(1.0 / (n * k)), 0.0, 0
    each = np.zeros(k, np.float32)
    for j in range(k):
        if not shape[j] > _ZERO:
            each[j], count, loss = math.exp(-units[j]), count + 1, loss + n * units[j]
    for i in range(n):
        precision, squares = np.float32(math.exp(-rows[i, 0])), _ZERO
        for j in range(k):
            added[i, j] += means[i, j]
            left = (z[i, j] - added[i, j]) * precision * each[j]
            means[i, j] = -left * precision * each[j] * share
            of_units[j] -= left * left * share
            squares += left * left
        loss += count * rows[i, 0] + _HALF * squares
        of_size[i] = (count - squares) * share
    for j in range(k):
        if not shape[j] > _ZERO:
            of_units[j] += n * share
            continue
        for i in range(n):
            log_mean = min(max(added[i, j], -most), most)
            mean = math.exp(log_mean)
            beyond = mean / shape[j]
            means[i, j] = (mean - z[i, j]) / (_ONE + beyond) * share
            loss -= z[i, j] * log_mean - (z[i, j] + shape[j]) * math.log1p(beyond)
    return float(loss * share)


@compiled
def _back_to_shapes(
    weights: Any, places: Any, u: Any, shapes: Any, rows: Any, of_size: Any, of_shapes: Any,
    into: Any,
) -> None:  # fmt: skip
    """From the gradient of the swollen shapes, (n, m), to that of the shapes, in its place."""
    c, (n, m) = u.shape[1], shapes.shape
    size, bends, strength = places[_SIZE], places[_BENDS], places[_STRENGTH]
    for at in range(size, strength + c + 1):
        into[at] = _ZERO
    for i in range(n):
        of_strength = _ZERO
        for j in range(m):
            of_strength += of_shapes[i, j] * shapes[i, j] * rows[i, 2]
            into[bends + j] += of_size[i] * shapes[i, j]
            of_shapes[i, j] = of_shapes[i, j] * rows[i, 1] + of_size[i] * weights[bends + j]
        for j in range(c):
            into[size + j] += of_size[i] * u[i, j]
            into[strength + j] += of_strength * u[i, j]
        into[size + c] += of_size[i]
        into[strength + c] += of_strength


@compiled
def _unbend(
    weights: Any, layers: Any, u: Any, bent: Any, slope: Any, of_shapes: Any, into: Any
) -> None:
    """Write the layers' gradient, from that of the shapes (n, m)."""
    of = of_shapes
    for place in range(len(layers) - 1, 0, -1):
        of = affine_back(weights, layers[place, 0], bent[place - 1], of, into, False)
        flat, of_flat = of.reshape(-1), slope[place - 1].reshape(-1)
        for i in range(len(flat)):
            flat[i] *= of_flat[i]
    affine_back(weights, layers[0, 0], u, of, into, True)
