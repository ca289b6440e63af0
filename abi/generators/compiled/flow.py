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

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from zuko.nn import MaskedLinear
from zuko.transforms import MonotonicRQSTransform

from validation.threads import one_blas_thread

from . import passes
from .inverse import Ordered
from .network import Layer, Layout, one_after_another, places_of

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
        self._form = _form(self.transforms)
        each = self._form[1][:, 3]  # numbers that a row leaves behind, in all and at most
        self._each, self._most = int(each.sum()), int(each.max(initial=0))
        self._gradient: Tensor | None = None
        self._ordered: tuple[Any, list[Ordered]] = (None, [])

    def log_prob(self, theta: Tensor, context: Tensor | None) -> Tensor:
        """Log densities at theta (n, d) -> (n,), context being (n, k), (k,), or None."""
        if torch.is_grad_enabled():
            seen = None if context is None else context.expand(len(theta), -1)
            value: Tensor = _Density.apply(theta, seen, self.weights, self)  # type: ignore[no-untyped-call]
            return value
        base, values = self.to_base(theta, context)
        passes.add_log_normal(base.numpy(), values.numpy())
        return values

    @torch.no_grad()
    def descend(
        self, theta: Tensor, context: Tensor | None = None, shares: Tensor | None = None
    ) -> Tensor:
        """The mean of -log q at theta (n, d), of which the weights are left the gradient.

        ``shares`` (n,) weigh the rows, and sum to 1.
        """
        shares = torch.full((len(theta),), 1.0 / len(theta)) if shares is None else shares
        values, known = self.density(theta, context)
        self.gradients(known, -shares, self.gradient(), wanted=False)
        self.weights.grad = self.gradient()
        return -(shares @ values)

    @torch.no_grad()
    def to_base(self, theta: Tensor, context: Tensor | None) -> tuple[Tensor, Tensor]:
        """Where the flow maps theta (n, d) in its base, (n, d), and the log slope, (n,)."""
        log_slope = torch.zeros(len(theta), dtype=torch.float32)
        room = np.empty(self._most * min(ROWS, len(theta)), np.float32)
        with one_blas_thread():
            base = [
                passes.forth(*self._told(), _plain(some), _seen(given), room, False, sums.numpy())
                for (some, given), sums in zip(
                    _parts(theta, context), log_slope.split(ROWS), strict=True
                )
            ]
        return torch.from_numpy(np.concatenate(base)), log_slope

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

    def density(self, theta: Tensor, context: Tensor | None) -> tuple[Tensor, Known]:
        """Log densities at theta (n, d), (n,), and what :meth:`gradients` wants to know."""
        values = torch.zeros(len(theta), dtype=torch.float32)
        room = np.empty(self._each * len(theta), np.float32)
        given = _plain(theta), _seen(context)
        base = passes.forth(*self._told(), *given, room, True, values.numpy())
        passes.add_log_normal(base, values.numpy())
        return values, Known(room, base, given[1].shape[1])

    def gradients(
        self, known: Known, of_values: Tensor, into: Tensor, *, wanted: bool
    ) -> tuple[Tensor, Tensor]:
        """Those of theta, (n, d), and of the context, (n, k), given those of the densities, (n,).

        Args:
            known: from :meth:`density`.
            of_values: gradient of what it gave.
            into: filled with the gradient of all weights.
            wanted: whether anybody asks for the two; the context's has no columns if not.
        """
        asked = known.room, known.base, _plain(of_values), known.width, wanted
        found = passes.back(*self._told(), self.mask.numpy(), *asked, into.numpy())
        return torch.from_numpy(found[0]), torch.from_numpy(found[1])

    def _told(self) -> tuple[Any, Any, Any]:
        """The vector of all weights, and the form that makes a flow of them, for :mod:`.passes`."""
        return self.weights.detach().numpy(), *self._form

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
                Ordered.of(part.bins, part.layouts, part.layers(own), part.order)
                for part in self.transforms
            ]
            self._ordered = state, steps
        return self._ordered[1]


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
        self.bins = _bins(part)
        order = getattr(part, "order", None)
        self.order = [0] if order is None else order.tolist()
        self._sources = _linear(part)
        self.layouts: list[Layout] = []

    def place(self, start: int) -> int:
        """Say where the layers lie, from a first place on; the place after the last."""
        layers = [(len(bias), weight.shape[1], mask) for weight, bias, mask in self._sources]
        self.layouts = one_after_another(layers, start)
        return self.layouts[-1].end

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


def _bins(part: Any) -> int:
    """Of a transform's splines; 0 of affine maps."""
    splines = isinstance(part.univariate, partial) and part.univariate.func is MonotonicRQSTransform
    return int(part.shapes[0][0]) if splines else 0


def _form(transforms: list[_Transform]) -> tuple[Any, Any]:
    """The layers and the parts of a flow, as :mod:`.passes` is told them."""
    layouts: list[Layout] = []
    parts = []
    for transform in transforms:
        first = len(layouts)
        layouts += transform.layouts
        each = passes.left_behind(len(transform.order), transform.layouts, transform.bins)
        parts.append((first, len(layouts), transform.bins, each))
    return places_of(layouts), np.array(parts, np.int64).reshape(-1, 4)


def _plain(values: Tensor) -> Any:
    """Values as compiled code takes them."""
    return values.detach().contiguous().numpy()


def _seen(context: Tensor | None) -> Any:
    """The context as compiled code takes it: (n, k), or (1, k) for all rows; k is 0 of none."""
    if context is None:
        return np.empty((1, 0), np.float32)
    return _plain(context if context.ndim > 1 else context[None])


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


@dataclass(frozen=True, eq=False)
class Known:
    """What a pass through the transforms leaves for the way back: see :mod:`.passes`."""

    room: Any
    base: Any
    width: int


class _Density(torch.autograd.Function):
    """Log densities (n,), and their first derivatives by theta, context and weights."""

    @staticmethod
    def forward(
        ctx: Any, theta: Tensor, context: Tensor | None, weights: Tensor, flow: CompiledFlow
    ) -> Tensor:
        values, ctx.known = flow.density(theta, context)
        ctx.flow = flow
        return values

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_value: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor, None]:
        wanted = ctx.needs_input_grad[0] or ctx.needs_input_grad[1]
        into = torch.empty_like(ctx.flow.mask)
        of_z, of_context = ctx.flow.gradients(ctx.known, of_value, into, wanted=wanted)
        return of_z, of_context if of_context.shape[1] else None, into, None
