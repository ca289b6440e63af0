"""Neural spline flows on the prior's support, one or several, with or without a context.

Draws are mapped to the real line by the support and freed of their trend (:mod:`.trend`). What is
left is given to a zuko flow: an affine autoregressive map, which follows a posterior over orders of
magnitude of its scale, then spline maps, which bend the rest. Each begins as the identity. With a
context, features of x, the flow is conditional, theta | x, and the model is read at x_o alone.
Several flows are mixed in equal parts: the mixture's log score is at least the mean of theirs, and
where they disagree it is wider.

Source: Durkan et al. (2019), "Neural spline flows"; Papamakarios et al. (2017) for the affine map;
zuko's implementation.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from simulators.arguments import count, layers, settle
from simulators.random import isolated_rng, torch_generator
from simulators.summary import summary

from ..encoders.fitted import FittedEncoders
from ..training.torch_settings import unvalidated
from .base import GeneratorState
from .support import Support
from .trend import Trend

if TYPE_CHECKING:
    from .compiled.flow import CompiledFlow

_DRAWS = 32  # at the x of each theta held out


@dataclass(frozen=True)
class FlowSettings:
    """Size of a flow: spline transforms after the affine one, widths of their networks, bins."""

    num_transforms: int = 2
    hidden: tuple[int, ...] = (128, 128)
    num_bins: int = 8

    def __post_init__(self) -> None:
        settle(self, num_transforms=count(0), hidden=layers(), num_bins=count(2))


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Theta less their trend (n, d) that one flow was not trained on, their context, and a seed."""

    rows: Tensor
    context: Tensor | None
    seed: int


