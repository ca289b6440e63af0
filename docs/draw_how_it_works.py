"""Draw a fit as it goes: the parameters of each round, and the answer beside the exact posterior.

python docs/draw_how_it_works.py docs/_static/how_it_works.png
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import torch
from torch import Tensor

import abi
from simulators import TwoMoons, from_function

BLUE, GREY, ORANGE = "#0072B2", "0.8", "#D55E00"
task = TwoMoons()
simulated: list[Tensor] = []


def two_moons(theta: Tensor) -> Tensor:
    """The model, which also notes what it was asked for."""
    simulated.append(theta)
    return task(theta)


def main(path: str) -> None:
    """Fit two moons with 4,000 calls and draw three of its rounds, its check pairs, its answer."""
    noting = from_function(two_moons, task.prior, batched=True)
    posterior = abi.fit(task.prior, noting, task.observation, num_simulations=4_000, progress=False)
    calls = [0, *(record.simulator_calls for record in posterior.rounds)]
    parts = torch.cat(simulated).split([*calls[1:], sum(map(len, simulated)) - sum(calls)])
    shown = [
        (f"round 1: {calls[1]:,} calls\nfrom the whole prior", parts[0], GREY),
        (f"round 2: {calls[2]:,} calls\nfrom the prior inside a region", parts[1], GREY),
        (f"round {len(calls) - 1}: {calls[-1]:,} calls\nfrom a smaller region", parts[-2], GREY),
        (f"check pairs: {len(parts[-1])} calls\nthat no network saw", parts[-1], ORANGE),
        ("the answer, in blue;\nexact draws in black", posterior.sample((1_000,)), BLUE),
    ]
    figure, axes = plt.subplots(
        1, len(shown), figsize=(12, 3), sharex=True, sharey=True, layout="constrained"
    )
    exact = task.reference_posterior(task.observation, 1_000)
    for axis, (title, theta, colour) in zip(axes, shown, strict=True):
        axis.scatter(*theta.T, s=4, color=colour, linewidths=0)
        if colour == BLUE:
            axis.scatter(*exact[:300].T, s=2, color="black", linewidths=0)
        axis.set(title=title, xlabel="theta_1", aspect="equal")
        axis.title.set_size("medium")
    axes[0].set_ylabel("theta_2")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(*sys.argv[1:])
