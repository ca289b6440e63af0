"""Convolutions over places, and their pooling: forth in one compiled call, and back in another.

In torch a step makes some sixty passes over the memory of a whole batch, and its products take a
third of the time. Here a few rows at a time go through all layers, and stay in the cache. Of these
rows a layer is (k, c, rows), places first: what a place sees of its neighbours is one matrix, and
all that is not a product runs over rows side by side. Beyond both ends lie places of zeros.

A *stack* is the layers of one convolution; the last row of its table is its attention's. What
every layer makes is kept in ``room``, where the table says, for the way back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...training.compiling import compiled
from ...training.elementary import exponentiate

# The columns of a stack's table: first weight, channels, what is made of them, dilation (0 of the
# attention), and where in a room of one row lie what it takes and what it makes.
START, CHANNELS, WIDTH, DILATION, TAKES, MAKES = range(6)
EDGE = 4  # places of zeros at either end, no fewer than the largest dilation
TAPS = 3  # places that a convolution sees
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@compiled
def slabs(own: Any, first: int, k: int, channels: int, rows: int) -> Any:
    """The layer that starts there in a room of one row, (k + 2 edges, channels, rows)."""
    size = (k + 2 * EDGE) * channels * rows
    return own[first * rows : first * rows + size].reshape(k + 2 * EDGE, channels, rows)


@compiled
def enter(items: Any, layer: Any) -> None:
    """Fill a layer (k, c + 1 or more, rows) with items (rows, k, c); the last channel is the place.

    Channels between them are left as they are.
    """
    rows, k, c = items.shape
    last = layer.shape[1] - 1
    clear_edges(layer)
    for i in range(k):
        place = np.float32(2.0 * i / max(k - 1, 1) - 1.0)
        for r in range(rows):
            layer[EDGE + i, last, r] = place
            for j in range(c):
                layer[EDGE + i, j, r] = items[r, i, j]


@compiled
def clear_edges(layer: Any) -> None:
    """Zeros before the first place and after the last one."""
    layer[:EDGE] = _ZERO
    layer[len(layer) - EDGE :] = _ZERO


@compiled
def bring(around: Any, order: Any, first: int, layer: Any) -> None:
    """Fill channels of a layer, from ``first`` on, with what is around its items where they were.

    Args:
        around: of the items in the order given, (k, c, rows) with edges.
        order: where each item was, (rows, k).
        first: the first of these channels.
        layer: of the items in their new order, with edges.
    """
    rows, k = order.shape
    for i in range(k):
        for r in range(rows):
            was = EDGE + order[r, i]
            for j in range(around.shape[1]):
                layer[EDGE + i, first + j, r] = around[was, j, r]


@compiled
def turn(values: Any, turned: Any) -> None:
    """Fill a matrix with the transpose of another.

    Products of what is transposed beforehand are twice as fast.
    """
    for a in range(values.shape[0]):
        for b in range(values.shape[1]):
            turned[b, a] = values[a, b]


@compiled
def seen_from(layer: Any, i: int, dilation: int, columns: Any) -> Any:
    """What the i-th place sees: its neighbours' channels and its own, (taps channels, rows)."""
    channels, rows = layer.shape[1:]
    if dilation == 1:
        return layer[EDGE + i - 1 : EDGE + i + 2].reshape(TAPS * channels, rows)
    seen = columns[: TAPS * channels * rows].reshape(TAPS, channels, rows)
    for t in range(TAPS):
        neighbour = EDGE + i + (t - 1) * dilation
        for j in range(channels):
            for r in range(rows):
                seen[t, j, r] = layer[neighbour, j, r]
    return seen.reshape(TAPS * channels, rows)


