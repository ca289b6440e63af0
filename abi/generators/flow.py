"""Neural spline flows on the prior's support, one or several, with or without a context.

Draws are mapped to the real line by the support and freed of their trend (:mod:`.trend`). What is
left is given to a zuko flow: an affine autoregressive map, which follows a posterior over orders of
magnitude of its scale, then spline maps, which bend the rest (:mod:`.flow_network`). With a
context, features of x, the flow is conditional, theta | x, and the model is read at x_o alone.
Several flows are mixed in equal parts: the mixture's log score is at least the mean of theirs, and
where they disagree it is wider.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from simulators.random import isolated_rng, torch_generator
from simulators.summary import summary

from ..encoders.fitted import FittedEncoders
from .base import GeneratorState, prefixed, unprefixed
from .compiled.normal import log_normal
from .flow_network import FlowSettings, build_flow
from .held import HeldOut
from .support import Support
from .trend import Trend

if TYPE_CHECKING:
    from .compiled.flow import CompiledFlow

_DRAWS = 32  # at the x of each theta held out
_ROWS = 8_000  # of theta looked at together


class Drawn(NamedTuple):
    """Draws (n, d) on the real line, their own flow's log density there (n,), and its number."""

    z: Tensor
    log_density: Tensor
    member: Tensor


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
                self.from_base(part, standard_normal(count, self.trend.dim), self._seen(part))[0]
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

    @property
    def alone(self) -> FlowModel:
        """The flows without the likelihood that they may be pooled with (:mod:`.pool`)."""
        return self

    def seen(self, encoders: FittedEncoders, x: Tensor) -> list[Tensor]:
        """What each flow sees of x (n, p), (n, k) each."""
        return [encoders.features(x, part) for part in range(len(self.flows))]

    def read_at(self, seen: list[Tensor]) -> FlowModel:
        """The model at another x, of which each flow sees features (1, k)."""
        return replace(self, context=torch.cat(seen))

    @torch.no_grad()
    def sample_given(self, num_samples: int, seen: list[Tensor], seed: int) -> Tensor:
        """Draw (num_samples, n, d) at n x, of which each flow sees features (n, k)."""
        z = self.drawn_given(num_samples, seen, seed).z
        return self.support.from_real(z).reshape(num_samples, len(seen[0]), -1)

    def drawn_given(self, num_samples: int, seen: list[Tensor], seed: int) -> Drawn:
        """Draws (num_samples n, d), each of a flow drawn at random, the x taken in turn."""
        count = num_samples * len(seen[0])
        with isolated_rng(seed):
            member = torch.randint(len(self.flows), (count,))
            base = standard_normal(count, self.trend.dim)
        z, log_density = torch.empty_like(base), torch.empty(count)
        for part, index in self._rows_of(member):
            at = seen[part][index % len(seen[0])]
            z[index], log_density[index] = self.from_base(part, base[index], at)
        return Drawn(z, log_density, member)

    @torch.no_grad()
    def log_prob_given(self, theta: Tensor, seen: list[Tensor]) -> Tensor:
        """Log density at theta (K, n, d), (K, n), at n x of which each flow sees (n, k)."""
        rows = theta.flatten(0, 1)
        inside = self.support.contains(rows).nonzero()[:, 0]
        out = torch.full((len(rows),), -torch.inf)
        z = self.support.to_real(rows[inside])
        value = self.members_at(z, inside, seen).logsumexp(dim=0) - math.log(len(seen))
        out[inside] = value - self.support.log_jacobian(z) - self.trend.log_scale
        return out.reshape(theta.shape[:2])

    def members_at(self, z: Tensor, row: Tensor, seen: list[Tensor]) -> Tensor:
        """Each flow's :meth:`log_density` at z (n, d), the x taken in turn, (M, n)."""
        pairs = list(zip(z.split(_ROWS), row.split(_ROWS), strict=True))
        parts = [[self.log_density(m, w, at[i % len(at)]) for w, i in pairs]
                 for m, at in enumerate(seen)]  # fmt: skip
        return torch.stack([torch.cat(part) for part in parts])

    def relative_given(self, theta: Tensor, seen: list[Tensor]) -> Tensor:
        """The same up to a constant at each x, where that costs less."""
        return self.log_prob_given(theta, seen)

    @torch.no_grad()
    def members_given(self, num_samples: int, seen: list[Tensor], seed: int) -> Tensor:
        """Each flow's own draws at one x, (M, num_samples, d), of the same noise."""
        with isolated_rng(seed):
            base = standard_normal(num_samples, self.trend.dim)
        drawn = [self.from_base(part, base, at[0])[0] for part, at in enumerate(seen)]
        return torch.stack([self.support.from_real(z) for z in drawn])

    def _rows_of(self, member: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Each flow, and the rows that are its own, few enough to be looked at together."""
        for part in range(len(self.flows)):
            for index in (member == part).nonzero()[:, 0].split(_ROWS):
                yield part, index

    def from_base(self, part: int, base: Tensor, seen: Tensor | None) -> tuple[Tensor, Tensor]:
        """Where a flow maps draws of its base (n, d) on the real line, given what it sees of x.

        Beside it the :meth:`log_density` there, (n,).
        """
        rest, log_slope = self.compiled[part].from_base(base, seen)
        return self.trend.from_rest(rest, seen), log_slope + log_normal(base)

    def log_density(self, part: int, z: Tensor, seen: Tensor | None) -> Tensor:
        """That of a flow at z (n, d) on the real line, less the trend's scale, (n,)."""
        return self.compiled[part].log_prob(self.trend.to_rest(z, seen), seen)

    @torch.no_grad()
    def sample_wide(self, num_samples: int, stretch: float, seed: int) -> tuple[Tensor, Tensor]:
        """Draw (num_samples, d) with the base stretched, and the log density of these draws.

        A flow maps N(0, I) to theta; N(0, stretch^2 I) through the same map covers its
        high-density region far more evenly. One flow, the first, is used.
        """
        dim, seen = self.trend.dim, self._seen(0)
        normal = torch.randn(num_samples, dim, generator=torch_generator(seed), dtype=torch.float32)
        rest, log_slope = self.compiled[0].from_base(stretch * normal, seen)
        log_density = log_normal(normal) - dim * math.log(stretch)
        log_density += log_slope - self.trend.log_scale
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

    def state(self) -> GeneratorState:
        """Weights, scaling, support and context."""
        tensors = prefixed("flows", self.flows.state_dict())
        tensors |= {"center": self.trend.center, "root": self.trend.root}
        if self.trend.slope is not None:
            tensors["slope"] = self.trend.slope
        tensors |= {"lower": self.support.lower, "upper": self.support.upper}
        if self.context is not None:
            tensors["context"] = self.context
        values: dict[str, Any] = asdict(self.settings) | {"num_flows": len(self.flows)}
        if self.encoders is not None:
            tensors |= prefixed("encoders", self.encoders.tensors())
            values["encoders"] = self.encoders.values()
        return GeneratorState("flow", tensors, values)

    def _drops(self, flow: CompiledFlow, held: HeldOut) -> Tensor:
        several, dim = _DRAWS * len(held.rows), self.trend.dim
        context = None if held.context is None else held.context.repeat(_DRAWS, 1)
        with isolated_rng(held.seed):
            base = standard_normal(several, dim)
        drawn, log_slope = flow.from_base(base, context)
        typical = log_normal(base) + log_slope - self._log_jacobian(drawn, context)
        own = flow.log_prob(held.rows, held.context) - self._log_jacobian(held.rows, held.context)
        return typical.view(_DRAWS, -1).median(dim=0).values - own

    def _log_jacobian(self, rest: Tensor, context: Tensor | None) -> Tensor:
        """The support's, at rows less their trend."""
        return self.support.log_jacobian(self.trend.from_rest(rest, context))

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
    flows.load_state_dict(unprefixed("flows", tensors))
    flows.eval()
    # Before version 8 the root was a diagonal, and there was no slope.
    root = tensors["root"] if "root" in tensors else torch.diag(tensors["scale"])
    trend = Trend(tensors["center"], root, tensors.get("slope"))
    support = Support(tensors["lower"], tensors["upper"])
    encoders = (
        None
        if about is None
        else FittedEncoders.restore(unprefixed("encoders", tensors), about, encoder)
    )
    return FlowModel(flows, support, trend, context, settings, (), encoders)
