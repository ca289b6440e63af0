r"""The curvature of NPTBench's second family: ``theta = A sin(B theta~ + b) + a``.

A and B are two fixed linear layers, s -> 128 -> s, with torch's default initial weights (Chen,
Bansal & Scott 2025, Appendix C.5). In the main text they are a d x d and a d x s matrix; the
appendix, which describes the code, is followed here, biases included.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from simulators.random import child_seed, torch_generator

_HIDDEN = 128


def sine_map(width: int, seed: int) -> Callable[[Tensor], Tensor]:
    """The map R^width -> R^width with weights drawn at ``seed``."""
    generator = torch_generator(child_seed(seed, 1))

    def layer(inputs: int, outputs: int) -> tuple[Tensor, Tensor]:
        # torch.nn.Linear's own law: uniform within 1 / sqrt(inputs), weights and biases alike.
        bound = inputs**-0.5
        drawn = (2 * torch.rand(outputs, inputs + 1, generator=generator) - 1) * bound
        return drawn[:, :-1], drawn[:, -1]

    b_weight, b_bias = layer(width, _HIDDEN)
    a_weight, a_bias = layer(_HIDDEN, width)
    return lambda latent: torch.sin(latent @ b_weight.T + b_bias) @ a_weight.T + a_bias
