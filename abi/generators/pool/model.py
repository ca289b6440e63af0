r"""Flows of theta given x, pooled with a likelihood learned from the same pairs.

Flows of theta given features s of x and a flow of s, or of the items of x, given theta err in ways
of their own: where noise is simple and the posterior is not, near the edge of a prior above all,
p(s | theta) is the easier to learn. Their log-linear pool, with a power a in [0, 1],

    q_a(theta | x) = Z^-1 1/M sum_m q_m(theta | s)^(1 - a) [p(s | theta) p(theta)]^a,

is the flows' answer at a = 0 and the likelihood's at a = 1; theta held out chooses between them
(:mod:`.power`). Members that agree with the likelihood weigh more in it.

Draws are chosen among 4 or 16 times as many of the flows, each with a chance proportional
to its weight [p(s | theta) p(theta) / q_m(theta | s)]^a (:func:`chosen`), after these are carried
to where their weights are more even (:mod:`.matching`). Z is the mean weight.

Source: the log-linear pool, Genest & Zidek (1986), "Combining probability distributions"; a learned
likelihood, Papamakarios et al. (2019), "Sequential neural likelihood"; weights on draws of a neural
posterior, Dax et al. (2023), "Neural importance sampling".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, cast

import torch
from torch import Tensor, nn

from simulators.random import child_seed, torch_generator
from simulators.summary import summary

from ...encoders.fitted import FittedEncoders
from ...encoders.layout import Layout
from ..base import GeneratorState, prefixed, unprefixed
from ..conditional import ConditionalFlows
from ..flow import FlowModel, restore_flow
from .additive import restore_additive
from .emulator import restore_emulator
from .likelihood import Law, Likelihood, OfFeatures, OfItems
from .matching import chances, matched
from .potential import restore_potential
from .values.law import restore_values
from .values.natural import restore_natural

_LEAST = 64  # draws of the flows to choose among
_NORMALISED, _LEAST_NORMALISED = 20_000, 200  # draws for Z, in all and at each x
_PARTS = "posterior", "likelihood", "prior"  # of a file
_OF_VALUES: dict[str | None, Callable[[GeneratorState], Law]] = {
    "values": restore_values, "natural": restore_natural, "potential": restore_potential,
    "emulator": restore_emulator, "additive": restore_additive,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class PooledFlows(FlowModel):
    """Fitted flows, read at ``context`` (M, k), pooled with a likelihood to the ``power`` a.

    ``shown`` (1, w) is what the likelihood sees of the x that they are read at. Where parts see
    several x, its own view of them comes last, after those of the flows. ``each`` draw is chosen
    among so many of the flows.
    """

    likelihood: Likelihood = field(kw_only=True)
    power: float = field(kw_only=True)
    shown: Tensor = field(kw_only=True)
    each: int = field(kw_only=True, default=4)

    __repr__ = summary

    @classmethod
    def of(cls, flows: FlowModel, likelihood: Likelihood, x: Tensor, power: float) -> PooledFlows:
        """The pool of these, where the flows are read at x (p,)."""
        shown = likelihood.law.seen(x[None], cast("Tensor", flows.context)[:1])
        return cls(**_fields(flows), likelihood=likelihood, power=power, shown=shown)

    @property
    def alone(self) -> FlowModel:
        """The flows without the likelihood."""
        return FlowModel(**_fields(self))

    def first(self, count: int) -> FlowModel:
        """At most so many of the flows, alone."""
        return self.alone.first(count)

    def seen(self, encoders: FittedEncoders, x: Tensor) -> list[Tensor]:
        """What each flow, and then the likelihood, sees of x (n, p)."""
        of_flows = super().seen(encoders, x)
        return [*of_flows, self.likelihood.law.seen(x, of_flows[0])]

    def read_at(self, seen: list[Tensor]) -> PooledFlows:
        """The model at another x."""
        return replace(self, context=torch.cat(seen[:-1]), shown=seen[-1])

    def sample(self, num_samples: int, seed: int) -> Tensor:
        """Draw (num_samples, d)."""
        return self.sample_given(num_samples, self._at_x_o, seed)[:, 0]

    def log_prob(self, theta: Tensor) -> Tensor:
        """Log density at theta (n, d) -> (n,), -inf outside the support."""
        return (self.relative_given(theta[:, None], self._at_x_o) - self._own_constant)[:, 0]

    @torch.no_grad()
    def sample_given(self, num_samples: int, seen: list[Tensor], seed: int) -> Tensor:
        """Draw (num_samples, n, d) at n x, of which the parts see these."""
        theta, log_weights = self.weighted(max(self.each * num_samples, _LEAST), seen, seed)
        index = chosen(log_weights, num_samples, child_seed(seed, 0))
        return theta.gather(0, index[..., None].expand(-1, -1, theta.shape[2]))

    def log_prob_given(self, theta: Tensor, seen: list[Tensor]) -> Tensor:
        """Log density at theta (K, n, d), (K, n), at n x of which the parts see these."""
        return self.relative_given(theta, seen) - self._log_constant(seen)

    @torch.no_grad()
    def relative_given(self, theta: Tensor, seen: list[Tensor]) -> Tensor:
        """The same up to a constant at each x."""
        rows = theta.flatten(0, 1)
        inside = self.support.contains(rows).nonzero()[:, 0]
        z = self.support.to_real(rows[inside])
        own = self._of_theta(self.members_at(z, inside, seen[:-1]), z)
        flows = ((1.0 - self.power) * own).logsumexp(dim=0) - math.log(len(own))
        joint = self._joint(rows[inside], inside, seen)
        out = torch.full((len(rows),), -torch.inf)
        out[inside] = flows + self.power * joint
        return out.reshape(theta.shape[:2])

    def members_given(self, num_samples: int, seen: list[Tensor], seed: int) -> Tensor:
        """Draws at one x, (M, num_samples, d), of each flow pooled alone: where they differ."""
        parts = enumerate(seen[:-1])
        return torch.stack(
            [self.one(m).sample_given(num_samples, [at, seen[-1]], seed)[:, 0] for m, at in parts]
        )

    def drops(self) -> Tensor | None:
        """None are known: theta held out say how surely the flows see them, not the pool."""
        return None

    def one(self, part: int) -> PooledFlows:
        """The pool of one of the flows with the likelihood."""
        return replace(self, flows=nn.ModuleList([self.flows[part]]))

    @torch.no_grad()
    def weighted(self, count: int, seen: list[Tensor], seed: int) -> tuple[Tensor, Tensor]:
        """Draws (count, n, d) at n x, and log weights (count, n), by which they are the pool's.

        They are those of the flows, carried along where that makes them worth more.
        """
        shape = count, len(seen[0])
        z, own, member = self.drawn_given(count, seen[:-1], seed)
        log_weights = self.power * self.log_weights(z, own, seen)

        def target(z: Tensor, at: Tensor) -> Tensor:
            row = at.repeat(len(z))
            whose = member.reshape(shape)[: len(z), at].flatten()
            return self._sought(z.flatten(0, 1), whose, row, seen).reshape(z.shape[:2])

        own = own.reshape(shape) - self.trend.log_scale
        z, log_weights = matched(z.reshape(*shape, -1), own, log_weights.reshape(shape), target)
        return self.support.from_real(z.flatten(0, 1)).reshape(*shape, -1), log_weights

    def weighted_at_x_o(self, count: int, seed: int) -> Tensor:
        """Log weights of so many draws at x_o, (count,)."""
        return self.weighted(count, self._at_x_o, seed)[1][:, 0]

    @torch.no_grad()
    def log_weights(self, z: Tensor, log_density: Tensor, seen: list[Tensor]) -> Tensor:
        """Those of z (n, d) on the real line, the x taken in turn, (n,).

        There the flow that has drawn them has this log density (n,), less the trend's scale.
        """
        joint = self._joint(self.support.from_real(z), torch.arange(len(z)), seen)
        return joint - self._of_theta(log_density, z)

    def _sought(self, z: Tensor, member: Tensor, row: Tensor, seen: list[Tensor]) -> Tensor:
        """Log density of each row's flow pooled alone, at z (n, d) on the real line, (n,).

        ``member`` (n,) says whose it is, and ``row`` (n,) which of the x.
        """
        joint = self._joint(self.support.from_real(z), row, seen)
        joint = self.power * (joint + self.support.log_jacobian(z))
        if self.power == 1.0:
            return joint
        own = torch.empty(len(z))
        for part, index in self._rows_of(member):
            own[index] = self.log_density(part, z[index], seen[part][row[index]])
        return joint + (1.0 - self.power) * (own - self.trend.log_scale)

    def state(self) -> GeneratorState:
        """The flows, the likelihood's law and the prior, and the power."""
        law = self.likelihood.law.state()
        states = self.alone.state(), law, self.likelihood.prior.state()
        tensors: dict[str, Tensor] = {"shown": self.shown}
        values: dict[str, Any] = {"power": self.power, "each": self.each, "law": law.kind}
        for name, state in zip(_PARTS, states, strict=True):
            tensors |= prefixed(name, state.tensors)
            values[name] = state.values
        return GeneratorState("pooled", tensors, values)

    @property
    def _at_x_o(self) -> list[Tensor]:
        return [*(at[None] for at in cast("Tensor", self.context)), self.shown]

    @cached_property
    def _own_constant(self) -> Tensor:
        return self._log_constant(self._at_x_o)

    def _log_constant(self, seen: list[Tensor]) -> Tensor:
        """Log of Z at each x, (n,)."""
        count = max(_NORMALISED // len(seen[0]), _LEAST_NORMALISED)
        log_weights = self.weighted(count, seen, seed=0)[1]
        constant: Tensor = log_weights.logsumexp(dim=0) - math.log(count)
        return constant

    def _joint(self, theta: Tensor, row: Tensor, seen: list[Tensor]) -> Tensor:
        """The likelihood's log density of theta (n, d) and its x, the x taken in turn, (n,)."""
        return self.likelihood.log_joint(theta, seen[-1][row % len(seen[-1])])

    def _of_theta(self, log_density: Tensor, z: Tensor) -> Tensor:
        """Log densities at z (n, d) on the real line less the trend's scale, as those of theta."""
        return log_density - self.trend.log_scale - self.support.log_jacobian(z)


def chosen(log_weights: Tensor, num_samples: int, seed: int) -> Tensor:
    """Of draws weighted at each of several x (count, n), num_samples each: their rows.

    By systematic sampling: a draw is taken once at most, with a chance proportional to its weight.
    Those too heavy for that are taken for certain.
    """
    chance = chances(log_weights, num_samples)
    start = torch.rand(log_weights.shape[1], generator=torch_generator(seed)).double()
    steps = torch.cat([start[None], start + chance.cumsum(dim=0)]).floor()
    taken = (steps.diff(dim=0) > 0).to(torch.uint8)
    return taken.argsort(dim=0, descending=True, stable=True)[:num_samples]


def restore_pooled(state: GeneratorState, encoder: nn.Module | None = None) -> PooledFlows:
    """The model behind a state; ``encoder`` is the user's module, where its fit had one."""
    values = state.values
    flows, law, prior = (
        GeneratorState("flow", unprefixed(name, state.tensors), values[name]) for name in _PARTS
    )
    fitted = restore_flow(flows, encoder)
    # Before version 12 a likelihood was of features, and each draw chosen among four.
    shown = state.tensors.get("shown", cast("Tensor", fitted.context)[:1])
    likelihood = Likelihood(_law(values, law), restore_flow(prior))
    power, each = values["power"], values.get("each", 4)
    return PooledFlows(
        **_fields(fitted), likelihood=likelihood, power=power, shown=shown, each=each
    )


def _law(values: dict[str, Any], state: GeneratorState) -> Law:
    """The law of a file; before version 13 its kind was told by how x was a list of items."""
    kind, items = values.get("law"), values.get("items")
    if kind in _OF_VALUES:
        return _OF_VALUES[kind](state)
    if kind == "items":
        items, state = state.values["items"], replace(state, values=state.values["flow"])
    flows = ConditionalFlows.of(restore_flow(state))
    if flows is None:
        raise ValueError("`path`: its likelihood lacks what it sees theta through; it is damaged.")
    return OfFeatures(flows) if items is None else OfItems(flows, Layout.of_values(items))


def _fields(flows: FlowModel) -> dict[str, Any]:
    return {part.name: getattr(flows, part.name) for part in fields(FlowModel)}
