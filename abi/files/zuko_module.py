r"""A fitted generator as a zuko flow on theta itself: support, units and network in one module.

The generators live on the real line, in units of the accepted draws. As one map from theta to the
base,

    z = S(theta),   u = R^-1 (z - m),   b = T(u),   b ~ base,
    log q(theta) = log base(b) + log |det dT/du| - log |det R| + log |det dS/dtheta|,

with S the support's map to the real line (:mod:`abi.generators.support`), m and R the trend at x_o
(:mod:`abi.generators.trend`), T the spline flow. Outside the support the density is zero. A
conditional flow is read at x_o, whose context becomes a buffer of the module. Flows pooled with a
likelihood (:mod:`abi.generators.pool.model`) are a distribution, but no map of a base: they stay as
they are.
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch
import zuko
from torch import Tensor, nn
from torch.distributions import (
    Categorical,
    Distribution,
    MixtureSameFamily,
    MultivariateNormal,
    constraints,
)
from torch.distributions.transforms import Transform

from ..generators.flow import FlowModel, random_shares
from ..generators.mixture import MixtureModel
from ..generators.pool.model import PooledFlows
from ..generators.support import Support
from ..generators.trend import Trend

if TYPE_CHECKING:
    from ..generators.base import GenerativeModel


class StandardTransform(Transform):
    """theta in a box to u in the whole space; the log-density outside the box is -inf."""

    domain = constraints.real_vector
    codomain = constraints.real_vector
    bijective = True

    def __init__(self, lower: Tensor, upper: Tensor, center: Tensor, root: Tensor) -> None:
        super().__init__()
        self.support = Support(lower, upper)
        self.trend = Trend(center, root)

    def _call(self, x: Tensor) -> Tensor:
        z = self.support.to_real(x.reshape(-1, x.shape[-1]))
        return self.trend.to_rest(z, None).reshape(x.shape)

    def _inverse(self, y: Tensor) -> Tensor:
        z = self.trend.from_rest(y.reshape(-1, y.shape[-1]), None)
        return self.support.from_real(z).reshape(y.shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Log |det du / dtheta| for theta (..., d): (...)."""
        z = self.trend.from_rest(y.reshape(-1, y.shape[-1]), None)
        inside = self.support.contains(x.reshape(-1, x.shape[-1]))
        value = -self.support.log_jacobian(z) - self.trend.log_scale
        return torch.where(inside, value, -torch.inf).reshape(y.shape[:-1])


class AtContext(nn.Module):
    """A part of a conditional flow, read at one context."""

    def __init__(self, part: nn.Module, context: Tensor) -> None:
        super().__init__()
        self.part = part
        self.register_buffer("context", context)

    def forward(self, c: Tensor | None = None) -> Any:
        """The part at the context it was made with; ``c`` is ignored."""
        return self.part(self.context)


def as_zuko(model: GenerativeModel) -> nn.Module:
    """A zuko ``Flow`` over theta; see :meth:`ABIPosterior.to_zuko`."""
    if isinstance(model, PooledFlows):
        return _Pool(model)
    if isinstance(model, FlowModel):
        return _flow(model)
    if isinstance(model, MixtureModel):
        return _mixture(model)
    raise NotImplementedError(
        f"`to_zuko` needs a generator with a density; {type(model).__name__} has none that zuko "
        "can express. Fit with the generator 'flow' or 'mixture'."
    )


def _flow(model: FlowModel) -> nn.Module:
    if len(model.flows) > 1:
        return _FlowMixture(model)
    return _member(model, 0)


def _member(model: FlowModel, part: int) -> nn.Module:
    """One flow of a model."""
    flow: Any = deepcopy(model.flows[part])  # training the copy must not change the posterior
    transform, base = flow.transform, flow.base
    at = None if model.context is None else model.context[part]
    if at is not None:
        transform, base = AtContext(transform, at), AtContext(base, at)
    return _joined(model.support, model.trend.at(at), [transform], base)


class _FlowMixture(zuko.lazy.LazyDistribution):  # type: ignore[misc]  # zuko has no types
    """Flows in equal parts as one lazy distribution, as zuko's own mixtures are."""

    def __init__(self, model: FlowModel) -> None:
        super().__init__()
        self.parts = nn.ModuleList([_member(model, part) for part in range(len(model.flows))])

    def forward(self, c: Tensor | None = None) -> Distribution:
        """The mixture; ``c`` is ignored."""
        return EqualMixture([part(None) for part in self.parts])


class EqualMixture(Distribution):
    """Distributions over theta in equal parts."""

    def __init__(self, parts: list[Distribution]) -> None:
        super().__init__(event_shape=parts[0].event_shape, validate_args=False)
        self.parts = parts

    @property
    def support(self) -> constraints.Constraint | None:  # noqa: D102
        return self.parts[0].support

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw (*sample_shape, d): equal shares of the parts, in random order."""
        shape = torch.Size(sample_shape)
        count = shape.numel()
        shares = random_shares(count, len(self.parts))
        # The order in which FlowModel draws: the same state of the generator, the same draws.
        rows = [part.sample((n,)) for part, n in zip(self.parts, shares, strict=True) if n]
        return torch.cat(rows)[torch.randperm(count)].reshape(*shape, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log density at theta (..., d): (...)."""
        values = torch.stack([part.log_prob(value) for part in self.parts])
        return values.logsumexp(dim=0) - math.log(len(self.parts))


class _Pool(zuko.lazy.LazyDistribution):  # type: ignore[misc]  # zuko has no types
    """Flows pooled with a likelihood, as they were fitted: nothing of them is trained further."""

    def __init__(self, model: PooledFlows) -> None:
        super().__init__()
        self.model = model

    def forward(self, c: Tensor | None = None) -> Distribution:
        """The pool; ``c`` is ignored."""
        return Pooled(self.model)


class Pooled(Distribution):
    """Flows pooled with a likelihood, a distribution over theta."""

    def __init__(self, model: PooledFlows) -> None:
        super().__init__(event_shape=torch.Size([model.trend.dim]), validate_args=False)
        self.model = model

    @property
    def support(self) -> constraints.Constraint | None:  # noqa: D102
        return constraints.real_vector

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draw (*sample_shape, d) by a seed from torch's global stream."""
        shape = torch.Size(sample_shape)
        seed = int(torch.randint(2**31, ()))
        return self.model.sample(shape.numel(), seed).reshape(*shape, -1)

    def log_prob(self, value: Tensor) -> Tensor:
        """Log density at theta (..., d): (...)."""
        return self.model.log_prob(value.reshape(-1, value.shape[-1])).reshape(value.shape[:-1])


def _mixture(model: MixtureModel) -> nn.Module:
    base = zuko.lazy.UnconditionalDistribution(
        _gaussians, model.weights, model.means, model.factors, buffer=True
    )
    dim = model.means.shape[1]
    return _joined(model.support, Trend(torch.zeros(dim), torch.eye(dim)), [], base)


def _gaussians(weights: Tensor, means: Tensor, factors: Tensor) -> MixtureSameFamily:
    parts = MultivariateNormal(means, scale_tril=factors)
    return MixtureSameFamily(Categorical(weights), parts)


def _joined(support: Support, trend: Trend, rest: list[nn.Module], base: nn.Module) -> nn.Module:
    first = zuko.lazy.UnconditionalTransform(
        StandardTransform, support.lower, support.upper, trend.center, trend.root, buffer=True
    )
    flow: nn.Module = zuko.lazy.Flow([first, *rest], base)
    return flow