@dataclass(frozen=True, eq=False)
class FlowModel:
    """Fitted flows in equal parts; conditional ones are read at ``context``, a row each, (M, k).

    ``held`` are theta held out from the training of each flow, kept while rounds may follow.
    ``encoders`` are what conditional flows see x through: with them they answer at any x
    (:mod:`.conditional`).
    """

    flows: nn.ModuleList
    support: Support
    trend: Trend
    context: Tensor | None
    settings: FlowSettings
    held: tuple[HeldOut, ...] = ()
    encoders: FittedEncoders | None = None

    __repr__ = summary

    @cached_property
    def compiled(self) -> list[CompiledFlow]:
        """The flows as they are worked with: log densities and draws several times as fast."""
        from .compiled.flow import CompiledFlow

        return [CompiledFlow(flow) for flow in self.flows]

    @torch.no_grad()
    def sample(self, num_samples: int, seed: int) -> Tensor:
        """Draw (num_samples, d)."""
        with isolated_rng(seed):
            shares = random_shares(num_samples, len(self.flows))
            parts = [
                self.from_base(part, standard_normal(count, self.trend.dim), self._seen(part))
                for part, count in enumerate(shares)
            ]
            z = torch.cat(parts)
            if len(self.flows) > 1:
                z = z[torch.randperm(len(z))]
        return self.support.from_real(z)

    @torch.no_grad()
    def log_prob(self, theta: Tensor) -> Tensor:
        """Log density at theta (n, d) -> (n,), -inf outside the support."""
        out = torch.full((len(theta),), -torch.inf, dtype=self.trend.center.dtype)
        inside = self.support.contains(theta)
        z = self.support.to_real(theta[inside])
        values = [self.log_density(part, z, self._seen(part)) for part in range(len(self.flows))]
        value = torch.stack(values).logsumexp(dim=0) - math.log(len(self.flows))
        out[inside] = value - self.trend.log_scale - self.support.log_jacobian(z)
        return out

    def from_base(self, part: int, base: Tensor, seen: Tensor | None) -> Tensor:
        """Where a flow maps draws of its base (n, d) on the real line, given what it sees of x."""
        return self.trend.from_rest(self.compiled[part].from_base(base, seen), seen)

    def log_density(self, part: int, z: Tensor, seen: Tensor | None) -> Tensor:
        """That of a flow at z (n, d) on the real line, less the trend's scale, (n,)."""
        return self.compiled[part].log_prob(self.trend.to_rest(z, seen), seen)

    @torch.no_grad()
    def sample_wide(self, num_samples: int, stretch: float, seed: int) -> tuple[Tensor, Tensor]:
        """Draw (num_samples, d) with the base stretched, and the log density of these draws.

        A flow maps N(0, I) to theta; N(0, stretch^2 I) through the same map covers its
        high-density region far more evenly. One flow, the first, is used.
        """
        from .compiled.flow import log_normal

        flow, dim, seen = self.compiled[0], self.trend.dim, self._seen(0)
        normal = torch.randn(num_samples, dim, generator=torch_generator(seed), dtype=torch.float32)
        rest = flow.from_base(stretch * normal, seen)
        log_density = log_normal(normal) - dim * math.log(stretch)
        log_density += flow.to_base(rest, seen)[1] - self.trend.log_scale
        z = self.trend.from_rest(rest, seen)
        return self.support.from_real(z), log_density - self.support.log_jacobian(z)

    @torch.no_grad()
    def drops(self) -> Tensor | None:
        """How far each held-out theta's log density lies below the median of draws at its x, (n,).

        Nothing where none are known. Worked out when asked for: regions alone need it.
        """
        if not self.held:
            return None
        pairs = zip(self.compiled, self.held, strict=True)
        return torch.cat([self._drops(flow, held) for flow, held in pairs])

    @torch.no_grad()
    def gains(self) -> Tensor:
        """What the flows add to each held-out theta's log density beyond their trend's, (n,)."""
        from .compiled.flow import log_normal

        if not self.held:
            return torch.empty(0)
        pairs = zip(self.compiled, self.held, strict=True)
        parts = [flow.log_prob(h.rows, h.context) - log_normal(h.rows) for flow, h in pairs]
        return torch.cat(parts)

    def first(self, count: int) -> FlowModel:
        """At most so many of the flows, for where fewer will do: densities of regions."""
        context = None if self.context is None else self.context[:count]
        flows = nn.ModuleList(list(self.flows)[:count])
        return replace(self, flows=flows, context=context, held=self.held[:count], encoders=None)

    def held_parts(self) -> tuple[dict[str, Tensor], list[int]]:
        """What :meth:`with_held` needs: theta held out and what is seen of their x; seeds."""
        rows = {f"{part}.rows": held.rows for part, held in enumerate(self.held)}
        seen = {
            f"{part}.context": held.context
            for part, held in enumerate(self.held)
            if held.context is not None
        }
        return rows | seen, [held.seed for held in self.held]

    def with_held(self, tensors: dict[str, Tensor], seeds: list[int]) -> FlowModel:
        """The inverse of :meth:`held_parts`."""
        held = tuple(
            HeldOut(tensors[f"{part}.rows"], tensors.get(f"{part}.context"), seed)
            for part, seed in enumerate(seeds)
        )
        return replace(self, held=held)

    def state(self) -> GeneratorState:
        """Weights, scaling, support and context."""
        tensors = {f"flows.{name}": value for name, value in self.flows.state_dict().items()}
        tensors |= {"center": self.trend.center, "root": self.trend.root}
        if self.trend.slope is not None:
            tensors["slope"] = self.trend.slope
        tensors |= {"lower": self.support.lower, "upper": self.support.upper}
        if self.context is not None:
            tensors["context"] = self.context
        values: dict[str, Any] = asdict(self.settings) | {"num_flows": len(self.flows)}
        if self.encoders is not None:
            held = self.encoders.tensors().items()
            tensors |= {f"encoders.{name}": value for name, value in held}
            values["encoders"] = self.encoders.values()
        return GeneratorState("flow", tensors, values)

    def _drops(self, flow: CompiledFlow, held: HeldOut) -> Tensor:
        several, dim = _DRAWS * len(held.rows), self.trend.dim
        context = None if held.context is None else held.context.repeat(_DRAWS, 1)
        with isolated_rng(held.seed):
            drawn = flow.from_base(standard_normal(several, dim), context)
        typical = self._log_density(flow, drawn, context).view(_DRAWS, -1).median(dim=0).values
        return typical - self._log_density(flow, held.rows, held.context)

    def _log_density(self, flow: CompiledFlow, rows: Tensor, context: Tensor | None) -> Tensor:
        """Up to a constant, of theta itself at rows less their trend."""
        jacobian = self.support.log_jacobian(self.trend.from_rest(rows, context))
        return flow.log_prob(rows, context) - jacobian

    def _seen(self, part: int) -> Tensor | None:
        return None if self.context is None else self.context[part]


