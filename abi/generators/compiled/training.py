"""What trains: the compiled flow on the CPU, zuko's own on another device."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from zuko.nn import MaskedLinear

from .flow import CompiledFlow


class DeviceFlow(nn.Module):
    """A copy of zuko's flow for another device than the CPU.

    Masks are of the weights' own type, or each product would convert them.
    """

    def __init__(self, flow: nn.Module):
        super().__init__()
        self.flow: Any = copy.deepcopy(flow)
        for part in self.flow.modules():
            if isinstance(part, MaskedLinear):
                part.mask = part.mask.to(part.weight.dtype)

    def log_prob(self, theta: Tensor, context: Tensor | None) -> Tensor:
        """Log densities at theta (n, d) -> (n,), given a context (n, k) or None."""
        value: Tensor = self.flow(context).log_prob(theta)
        return value

    def descend(
        self, theta: Tensor, context: Tensor | None = None, shares: Tensor | None = None
    ) -> Tensor:
        """The mean of -log q, as that of :class:`~.flow.CompiledFlow`, by autograd."""
        log_density = self.log_prob(theta, context)
        value = -(log_density.mean() if shares is None else (log_density * shares).sum())
        value.backward()
        return value.detach()

    def write_to(self, flow: nn.Module) -> None:
        """Give a flow of the same form these weights."""
        flow.load_state_dict(self.flow.state_dict())


def trainable(flow: nn.Module, device: str) -> CompiledFlow | DeviceFlow:
    """A copy of a float32 flow that is quick to train on a device, and gives its weights back."""
    on_cpu = torch.device(device).type == "cpu"
    return CompiledFlow(flow) if on_cpu else DeviceFlow(flow)
