"""What compiled flows save: a training step, log densities, draws, in CPU milliseconds beside zuko.

    python examples/benchmarks/abi_flows.py       a minute of one core

A step is forward, backward, clipping and AdamW on a batch of the default size, a flow of the
default size given ten features. Log densities and draws are 4,000 at one x. Each figure is the
fastest of several blocks, zuko and compiled in turn, for other work on the machine only adds to it.
Kept in abi_flows.json.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from measure import fastest, save, versions
from torch import Tensor, nn

from abi import ABIConfig
from abi.generators.compiled.flow import CompiledFlow
from abi.generators.flow_network import build_flow
from abi.training.averaged import AveragedAdamW

DIMENSIONS = (1, 3, 5, 20)
FEATURES, ROWS, BLOCKS = 10, 4_000, 12


def zuko_step(flow: Any, theta: Tensor, context: Tensor) -> Callable[[], None]:
    """One step of training on one batch, by zuko and torch's own optimiser."""
    optimiser = torch.optim.AdamW(flow.parameters(), lr=1e-4, fused=True)

    def step() -> None:
        optimiser.zero_grad()
        (-flow(context).log_prob(theta).mean()).backward()
        nn.utils.clip_grad_norm_(flow.parameters(), 5.0)
        optimiser.step()

    return step


def compiled_step(flow: CompiledFlow, theta: Tensor, context: Tensor) -> Callable[[], None]:
    """The same of the compiled flow."""
    optimiser = AveragedAdamW(flow, 1e-4, 0.01, 1_000_000)

    def step() -> None:
        optimiser.zero_grad()
        (-flow.log_prob(theta, context).mean()).backward()
        optimiser.step()

    return step


@torch.no_grad()
def zuko_draws(flow: Any, base: Tensor, context: Tensor) -> None:
    """Draws from draws of the base."""
    flow(context).transform.inv(base)


@torch.no_grad()
def zuko_densities(flow: Any, theta: Tensor, context: Tensor) -> None:
    """Log densities at one x."""
    flow(context).log_prob(theta)


@torch.no_grad()
def compiled_densities(flow: CompiledFlow, theta: Tensor, context: Tensor) -> None:
    """The same of the compiled flow."""
    flow.log_prob(theta, context)


def compiled_draws(flow: CompiledFlow, base: Tensor, context: Tensor) -> None:
    """Draws from draws of the base, by the compiled flow."""
    flow.from_base(base, context)


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
    size = ABIConfig().generator_training.batch_size
    rows = []
    for theta_dim in DIMENSIONS:
        flow = build_flow(theta_dim, FEATURES, ABIConfig().flow, seed=0)
        quick = CompiledFlow(flow)
        batch = torch.randn(size, theta_dim), torch.randn(size, FEATURES)
        many = torch.randn(ROWS, theta_dim), torch.randn(FEATURES)
        works: dict[str, tuple[Callable[[], None], Callable[[], None], int]] = {
            "training step": (zuko_step(flow, *batch), compiled_step(quick, *batch), 20),
            "4,000 log densities": (
                partial(zuko_densities, flow, *many), partial(compiled_densities, quick, *many), 5
            ),
            "4,000 draws": (
                partial(zuko_draws, flow, *many), partial(compiled_draws, quick, *many), 2
            ),
        }  # fmt: skip
        for what, (theirs, ours, number) in works.items():
            runs = {"zuko": times(theirs, number), "compiled": times(ours, number)}
            found = fastest(runs, BLOCKS)
            ms = {name: round(1e3 * seconds / number, 2) for name, seconds in found.items()}
            gain = round(found["zuko"] / found["compiled"], 2)
            rows.append({"theta_dim": theta_dim, "what": what, "ms": ms, "times as fast": gain})
    save(__file__, {"versions": versions("torch", "zuko", "numba"), "rows": rows})


if __name__ == "__main__":
    main()
