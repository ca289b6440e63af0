"""Compiled Gillespie loop of the Lotka-Volterra process.

The next event comes after an exponential time with the total rate, and is of each kind with
probability proportional to its rate (Gillespie, 1976): no discretisation of time. Two things make
the loop as fast as one written in C: the words of the random stream stay in registers, which is why
they are passed around one by one here, and the event is chosen by comparisons without jumps,
because the processor cannot guess a random jump.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from ...streams.ziggurat import draw_exponential, draw_uniform, open_stream


@njit(inline="always")
def _simulate_row(
    theta: Any, stream: Any, prey: float, predators: float, interval: float,
    stop: Any, max_events: Any, out: Any,
) -> Any:  # fmt: skip
    """Fill ``out`` (2 * points) with one path; return the number of events."""
    alpha, beta, gamma, delta = theta[0], theta[1], theta[2], theta[3]
    points = out.shape[0] // 2
    time, next_time, k, events = 0.0, 0.0, 0, 0
    while events <= max_events:
        both = prey * predators
        birth = alpha * prey
        prey_moves = birth + beta * both
        loss = prey_moves + gamma * predators
        total = loss + delta * both
        if total <= 0.0 or (stop and both == 0.0):
            break

        wait, stream = draw_exponential(stream)
        time += wait / total
        while time > next_time and k < points:
            out[k] = prey
            out[points + k] = predators
            k += 1
            next_time = k * interval
        if k == points:
            return events

        chosen, stream = draw_uniform(stream)
        chosen *= total
        of_prey = chosen < prey_moves
        prey += (1.0 if chosen < birth else -1.0) if of_prey else 0.0
        predators += 0.0 if of_prey else (-1.0 if chosen < loss else 1.0)
        events += 1
    capped = events > max_events
    for j in range(k, points):
        out[j] = np.nan if capped else prey
        out[points + j] = np.nan if capped else predators
    return events


@njit(nogil=True, cache=True)
def simulate_paths(
    theta: Any, start: Any, interval: float, stop: Any, max_events: Any,
    seed: Any, first_row: Any, out: Any, events: Any,
) -> None:  # fmt: skip
    """Fill ``out`` (n, 2 * points) with paths at ``theta`` (n, 4), ``events`` (n,) with counts.

    A row whose rates are not all finite and >= 0 is filled with NaN, and so is the rest of a row
    that meets ``max_events`` before its end.
    """
    for i in range(theta.shape[0]):
        valid = True
        for j in range(4):
            valid &= 0.0 <= theta[i, j] < np.inf
        if not valid:
            events[i] = 0
            out[i, :] = np.nan
            continue
        stream = open_stream(seed, first_row + np.uint64(i))
        events[i] = _simulate_row(
            theta[i], stream, start[0], start[1], interval, stop, max_events, out[i]
        )