def standard_normal(count: int, dim: int) -> Tensor:
    """Draws (count, dim) of a flow's base from torch's global stream, float32."""
    return torch.randn(count, dim, dtype=torch.float32)


def random_shares(num_samples: int, num_parts: int) -> list[int]:
    """How many draws each part of an equal mixture gives: the remainder goes to parts at random.

    Drawn from torch's global stream, which one part leaves alone.
    """
    if num_parts == 1:
        return [num_samples]
    share, rest = divmod(num_samples, num_parts)
    return [share + int(place < rest) for place in torch.randperm(num_parts)]


def restore_flow(state: GeneratorState, encoder: nn.Module | None = None) -> FlowModel:
    """The model behind a state; ``encoder`` is the user's module, where its fit had one."""
    values: dict[str, Any] = dict(state.values)
    num_flows, about = values.pop("num_flows"), values.pop("encoders", None)  # new in version 7
    settings = FlowSettings(**values)
    tensors = state.tensors
    context = tensors.get("context")
    if context is not None:
        context = context.expand(num_flows, -1)  # before version 3 all flows saw the same
    width = 0 if context is None else context.shape[1]
    flows = nn.ModuleList(
        [build_flow(len(tensors["center"]), width, settings, seed=0) for _ in range(num_flows)]
    )
    weights = {name[6:]: value for name, value in tensors.items() if name.startswith("flows.")}
    flows.load_state_dict(weights)
    flows.eval()
    # Before version 8 the root was a diagonal, and there was no slope.
    root = tensors["root"] if "root" in tensors else torch.diag(tensors["scale"])
    trend = Trend(tensors["center"], root, tensors.get("slope"))
    support = Support(tensors["lower"], tensors["upper"])
    kept = {name[9:]: value for name, value in tensors.items() if name.startswith("encoders.")}
    encoders = None if about is None else FittedEncoders.restore(kept, about, encoder)
    return FlowModel(flows, support, trend, context, settings, (), encoders)


@unvalidated()  # zuko's import switches checks off for good
def build_flow(theta_dim: int, context_dim: int, settings: FlowSettings, seed: int) -> nn.Module:
    """A flow that begins as the identity; without a context where ``context_dim`` is 0."""
    import zuko

    with isolated_rng(seed):
        affine = zuko.flows.MaskedAutoregressiveTransform(
            theta_dim, context_dim, hidden_features=settings.hidden
        )
        splines: Any = zuko.flows.NSF(
            features=theta_dim,
            context=context_dim,
            transforms=settings.num_transforms,
            hidden_features=settings.hidden,
            bins=settings.num_bins,
        )
        flow: nn.Module = zuko.flows.Flow([affine, *splines.transform.transforms], splines.base)
    _begin_at_identity(flow)
    return flow


@torch.no_grad()
def _begin_at_identity(flow: Any) -> None:
    """Let each transform's network give zeros, at which affine maps and splines change nothing."""
    for part in flow.transform.transforms:
        last = part.hyper[-1].parameters() if hasattr(part, "hyper") else part.phi
        for weights in last:
            weights.zero_()
