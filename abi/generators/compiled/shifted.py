"""A flow of what a network leaves of rows: the noise, once the network has said their place."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from validation.threads import one_blas_thread

from .flow import ROWS, CompiledFlow, backward, forward
from .network import Layout, Network


class Shifted(nn.Module):
    """The law of rows less what a network gives, as one function of both their weights.

    Args:
        flow: a flow without a context, of :func:`~abi.generators.flow_network.build_flow`.
        network: affine maps with ReLU between them.
    """

    def __init__(self, flow: nn.Module, network: nn.Sequential):
        super().__init__()
        self.flow = CompiledFlow(flow)
        self._layouts: list[Layout] = []
        for part in _affine(network):
            start = self._layouts[-1].end if self._layouts else 0
            self._layouts.append(Layout(start, part.out_features, part.in_features, None))
        self._network = Network(self._layouts)
        vector = nn.utils.parameters_to_vector(network.parameters()).detach()
        self.weights = nn.Parameter(vector)
        self._gradient = torch.empty_like(vector)

    @torch.no_grad()
    def log_prob(self, rows: Tensor, numbers: Tensor) -> Tensor:
        """Log densities of rows (n, k), given what the network sees (n, c), (n,)."""
        weights = self.weights.detach().numpy()
        with one_blas_thread():
            parts = [
                self._network.outputs(weights, part.contiguous())[0] for part in numbers.split(ROWS)
            ]
        return self.flow.log_prob(rows - torch.cat(parts), None)

    @torch.no_grad()
    def descend(self, rows: Tensor, numbers: Tensor) -> Tensor:
        """The mean of -log q of rows (n, k), of which all weights are left the gradient."""
        weights = self.weights.detach().numpy()
        place, seen = self._network.outputs(weights, numbers.contiguous())
        value, known = forward(self.flow, rows - place, None)
        shares = torch.full((len(rows),), -1.0 / len(rows))
        of_rest, _ = backward(self.flow, known, shares, wanted=True)
        into: Any = self._gradient.numpy()
        self._network.gradients(weights, seen, of_rest.neg_(), into, first=True)
        self.weights.grad = self._gradient
        self.flow.weights.grad = self.flow.gradient().mul_(self.flow.mask)
        return -value.mean()

    @torch.no_grad()
    def write_to(self, flow: nn.Module, network: nn.Sequential) -> None:
        """Give a flow and a network of the same forms these weights."""
        self.flow.write_to(flow)
        for part, layout in zip(_affine(network), self._layouts, strict=True):
            layer = layout.view(self.weights.detach())
            part.weight.copy_(layer.weight)
            part.bias.copy_(layer.bias)


def _affine(network: nn.Sequential) -> list[nn.Linear]:
    return [part for part in network if isinstance(part, nn.Linear)]
