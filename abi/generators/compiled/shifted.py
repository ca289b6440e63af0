"""A flow of what a network leaves of rows: the noise, once the network has said their place."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from validation.threads import one_blas_thread

from .flow import ROWS, CompiledFlow
from .network import network_back, network_forth, one_after_another, places_of


class Shifted(nn.Module):
    """The law of rows less what a network gives, as one function of both their weights.

    Args:
        flow: a flow without a context, of :func:`~abi.generators.flow_network.build_flow`.
        network: affine maps with ReLU between them.
    """

    def __init__(self, flow: nn.Module, network: nn.Sequential):
        super().__init__()
        self.flow = CompiledFlow(flow)
        self._layouts = one_after_another(
            (part.out_features, part.in_features, None) for part in _affine(network)
        )
        self._layers = places_of(self._layouts)
        vector = nn.utils.parameters_to_vector(network.parameters()).detach()
        self.weights = nn.Parameter(vector)
        self._gradient = torch.empty_like(vector)

    @torch.no_grad()
    def log_prob(self, rows: Tensor, numbers: Tensor) -> Tensor:
        """Log densities of rows (n, k), given what the network sees (n, c), (n,)."""
        with one_blas_thread():
            places = [self._place(part)[0] for part in numbers.split(ROWS)]
        return self.flow.log_prob(rows - torch.cat(places), None)

    @torch.no_grad()
    def descend(self, rows: Tensor, numbers: Tensor) -> Tensor:
        """The mean of -log q of rows (n, k), of which all weights are left the gradient."""
        place, seen = self._place(numbers)
        values, known = self.flow.density(rows - place, None)
        shares = torch.full((len(rows),), -1.0 / len(rows))
        of_rest, _ = self.flow.gradients(known, shares, self.flow.gradient(), wanted=True)
        network_back(*seen, of_rest.neg_().numpy(), self._gradient.numpy(), True)
        self.weights.grad, self.flow.weights.grad = self._gradient, self.flow.gradient()
        return -values.mean()

    def _place(self, numbers: Tensor) -> tuple[Tensor, Any]:
        """What the network gives for numbers (n, c), (n, k), and what its way back is told."""
        place = torch.empty(len(numbers), self._layouts[-1].outputs)
        units = sum(part.outputs for part in self._layouts[:-1])
        hidden = np.empty(len(numbers) * units, np.float32)
        seen = self.weights.detach().numpy(), self._layers, numbers.contiguous().numpy(), hidden
        network_forth(*seen, place.numpy())
        return place, seen

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
