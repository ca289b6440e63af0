"""All convolutions of the encoder as one function of their weights, with its gradient.

The first stack sees the items in the order given. Each of the others sees them sorted by one of
their values, and what the first has found around each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from validation.threads import one_blas_thread

from ...training.compiling import compiled
from .gradients import stack_back
from .passes import (
    EDGE,
    TAPS,
    WIDTH,
    bring,
    enter,
    stack_forth,
    taken_and_made,
)

_ROWS = 64  # that go through all layers together: they stay in the cache of a core
Stack = list[tuple[int, int, int]]  # channels, width and dilation of each layer; 0 of attention


class Pooled(torch.autograd.Function):
    """What is pooled of every stack, (n, 3 widths of each), and its derivatives by the weights."""

    @staticmethod
    def forward(
        ctx: Any, weights: Tensor, values: Tensor, ranked: Tensor, orders: Tensor,
        stacks: list[Stack],
    ) -> Tensor:  # fmt: skip
        """Pool items in the order given and in their others.

        Args:
            ctx: for the way back.
            weights: of all layers, stack by stack: kernels (width, taps, channels), then biases;
                of the attention no bias.
            values: the items in the order given, (n, k, m).
            ranked: the items in the other orders, (m, n, k, c).
            orders: where each of these was, (m, n, k).
            stacks: the layers, each stack ending with its attention.
        """
        (n, k), kept = values.shape[:2], ctx.needs_input_grad[0]
        tables, each = _tables(stacks, k)
        room = np.empty((-(-n // _ROWS) if kept else 1, each * min(n, _ROWS)), np.float32)
        pooled = torch.empty(n, 3 * sum(stack[-1][1] for stack in stacks), dtype=torch.float32)
        given = values.contiguous().numpy(), ranked.contiguous().numpy(), orders.numpy()
        ctx.known = weights.detach().numpy(), tables, given[2], room
        with one_blas_thread():
            forth(*ctx.known, *given[:2], _ROWS, pooled.numpy())
        return pooled

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_pooled: Tensor) -> tuple[Tensor, None, None, None, None]:
        """The gradient of the weights."""
        into = np.zeros_like(ctx.known[0])
        with one_blas_thread():
            back(*ctx.known, _ROWS, of_pooled.contiguous().numpy(), into)
        return torch.from_numpy(into), None, None, None, None


def _tables(stacks: list[Stack], k: int) -> tuple[tuple[Any, Any], int]:
    """The stacks as the passes are told them, and how large a room of one row is.

    They are the first one's table, and the others', (m, layers, 6).
    """
    tables, start, place = [], 0, 0
    for stack in stacks:
        table = []
        for channels, width, dilation in stack:
            makes = place + (k + 2 * EDGE) * channels
            table.append((start, channels, width, dilation, place, makes))
            start += width * (TAPS * channels + 1) if dilation else width * channels
            place = makes
        place += (k + 2 * EDGE) * stack[-1][1] + 3 * stack[-1][1]  # shares, and what is pooled
        tables.append(np.array(table, np.int64))
    return (tables[0], np.stack(tables[1:])), place


@compiled
def forth(
    weights: Any, tables: Any, orders: Any, room: Any, values: Any, ranked: Any, block: int,
    pooled: Any,
) -> None:  # fmt: skip
    """Fill ``pooled``, a block of rows after another; a room of one block is used by all."""
    (first_stack, others), (n, k, m) = tables, values.shape
    for number in range((n + block - 1) // block):
        some = slice(number * block, min((number + 1) * block, n))
        rows, at = some.stop - some.start, 3 * first_stack[-1, WIDTH]
        own = room[number if len(room) > 1 else 0]
        enter(values[some], taken_and_made(first_stack[0], own, k, rows)[0])
        stack_forth(weights, first_stack, own, k, pooled[some, :at])
        around = taken_and_made(first_stack[-1], own, k, rows)[0]
        for j in range(m):
            entry, end = (
                taken_and_made(others[j, 0], own, k, rows)[0],
                at + 3 * others[j, -1, WIDTH],
            )
            enter(ranked[j, some], entry)
            bring(around, orders[j, some], ranked.shape[3], entry)
            stack_forth(weights, others[j], own, k, pooled[some, at:end])
            at = end


@compiled
def back(
    weights: Any, tables: Any, orders: Any, room: Any, block: int, of_pooled: Any, into: Any
) -> None:
    """Add the gradient of all weights ``into`` theirs."""
    (first_stack, others), (m, n, k) = tables, orders.shape
    for number in range((n + block - 1) // block):
        some = slice(number * block, min((number + 1) * block, n))
        own, rows, width = room[number], some.stop - some.start, first_stack[-1, WIDTH]
        first, at = 3 * width, 3 * width
        of_around = np.zeros((k + 2 * EDGE, width, rows), np.float32)
        for j in range(m):
            width = others[j, -1, WIDTH]
            of_hidden = np.zeros((k + 2 * EDGE, width, rows), np.float32)
            of_own = of_pooled[some, at : at + 3 * width]
            of_entry = stack_back(weights, others[j], own, of_own, of_hidden, into)
            _bring_back(of_entry, orders[j, some], of_around)
            at += 3 * width
        stack_back(weights, first_stack, own, of_pooled[some, :first], of_around, into)


@compiled
def _bring_back(of_entry: Any, order: Any, of_around: Any) -> None:
    """Add the gradient of what is around items to that where they were; the place comes last."""
    rows, k = order.shape
    first = of_entry.shape[1] - 1 - of_around.shape[1]
    for i in range(k):
        for r in range(rows):
            was = EDGE + order[r, i]
            for j in range(of_around.shape[1]):
                of_around[was, j, r] += of_entry[EDGE + i, first + j, r]
