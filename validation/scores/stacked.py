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
        inputs = values if layer == 0 else values.relu_()
        values = _through(inputs, weight, bias, values.new_empty(*inputs.shape[:2], bias.shape[2]))
    return values


def _through(inputs: Tensor, weight: Tensor, bias: Tensor, out: Tensor) -> Tensor:
    """One layer, (M, n, in) to (M, n, out), written into ``out``.

    A layer of one output is a product with a vector; as a row it takes a third of the time that
    it takes as a column, here and for its gradient.
    """
    if weight.shape[2] > 1:
        return torch.baddbmm(bias, inputs, weight, out=out)
    row = out.view(len(out), 1, -1)
    torch.baddbmm(bias, weight.transpose(1, 2), inputs.transpose(1, 2), out=row)
    return out


def _weight_gradient(inputs: Tensor, delta: Tensor) -> Tensor:
    """Of a layer's weights (M, in, out), by its inputs and the gradient of its outputs."""
    if delta.shape[2] > 1:
        return torch.bmm(inputs.transpose(1, 2), delta)
    return torch.bmm(delta.transpose(1, 2), inputs).transpose(1, 2)


def _input_gradient(delta: Tensor, weight: Tensor, out: Tensor) -> Tensor:
    """Of a layer's inputs (M, n, in), written into ``out``."""
    one_output = delta.shape[2] == 1
    return (torch.mul if one_output else torch.bmm)(delta, weight.transpose(1, 2), out=out)


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
            _through(inputs[k], weights[k], biases[k], out)
            inputs.append(out.relu_() if k < half - 1 else out)
        delta = inputs.pop().sigmoid_().sub_(labels).div_(labels[0].numel())
        found: list[Tensor] = [delta] * len(parameters)
        for k in reversed(range(half)):
            found[k] = _weight_gradient(inputs[k], delta)
            found[half + k] = delta.sum(dim=1, keepdim=True)
            if k > 0:
                back = self._buffer("delta", k, tuple(inputs[k].shape), features)
                # The sign of a rectified value is its derivative.
                delta = _input_gradient(delta, weights[k], back).mul_(inputs[k].sign_())
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


def even_widths(parameters: Sequence[Tensor]) -> list[Tensor]:
    """The same networks, with units of weight 0 until a hidden layer's width is a multiple of 4.

    Such a unit gives 0 and has gradient 0, so it stays as it is; products of odd widths take up to
    twice the time.
    """
    half = len(parameters) // 2
    more = [-value.shape[2] % 4 for value in parameters[: half - 1]]
    before, after = [0, *more], [*more, 0]
    return [
        functional.pad(value, (0, after[k % half], 0, before[k] if k < half else 0))
        for k, value in enumerate(parameters)
    ]
