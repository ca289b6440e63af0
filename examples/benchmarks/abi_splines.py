"""What compiled splines save: a training step and log densities, in CPU milliseconds beside zuko.

    python examples/benchmarks/abi_splines.py       half a minute of one core

A step is forward, backward, clipping and AdamW on a batch of the default size, a flow of the
default size given ten features. Log densities are of 4,000 theta at one x. Each figure is the
fastest of several blocks, zuko and compiled in turn, for other work on the machine only adds to it.
Kept in abi_splines.json.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from measure import fastest, save, versions
from torch import nn

from abi import ABIConfig
from abi.generators.flow import build_flow
from abi.generators.splines import quickened

DIMENSIONS = (1, 3, 5, 20)
FEATURES, ROWS, BLOCKS = 10, 4_000, 12


def step_of(flow: nn.Module, theta_dim: int) -> Callable[[], None]:
    """One step of training on one batch."""
    settings = ABIConfig().generator_training
    optimiser = torch.optim.AdamW(flow.parameters(), lr=1e-4, fused=True)
    theta = torch.randn(settings.batch_size, theta_dim)
    context = torch.randn(settings.batch_size, FEATURES)

    def step() -> None:
        optimiser.zero_grad()
        (-flow(context).log_prob(theta).mean()).backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimiser.step()

    return step


def densities_of(flow: Any, theta_dim: int) -> Callable[[], None]:
    """Log densities at one x."""
    theta, context = torch.randn(ROWS, theta_dim), torch.randn(FEATURES)

    def densities() -> None:
        with torch.no_grad():
            flow(context).log_prob(theta)

    return densities


def times(work: Callable[[], None], number: int) -> Callable[[int], None]:
    """So many of them, after one that warms up."""
    work()

    def repeated(_: int) -> None:
        for _ in range(number):
            work()

    return repeated


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rows = []
    for theta_dim in DIMENSIONS:
        flow = build_flow(theta_dim, FEATURES, ABIConfig().flow, seed=0)
        flows = {"zuko": flow, "compiled": quickened(flow)}
        for what, make, number in (
            ("training step", step_of, 20),
            ("4,000 log densities", densities_of, 5),
        ):
            runs = {name: times(make(one, theta_dim), number) for name, one in flows.items()}
            found = fastest(runs, BLOCKS)
            ms = {name: round(1e3 * seconds / number, 2) for name, seconds in found.items()}
            gain = round(found["zuko"] / found["compiled"], 2)
            rows.append({"theta_dim": theta_dim, "what": what, "ms": ms, "times as fast": gain})
    save(__file__, {"versions": versions("torch", "zuko", "numba"), "rows": rows})


if __name__ == "__main__":
    main()
