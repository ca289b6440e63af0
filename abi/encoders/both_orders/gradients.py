"""The way back through a stack of :mod:`abi.encoders.both_orders.passes`, gradients written out.

What is made at a place is weighed by where it was positive; the gradient of what it saw is a
convolution again, of the kernel with its ends exchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...training.compiling import compiled
from .passes import (
    CHANNELS,
    DILATION,
    EDGE,
    START,
    TAPS,
    WIDTH,
    clear_edges,
    pooled_of,
    seen_from,
    taken_and_made,
    turn,
)

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@compiled
def stack_back(
    weights: Any, stack: Any, own: Any, of_pooled: Any, of_hidden: Any, into: Any
) -> Any:
    """Add the gradient of a stack's weights ``into`` theirs; give that of what entered.

    Args:
        weights: of all layers, one vector.
        stack: its table.
        own: the room of these rows.
        of_pooled: gradient of what was pooled, (rows, 3 width).
        of_hidden: gradient of the last layer, (k, width, rows) with edges of 0; overwritten.
        into: gradient of all weights.
    """
    edges, width, rows = of_hidden.shape
    k, found = edges - 2 * EDGE, np.empty((3, width, rows), np.float32)
    turn(of_pooled, found.reshape(3 * width, rows))
    hidden, shares = taken_and_made(stack[-1], own, k, rows)
    entry = taken_and_made(stack[0], own, k, rows)[0]
    pooled = pooled_of(stack, own, k, rows)
    _of_pooling(hidden, pooled, found, of_hidden)
    _of_attention(weights, stack[-1], (hidden, shares, entry, pooled), found, of_hidden, into)
    of = of_hidden
    for place in range(len(stack) - 2, -1, -1):
        taken, made = taken_and_made(stack[place], own, k, rows)
        _rectify(stack[place], made, of, into)
        _of_kernel(stack[place], taken, of, into)
        of = _of_taken(weights, stack[place], taken, of)
    return of


@compiled
def _of_pooling(hidden: Any, pooled: Any, of_pooled: Any, of: Any) -> None:
    """Add what comes through mean and maximum; places that tie for a maximum share it."""
    k, (width, rows) = len(hidden) - 2 * EDGE, hidden.shape[1:]
    most, ties = pooled[1], np.zeros((width, rows), np.float32)
    for i in range(EDGE, EDGE + k):
        for j in range(width):
            for r in range(rows):
                ties[j, r] += _ONE if hidden[i, j, r] == most[j, r] else _ZERO
    for j in range(width):
        for r in range(rows):
            ties[j, r] = of_pooled[1, j, r] / ties[j, r]
    each = _ONE / np.float32(k)
    for i in range(EDGE, EDGE + k):
        for j in range(width):
            for r in range(rows):
                of_most = ties[j, r] if hidden[i, j, r] == most[j, r] else _ZERO
                of[i, j, r] += of_pooled[0, j, r] * each + of_most


@compiled
def _of_attention(weights: Any, layer: Any, kept: Any, of_pooled: Any, of: Any, into: Any) -> None:
    """Add what comes through where attention lies; the entry itself asks for no gradient."""
    hidden, shares, entry, pooled = kept
    start, (width, rows) = layer[START], hidden.shape[1:]
    places = slice(start, start + width * width)
    attention = weights[places].reshape(width, width)
    total, one = np.zeros((width, width), np.float32), np.empty((width, width), np.float32)
    of_score, through = np.empty_like(hidden[0]), np.empty_like(hidden[0])
    turned = np.empty((rows, width), np.float32)
    for i in range(EDGE, len(hidden) - EDGE):
        for j in range(width):
            for r in range(rows):
                off = entry[i, 0, r] - pooled[2, j, r]
                of_score[j, r] = of_pooled[2, j, r] * shares[i, j, r] * off
        turn(of_score, turned)
        np.dot(hidden[i], turned, one)
        np.dot(attention.T, of_score, through)
        add(one, total)
        add(through, of[i])
    add(total.T, into[places].reshape(width, width))


@compiled
def add(values: Any, total: Any) -> None:
    """Add one matrix to another."""
    for a in range(values.shape[0]):
        for b in range(values.shape[1]):
            total[a, b] += values[a, b]


@compiled
def _rectify(layer: Any, made: Any, of: Any, into: Any) -> None:
    """Make the gradient that before the rectifier, and add the bias's to its own."""
    width, rows = made.shape[1:]
    bias = layer[START] + TAPS * layer[CHANNELS] * width
    sums = np.zeros((width, rows), np.float32)
    for i in range(EDGE, len(made) - EDGE):
        for j in range(width):
            for r in range(rows):
                of[i, j, r] = of[i, j, r] if made[i, j, r] > _ZERO else _ZERO
                sums[j, r] += of[i, j, r]
    for j in range(width):
        for r in range(rows):
            into[bias + j] += sums[j, r]


@compiled
def _of_kernel(layer: Any, taken: Any, of: Any, into: Any) -> None:
    """Add the gradient of the kernel to its own."""
    rows, width = taken.shape[2], layer[WIDTH]
    inputs = TAPS * layer[CHANNELS]
    total, one = np.zeros((inputs, width), np.float32), np.empty((inputs, width), np.float32)
    columns, turned = np.empty(inputs * rows, np.float32), np.empty((rows, width), np.float32)
    for i in range(len(taken) - 2 * EDGE):
        turn(of[EDGE + i], turned)
        np.dot(seen_from(taken, i, layer[DILATION], columns), turned, one)
        add(one, total)
    add(total.T, into[layer[START] : layer[START] + width * inputs].reshape(width, inputs))


@compiled
def _of_taken(weights: Any, layer: Any, taken: Any, of: Any) -> Any:
    """The gradient of what a layer took, from that of what it made, both with edges of 0."""
    channels, rows = taken.shape[1:]
    width, of_taken = layer[WIDTH], np.empty_like(taken)
    kernel = weights[layer[START] : layer[START] + TAPS * channels * width]
    turned = np.empty((channels, TAPS, width), np.float32)
    for j in range(width):
        for t in range(TAPS):
            for c in range(channels):
                turned[c, TAPS - 1 - t, j] = kernel[(j * TAPS + t) * channels + c]
    columns = np.empty(TAPS * width * rows, np.float32)
    for i in range(len(taken) - 2 * EDGE):
        seen = seen_from(of, i, layer[DILATION], columns)
        np.dot(turned.reshape(channels, TAPS * width), seen, of_taken[EDGE + i])
    clear_edges(of_taken)
    return of_taken
