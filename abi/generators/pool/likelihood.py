r"""A likelihood learned from pairs: of features of x, of each item of x, or of each of its values.

Where x is a list of k items that are independent given theta,

    log p(x | theta) = sum_i log p(x_i | theta),

and one flow of an item learns from k times as many rows as there are pairs. Values have laws that
are linear models (:mod:`abi.generators.pool.values`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Protocol

import torch
from torch import Tensor

from simulators.summary import summary

from ...encoders.layout import Layout
from ..base import GeneratorState
from ..conditional import ConditionalFlows
from ..flow import FlowModel
from ..support import Support


class Law(Protocol):
    """p(s | theta) of what is seen of x, given :func:`numbers_of` theta."""

    def seen(self, x: Tensor, features: Tensor) -> Tensor:
        """What it sees of x (n, p), of which ``features`` (n, k) are those of the first flow."""
        ...

    def log_prob(self, seen: Tensor, numbers: Tensor) -> Tensor:
        """Log p(s | theta) of what is seen (n, w), or (1, w), given numbers (n, c), (n,).

        Up to what does not hang on theta.
        """
        ...

    def state(self) -> GeneratorState:
        """What a file keeps of it."""
        ...


@dataclass(frozen=True, eq=False)
class OfFeatures:
    """The law of what the first of the answer's flows sees: a flow, or two in older files."""

    flows: ConditionalFlows

    def seen(self, x: Tensor, features: Tensor) -> Tensor:
        """The features."""
        return features

    def log_prob(self, seen: Tensor, numbers: Tensor) -> Tensor:
        """Log density of features (n, k), (n,)."""
        return self.flows.log_prob(seen[None], numbers)[0]

    def state(self) -> GeneratorState:
        """The flow's."""
        state = self.flows.model.state()
        return GeneratorState("features", state.tensors, state.values)


@dataclass(frozen=True, eq=False)
class OfItems:
    """The law of a list of items: one flow, of an item; and how x is such a list."""

    flows: ConditionalFlows
    layout: Layout

    def seen(self, x: Tensor, features: Tensor) -> Tensor:
        """All of x."""
        return x

    def log_prob(self, seen: Tensor, numbers: Tensor) -> Tensor:
        """Log density of x (n, p), (n,); items that are missing count for nothing."""
        items = self.layout.items(seen).transpose(0, 1)
        there = items.isfinite().all(dim=2)
        each = self.flows.log_prob(items.nan_to_num(nan=0.0), numbers)
        return torch.where(there, each, 0.0).sum(dim=0)

    def state(self) -> GeneratorState:
        """The flow's, and the list's form."""
        state = self.flows.model.state()
        values = {"flow": state.values, "items": asdict(self.layout)}
        return GeneratorState("items", state.tensors, values)


@dataclass(frozen=True, eq=False)
class Likelihood:
    """p(s | theta) of what is seen of x, times the prior's density.

    Attributes:
        law: of what is seen.
        prior: of theta; its support is that of theta.
    """

    law: Law
    prior: FlowModel

    __repr__ = summary

    @torch.no_grad()
    def log_joint(self, theta: Tensor, seen: Tensor) -> Tensor:
        """Log of p(s | theta) p(theta) at theta (n, d) and what is seen of x (n, w), (n,)."""
        given = self.law.log_prob(seen, numbers_of(theta, self.prior.support))
        joint = given + self.prior.log_prob(theta)
        return torch.where(joint.isnan(), -torch.inf, joint)


def numbers_of(theta: Tensor, support: Support) -> Tensor:
    """What laws see of theta (n, d): its place on the real line, and itself where it is in a box.

    A simulator's means may be linear in either.
    """
    return torch.cat([support.to_real(theta), theta[:, support.boxed]], dim=1)


def one_each(support: Support) -> Tensor:
    """Which of these numbers tell theta apart: itself where it is in a box, (d,)."""
    boxed = support.boxed
    return torch.where(boxed, len(boxed) - 1 + boxed.cumsum(dim=0), torch.arange(len(boxed)))
