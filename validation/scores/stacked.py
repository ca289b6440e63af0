"""Networks of one architecture whose weights carry a leading axis m: output, gradients, steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from simulators.random import torch_generator


@dataclass(eq=False)
class Adam:
    """Adam over stacked networks: elementwise, so each network is trained as if alone."""

    parameters: list[Tensor]
    first: list[Tensor]
    second: list[Tensor]
    learning_rate: float
    steps: int = 0

    @staticmethod
    def start(parameters: list[Tensor], learning_rate: float) -> Adam:
        """No step done, all averages zero."""
        zeros = [torch.zeros_like(value) for value in parameters]
        return Adam(parameters, zeros, [zero.clone() for zero in zeros], learning_rate)

    def step(self, *gradients: Tensor) -> None:
        """Move every parameter, in place, by its gradient."""
        self.steps += 1
        rate = self.learning_rate / (1 - 0.9**self.steps)
        root = (1 - 0.999**self.steps) ** 0.5
        for value, m, v, gradient in zip(
            self.parameters, self.first, self.second, gradients, strict=True
        ):
            m.lerp_(gradient, 0.1)
            v.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            value.addcdiv_(m, v.sqrt().div_(root).add_(1e-8), value=-rate)

    def keep(self, networks: Tensor) -> Adam:
        """The same of some networks alone."""
        parameters, first, second = (
            [value[networks] for value in values]
            for values in (self.parameters, self.first, self.second)
        )
        return Adam(parameters, first, second, self.learning_rate, self.steps)


def forward(features: Tensor, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> Tensor:
    """Features (n, f) or (M, n, f) through M networks: (M, n, G)."""
    values = features if features.ndim == 3 else features.expand(len(weights[0]), *features.shape)
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        values = torch.baddbmm(bias, values if layer == 0 else functional.relu(values), weight)
    return values


class Backpropagation:
    """Gradients of the summed losses, in buffers that are used again at every step.

    No network's loss depends on another's weights, so the gradient of the sum holds each
    network's own. The steps are written out because the large arrays are what costs: allocated
    anew, as automatic differentiation does, they take longer than all matrix products together.
    """

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, int], Tensor] = {}

    def gradients(
        self, features: Tensor, labels: Tensor, parameters: list[Tensor]
    ) -> tuple[Tensor, ...]:
        """Of the mean cross-entropy: labels (M, B, G), features (B, f) or (M, B, f)."""
        half = len(parameters) // 2
        weights, biases = parameters[:half], parameters[half:]
        rows = labels.shape[:2]
        values = features if features.ndim == 3 else features.expand(rows[0], *features.shape)
        inputs = [values]
        for k in range(half):
            out = self._buffer("value", k, (*rows, weights[k].shape[2]), features)
            torch.baddbmm(biases[k], inputs[k], weights[k], out=out)
            inputs.append(out.relu_() if k < half - 1 else out)
        delta = inputs.pop().sigmoid_().sub_(labels).div_(labels[0].numel())
        found: list[Tensor] = [delta] * len(parameters)
        for k in reversed(range(half)):
            found[k] = torch.bmm(inputs[k].transpose(1, 2), delta)
            found[half + k] = delta.sum(dim=1, keepdim=True)
            if k > 0:
                back = self._buffer("delta", k, tuple(inputs[k].shape), features)
                torch.bmm(delta, weights[k].transpose(1, 2), out=back)
                # The sign of a rectified value is its derivative.
                delta = back.mul_(inputs[k].sign_())
        return tuple(found)

    def _buffer(self, name: str, layer: int, shape: tuple[int, ...], like: Tensor) -> Tensor:
        size = math.prod(shape)
        known = self._buffers.get((name, layer))
        if known is None or len(known) < size:
            known = self._buffers[name, layer] = like.new_empty(size)
        return known[:size].view(shape)


def initial_weights(layers: tuple[int, ...], num_inits: int, seed: int) -> list[Tensor]:
    """Glorot-uniform weights and biases, as scikit-learn draws them: all weights, then biases."""
    generator = torch_generator(seed)
    weights: list[Tensor] = []
    biases: list[Tensor] = []
    for fan_in, fan_out in pairwise(layers):
        bound = (6.0 / (fan_in + fan_out)) ** 0.5
        for shape, into in (((fan_in, fan_out), weights), ((1, fan_out), biases)):
            uniform = torch.rand((num_inits, *shape), generator=generator)
            into.append((2 * uniform - 1) * bound)
    return weights + biases
