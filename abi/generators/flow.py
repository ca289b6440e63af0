"""A neural spline flow on the prior's support, with or without a context.

Draws are mapped to the real line by the support, standardised, and given to a zuko flow trained by
maximum likelihood. With a context c, the flow is conditional, theta | c, and the model is read at
one context, that of x_o.

Source: Durkan et al. (2019), "Neural spline flows"; zuko's implementation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from simulators.random import child_seed, isolated_rng

from ..support import Support
from ..training import TrainingLog, TrainingSettings, train
from .base import GeneratorState, Progress


@dataclass(frozen=True)
class FlowSettings:
    """Size of the flow."""

    num_transforms: int = 3
    hidden: tuple[int, ...] = (64, 64)
    num_bins: int = 8


@dataclass(frozen=True, eq=False)
class FlowModel:
    """A fitted flow; with ``context`` (c,) the conditional flow read there."""

    flow: nn.Module
    support: Support
    center: Tensor
    scale: Tensor
    context: Tensor | None
    settings: FlowSettings

    @torch.no_grad()
    def sample(self, num_samples: int, seed: int) -> Tensor:
        """Draw (num_samples, d)."""
        with isolated_rng(seed):
            z = self.flow(self.context).sample((num_samples,))
        return self.support.from_real(z * self.scale + self.center)

    @torch.no_grad()
    def log_prob(self, theta: Tensor) -> Tensor:
        """Log density at theta (n, d) -> (n,), -inf outside the support."""
        out = torch.full((len(theta),), -torch.inf)
        inside = self.support.contains(theta)
        if not inside.any():  # zuko refuses empty batches
            return out
        z = self.support.to_real(theta[inside])
        standard = (z - self.center) / self.scale
        value = self.flow(self.context).log_prob(standard) - torch.log(self.scale).sum()
        out[inside] = value - self.support.log_jacobian(z)
        return out

    def state(self) -> GeneratorState:
        """Weights, scaling, support and context."""
        tensors = {f"flow.{name}": value for name, value in self.flow.state_dict().items()}
        tensors |= {"center": self.center, "scale": self.scale}
        tensors |= {"lower": self.support.lower, "upper": self.support.upper}
        if self.context is not None:
            tensors["context"] = self.context
        values = {
            "num_transforms": self.settings.num_transforms,
            "hidden": list(self.settings.hidden),
            "num_bins": self.settings.num_bins,
        }
        return GeneratorState("flow", tensors, values)


def fit_flow(
    theta: Tensor,
    support: Support,
    *,
    settings: FlowSettings,
    training: TrainingSettings,
    seed: int,
    context: Tensor | None = None,
    at: Tensor | None = None,
    on_epoch: Progress | None = None,
) -> tuple[FlowModel, TrainingLog]:
    """Fit a flow to theta (n, d), or to theta given ``context`` (n, c), read at ``at`` (c,)."""
    z = support.to_real(theta)
    center, scale = z.mean(dim=0), z.std(dim=0).clamp(min=1e-6)
    standard = (z - center) / scale
    width = 0 if context is None else context.shape[1]
    flow = _build(theta.shape[1], width, settings, child_seed(seed, 0))

    def loss(rows: Tensor, *contexts: Tensor) -> Tensor:
        value: Tensor = -flow(*(contexts or (None,))).log_prob(rows).mean()
        return value

    data = (standard,) if context is None else (standard, context)
    log = train(flow, loss, data, training, child_seed(seed, 1), on_epoch)
    return FlowModel(flow, support, center, scale, at, settings), log


def restore_flow(state: GeneratorState) -> FlowModel:
    """The model behind a state."""
    values: dict[str, Any] = state.values
    settings = FlowSettings(values["num_transforms"], tuple(values["hidden"]), values["num_bins"])
    tensors = state.tensors
    context = tensors.get("context")
    width = 0 if context is None else len(context)
    flow = _build(len(tensors["center"]), width, settings, seed=0)
    weights = {name[5:]: value for name, value in tensors.items() if name.startswith("flow.")}
    flow.load_state_dict(weights)
    flow.eval()
    support = Support(tensors["lower"], tensors["upper"])
    return FlowModel(flow, support, tensors["center"], tensors["scale"], context, settings)


def _build(theta_dim: int, context_dim: int, settings: FlowSettings, seed: int) -> nn.Module:
    import zuko

    with isolated_rng(seed):
        flow: nn.Module = zuko.flows.NSF(
            features=theta_dim,
            context=context_dim,
            transforms=settings.num_transforms,
            hidden_features=settings.hidden,
            bins=settings.num_bins,
        )
    return flow
