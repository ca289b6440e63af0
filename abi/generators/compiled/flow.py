r"""A zuko spline flow as one function of its weights, theta and context, with its gradient.

With transforms T_t, t = 1 ... L, whose parameters phi_t networks give, and z_0 = theta,

    z_t = T(z_{t-1}; phi_t(z_{t-1}, c)),
    log q(theta | c) = log N(z_L; 0, I) + sum_t sum_j log |dT_j / dz_j|.

The gradient of all weights is one vector. The flow itself stays zuko's to the last object, for
users who export it; the copy takes its weights and gives them back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from zuko.nn import MaskedLinear
from zuko.transforms import MonotonicRQSTransform

from validation.threads import one_blas_thread

from .inverse import Ordered
from .network import Layer, Layout, Network, Seen
from .normal import log_normal
from .univariate import Affine, Spline, Univariate

ROWS = 1_000  # looked at together: what a network makes of more leaves the cache of a core


class CompiledFlow(nn.Module):
    """A float32 flow of :func:`~abi.generators.flow.build_flow`, on the CPU."""

    mask: Tensor

    def __init__(self, flow: nn.Module):
        super().__init__()
        self.transforms = [_Transform(part) for part in cast(Any, flow).transform.transforms]
        start = 0
        for transform in self.transforms:
            start = transform.place(start)
        vector, hidden = (torch.ones(start, dtype=torch.float32) for _ in range(2))
        for transform in self.transforms:
            transform.fill(vector, hidden)
        self.weights = nn.Parameter(vector * hidden)
        self.register_buffer("mask", hidden, persistent=False)
        self._gradient: Tensor | None = None
        self._ordered: tuple[Any, list[Ordered]] = (None, [])

    def log_prob(self, theta: Tensor, context: Tensor | None) -> Tensor:
        """Log densities at theta (n, d) -> (n,), context being (n, k), (k,), or None."""
        if torch.is_grad_enabled():
            seen = None if context is None else context.expand(len(theta), -1)
            value: Tensor = _Density.apply(theta, seen, self.weights, self)  # type: ignore[no-untyped-call]
            return value
        base, log_slope = self.to_base(theta, context)
        return log_slope + log_normal(base)

    @torch.no_grad()
    def descend(
        self, theta: Tensor, context: Tensor | None = None, shares: Tensor | None = None
    ) -> Tensor:
        """The mean of -log q at theta (n, d), of which the weights are left the gradient.

        Autograd would come to the same in a tenth more time. ``shares`` (n,) weigh the rows, and
        sum to 1.
        """
        shares = torch.full((len(theta),), 1.0 / len(theta)) if shares is None else shares
        value, known = forward(self, theta, context)
        backward(self, known, -shares, wanted=False)
        self.weights.grad = self.gradient().mul_(self.mask)
        return -(shares @ value)

    @torch.no_grad()
    def to_base(self, theta: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor]:
        """Where the flow maps theta (n, d) in its base, (n, d), and the log slope, (n,)."""
        with one_blas_thread():
            parts = [self._to_base(*part) for part in _parts(theta, context)]
        base, log_slope = zip(*parts, strict=True)
        return torch.cat(base), torch.cat(log_slope)

    @torch.no_grad()
    def from_base(self, base: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor]:
        """The theta (n, d) that :meth:`to_base` maps to these (n, d), and its log slope, (n,)."""
        steps = self._steps_back()
        with one_blas_thread():
            parts = [_back(steps, *part) for part in _parts(base, context)]
        theta, log_slope = zip(*parts, strict=True)
        return torch.cat(theta), torch.cat(log_slope)

    def write_to(self, flow: nn.Module) -> None:
        """Give a flow of the same form these weights."""
        parts = cast(Any, flow).transform.transforms
        weights = self.weights.detach()
        with torch.no_grad():
            for transform, part in zip(self.transforms, parts, strict=True):
                for target, source in transform.pairs(part, weights):
                    target.copy_(source)

    def gradient(self) -> Tensor:
        """Room for the gradient of all weights; used again and again."""
        if self._gradient is None:
            self._gradient = torch.empty_like(self.weights.detach())
        return self._gradient

    def _steps_back(self) -> list[Ordered]:
        """The transforms' units in order, sorted once as long as the weights stay as they are."""
        own = self.weights.detach()
        state = own.data_ptr(), own._version
        if self._ordered[0] != state:
            steps = [
                Ordered.of(part.univariate, part.layouts, part.layers(own), part.order)
                for part in self.transforms
            ]
            self._ordered = state, steps
        return self._ordered[1]

    def _to_base(self, theta: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor]:
        z, log_slope = theta.contiguous(), torch.zeros(len(theta), dtype=torch.float32)
        context = None if context is None else context.expand(len(z), -1)
        weights = self.weights.detach().numpy()
        for transform in self.transforms:
            raw, _ = transform.network.outputs(weights, _inputs(z, context))
            z, _ = transform.univariate.forward(z, raw, log_slope)
        return z, log_slope


def _back(steps: list[Ordered], z: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor]:
    """Through the transforms, the last one first."""
    log_slope = torch.zeros(len(z), dtype=torch.float32)
    for transform in reversed(steps):
        z = transform.inverse(z, context, log_slope)
    return z, log_slope


