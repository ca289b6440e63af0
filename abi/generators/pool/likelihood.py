r"""A likelihood learned from pairs: of features of x, or of each item of x.

Where x is a list of k items that are independent given theta,

    log p(x | theta) = sum_i log p(x_i | theta),

and one flow of an item learns from k times as many rows as there are pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.summary import summary

from ...encoders.layout import Layout
from ..conditional import ConditionalFlows
from ..flow import FlowModel
from ..support import Support


@dataclass(frozen=True, eq=False)
class Likelihood:
    """p(s | theta) of what is seen of x, times the prior's density.

    Attributes:
        flows: of features s, or of one item, given the numbers of theta that :func:`numbers_of`
            makes; a single one, but two in older files.
        prior: of theta; its support is that of theta.
        items: how x is a list of items, where the flows are of these; None where of features.
    """

    flows: ConditionalFlows
    prior: FlowModel
    items: Layout | None = None

    __repr__ = summary

    def seen(self, x: Tensor, features: Tensor) -> Tensor:
        """What it sees of x (n, p), of which ``features`` (n, k) are those of the first flow."""
        return features if self.items is None else x

    @torch.no_grad()
    def log_joint(self, theta: Tensor, seen: Tensor) -> Tensor:
        """Log of p(s | theta) p(theta) at theta (n, d) and what is seen of x (n, w), (n,)."""
        numbers = numbers_of(theta, self.prior.support)
        if self.items is None:
            given = self.flows.log_prob(seen[None], numbers)[0]
        else:
            items = self.items.items(seen).transpose(0, 1)
            there = items.isfinite().all(dim=2)
            each = self.flows.log_prob(items.nan_to_num(nan=0.0), numbers)
            given = torch.where(there, each, 0.0).sum(dim=0)
        joint = given + self.prior.log_prob(theta)
        return torch.where(joint.isnan(), -torch.inf, joint)


def numbers_of(theta: Tensor, support: Support) -> Tensor:
    """What the flows of a likelihood see of theta (n, d): on the real line, and as it is in a box.

    A simulator's means may be linear in either.
    """
    boxed = torch.isfinite(support.lower) & torch.isfinite(support.upper)
    return torch.cat([support.to_real(theta), theta[:, boxed]], dim=1)