@compiled
def stack_forth(weights: Any, stack: Any, own: Any, k: int, pooled: Any) -> None:
    """Fill the layers of a stack, its attention's shares, and ``pooled``, (rows, 3 width)."""
    rows = len(pooled)
    for place in range(len(stack) - 1):
        taken, made = taken_and_made(stack[place], own, k, rows)
        _convolve(weights, stack[place], taken, made)
    hidden, shares = taken_and_made(stack[-1], own, k, rows)
    start, width = stack[-1, START], stack[-1, WIDTH]
    attention = weights[start : start + width * width].reshape(width, width)
    for i in range(EDGE, EDGE + k):
        np.dot(attention, hidden[i], shares[i])
    _softmax(shares[EDGE : EDGE + k].reshape(k, width * rows))
    found = pooled_of(stack, own, k, rows)
    _pool(hidden, shares, taken_and_made(stack[0], own, k, rows)[0], found)
    turn(found.reshape(3 * width, rows), pooled)


@compiled
def taken_and_made(layer: Any, own: Any, k: int, rows: int) -> tuple[Any, Any]:
    """What a layer takes and what it makes, with edges."""
    taken = slabs(own, layer[TAKES], k, layer[CHANNELS], rows)
    return taken, slabs(own, layer[MAKES], k, layer[WIDTH], rows)


@compiled
def pooled_of(stack: Any, own: Any, k: int, rows: int) -> Any:
    """What is pooled of a stack: mean, maximum, and where attention lies, (3, width, rows)."""
    width = stack[-1, WIDTH]
    first = (stack[-1, MAKES] + (k + 2 * EDGE) * width) * rows
    return own[first : first + 3 * width * rows].reshape(3, width, rows)


@compiled
def _convolve(weights: Any, layer: Any, taken: Any, made: Any) -> None:
    """Fill ``made`` with the rectified convolution of what is taken."""
    rows, width = made.shape[2], layer[WIDTH]
    inputs = TAPS * layer[CHANNELS]
    bias = layer[START] + width * inputs
    kernel = weights[layer[START] : bias].reshape(width, inputs)
    columns = np.empty(inputs * rows, np.float32)
    for i in range(len(made) - 2 * EDGE):
        own = made[EDGE + i]
        np.dot(kernel, seen_from(taken, i, layer[DILATION], columns), own)
        for j in range(width):
            shift = weights[bias + j]
            for r in range(rows):
                own[j, r] = max(own[j, r] + shift, _ZERO)
    clear_edges(made)


@compiled
def _softmax(scores: Any) -> None:
    """Shares of places, of scores (k, m)."""
    top = np.full(scores.shape[1], -np.inf, np.float32)
    total = np.zeros(scores.shape[1], np.float32)
    for i in range(len(scores)):
        for m in range(len(top)):
            top[m] = max(top[m], scores[i, m])
    for i in range(len(scores)):
        own = scores[i]
        for m in range(len(top)):
            own[m] -= top[m]
        exponentiate(own)
        for m in range(len(top)):
            total[m] += own[m]
    for m in range(len(top)):
        total[m] = _ONE / total[m]
    for i in range(len(scores)):
        for m in range(len(top)):
            scores[i, m] *= total[m]


@compiled
def _pool(hidden: Any, shares: Any, entry: Any, pooled: Any) -> None:
    """Fill ``pooled`` (3, width, rows): mean, maximum, and the first channel's mean by shares."""
    k, (width, rows) = len(hidden) - 2 * EDGE, hidden.shape[1:]
    mean, most, located = pooled[0], pooled[1], pooled[2]
    for j in range(width):
        for r in range(rows):
            mean[j, r], most[j, r], located[j, r] = _ZERO, hidden[EDGE, j, r], _ZERO
    for i in range(EDGE, EDGE + k):
        for j in range(width):
            for r in range(rows):
                mean[j, r] += hidden[i, j, r]
                most[j, r] = max(most[j, r], hidden[i, j, r])
                located[j, r] += shares[i, j, r] * entry[i, 0, r]
    for j in range(width):
        for r in range(rows):
            mean[j, r] /= np.float32(k)
