r"""The networks that give the transforms their parameters: masked matrices with ReLU between them.

Of theta (n, d) in some order, the parameters of the i-th see those before it and the context alone
(Papamakarios et al. 2017). The weights of all layers lie in one vector, and so do their gradients:
an optimiser's step is one operation. Weights that a mask hides are 0, and stay so.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from . import products
from .kernels import relu_gradient


@dataclass(frozen=True, eq=False)
class Layer:
    """One affine map: ``weight`` (a, b) and ``bias`` (a,), views of a vector of all weights.

    Without inputs, as of a single parameter that sees nothing, b is 0.
    """

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True, eq=False)
class Layout:
    """Where a layer lies among all weights: its first place and its widths; and its mask."""

    start: int
    outputs: int
    inputs: int
    mask: Tensor | None

    @property
    def end(self) -> int:
        """The place after its last."""
        return self.start + self.outputs * (self.inputs + 1)

    def view(self, vector: Tensor) -> Layer:
        """The layer in a vector of all weights, or of their gradients."""
        middle = self.start + self.outputs * self.inputs
        weight = vector[self.start : middle].view(self.outputs, self.inputs)
        return Layer(weight, vector[middle : self.end])


def outputs_of(layers: list[Layer], inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
    """What a network gives (n, a), and the inputs of each of its layers."""
    seen = [inputs]
    for layer in layers[:-1]:
        seen.append(products.layer(seen[-1], layer.weight, layer.bias, relu=True))
    return products.layer(seen[-1], layers[-1].weight, layers[-1].bias, relu=False), seen


def gradients_of(
    layers: list[Layer], seen: list[Tensor], of_outputs: Tensor, into: list[Layer], *, first: bool
) -> Tensor | None:
    """Write the weights' gradients ``into`` layers; of the inputs (n, b), where not the ``first``.

    Args:
        layers: of the network.
        seen: the inputs of each.
        of_outputs: gradient of what the network gave.
        into: layers that are views of the gradient of all weights.
        first: nobody asks for the gradient of the inputs.
    """
    for place in range(len(layers) - 1, -1, -1):
        products.of_weight(of_outputs, seen[place], into[place].weight)
        torch.sum(of_outputs, dim=0, out=into[place].bias)
        if place == 0 and first:
            return None
        of_outputs = products.of_inputs(of_outputs, layers[place].weight)
        if place:
            relu_gradient(seen[place].numpy(), of_outputs.numpy())
    return of_outputs