def _parts(theta: Tensor, context: Tensor | None) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Some rows of both at a time; the context may be one for all."""
    for start in range(0, max(1, len(theta)), ROWS):
        some = theta[start : start + ROWS]
        shared = context is None or context.ndim == 1
        yield some, context if shared else context[start : start + ROWS]  # type: ignore[index]


class _Transform:
    """One transform of a flow: what maps, and where the layers of its network lie."""

    def __init__(self, part: Any):
        self.univariate = _univariate(part)
        order = getattr(part, "order", None)
        self.order = [0] if order is None else order.tolist()
        self._sources = _linear(part)
        self.layouts: list[Layout] = []

    def place(self, start: int) -> int:
        """Say where the layers lie, from a first place on; the place after the last."""
        for weight, bias, mask in self._sources:
            self.layouts.append(Layout(start, len(bias), weight.shape[1], mask))
            start = self.layouts[-1].end
        self.network = Network(self.layouts)
        return start

    def layers(self, vector: Tensor) -> list[Layer]:
        """Those of its network, as views of a vector of all weights."""
        return [layout.view(vector) for layout in self.layouts]

    def fill(self, vector: Tensor, hidden: Tensor) -> None:
        """Copy the weights into a vector, and the masks into another."""
        for layout, (weight, bias, mask) in zip(self.layouts, self._sources, strict=True):
            layer = layout.view(vector)
            layer.weight.copy_(weight)
            layer.bias.copy_(bias)
            if mask is not None:
                layout.view(hidden).weight.copy_(mask)
        self._sources = []

    def pairs(self, part: Any, vector: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Zuko's own tensors beside the weights for them."""
        layers = self.layers(vector)
        if hasattr(part, "hyper"):
            both = zip(_affine_maps(part), layers, strict=True)
            return [pair for own, layer in both for pair in _of(own, layer)]
        sizes = [own.numel() for own in part.phi]
        values = layers[0].bias.split(sizes)
        return [(own, v.view_as(own)) for own, v in zip(part.phi, values, strict=True)]


def _of(own: Any, layer: Layer) -> list[tuple[Tensor, Tensor]]:
    return [(own.weight, layer.weight), (own.bias, layer.bias)]


def _univariate(part: Any) -> Univariate:
    splines = isinstance(part.univariate, partial) and part.univariate.func is MonotonicRQSTransform
    return Spline(part.shapes[0][0]) if splines else Affine()


def _linear(part: Any) -> list[tuple[Tensor, Tensor, Tensor | None]]:
    """Weights, biases and masks of a transform's network; one parameter alone has biases only."""
    if not hasattr(part, "hyper"):
        bias = torch.cat([values.detach().reshape(-1) for values in part.phi])
        return [(torch.empty(len(bias), 0), bias, None)]
    return [
        (layer.weight.detach(), layer.bias.detach(),
         layer.mask if isinstance(layer, MaskedLinear) else None)
        for layer in _affine_maps(part)
    ]  # fmt: skip


def _affine_maps(part: Any) -> list[Any]:
    return [layer for layer in part.hyper if hasattr(layer, "weight")]


class _Density(torch.autograd.Function):
    """Log densities (n,), and their first derivatives by theta, context and weights."""

    @staticmethod
    def forward(
        ctx: Any, theta: Tensor, context: Tensor | None, weights: Tensor, flow: CompiledFlow
    ) -> Tensor:
        seen_x = None if context is None else context.detach()
        value, ctx.known = forward(flow, theta.detach(), seen_x)
        ctx.flow = flow
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_value: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor, None]:
        flow: CompiledFlow = ctx.flow
        wanted = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        of_z, of_context = backward(flow, ctx.known, of_value.contiguous(), wanted=wanted)
        return of_z, of_context if ctx.known.width else None, flow.gradient() * flow.mask, None


@dataclass(frozen=True, eq=False)
class _Known:
    """What a pass through the transforms leaves for the way back.

    Attributes:
        end: where theta came to in the base, (n, d).
        width: of the context.
        steps: of each transform, what its network saw, and what its splines keep.
    """

    end: Tensor
    width: int
    steps: list[tuple[Seen, Any]]


def forward(flow: CompiledFlow, theta: Tensor, context: Tensor | None) -> tuple[Tensor, _Known]:
    """Log densities at theta (n, d), (n,)."""
    z, value, steps = theta.contiguous(), torch.zeros(len(theta), dtype=torch.float32), []
    weights = flow.weights.detach().numpy()
    for transform in flow.transforms:
        raw, seen = transform.network.outputs(weights, _inputs(z, context))
        z, bends = transform.univariate.forward(z, raw, value)
        steps.append((seen, bends))
    value += log_normal(z)
    return value, _Known(z, 0 if context is None else context.shape[1], steps)


def backward(
    flow: CompiledFlow, known: _Known, of_value: Tensor, *, wanted: bool
) -> tuple[Tensor, Tensor | None]:
    """Write the weights' gradient where the flow has room for it; those of theta and context.

    Args:
        flow: that came forward.
        known: from there.
        of_value: gradient of the log densities, (n,).
        wanted: whether anybody asks for the gradients of theta and context.
    """
    weights, into = flow.weights.detach().numpy(), flow.gradient().numpy()
    of_z = -known.end * of_value[:, None]
    of_context = of_z.new_zeros(len(of_z), known.width) if wanted else None
    for t in range(len(flow.transforms) - 1, -1, -1):
        (seen, bends), transform = known.steps[t], flow.transforms[t]
        of_z, of_raw = transform.univariate.backward(bends, of_z, of_value)
        first = t == 0 and not wanted
        of_inputs = transform.network.gradients(weights, seen, of_raw, into, first=first)
        if of_inputs is not None:
            dim = of_inputs.shape[1] - known.width
            of_z[:, :dim] += of_inputs[:, :dim]
            if of_context is not None:
                of_context += of_inputs[:, dim:]
    return of_z, of_context


def _inputs(z: Tensor, context: Tensor | None) -> Tensor:
    """What a network sees: theta and context; a single parameter sees the context alone."""
    alone = z.shape[1] == 1
    if context is None:
        return z[:, :0] if alone else z
    return context.contiguous() if alone else torch.cat([z, context], dim=1)
