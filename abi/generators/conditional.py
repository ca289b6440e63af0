"""q(theta | x) at any x: the flows of an answer, each behind its own encoder.

A fitted :class:`~abi.generators.flow.FlowModel` is read at one x_o. Its flows were trained on pairs
with many x, and answer at each: of M flows in equal parts

    q(theta | x) = 1/M sum_m q_m(theta | s_m(x)),

with s_m the encoder of flow m. Draws at one x are independent: each has a member of its own, drawn
at random. (Draws at x_o, which only describe the answer, come in equal shares.) So the draws and a
theta that really belongs to x are exchangeable wherever q is right, as the tests of
:mod:`validation` need.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from simulators.random import isolated_rng

from ..encoders.fitted import FittedEncoders
from ..training.torch_settings import unvalidated
from .flow import FlowModel

_ROWS = 8_000  # of theta looked at together


@dataclass(frozen=True, eq=False)
class ConditionalFlows:
    """The flows of an answer at any x, with the encoders that they were trained with."""

    model: FlowModel
    encoders: FittedEncoders

    @classmethod
    def of(cls, model: Any) -> ConditionalFlows | None:
        """Those of a fitted model; None where it knows no x but its own."""
        if not isinstance(model, FlowModel) or model.encoders is None:
            return None
        return cls(model, model.encoders)

    @torch.no_grad()
    @unvalidated()
    def sample(self, num_samples: int, x: Tensor, seed: int) -> Tensor:
        """Draw (num_samples, n, d) at x (n, p), float32."""
        count, parts = num_samples * len(x), len(self.model.flows)
        z = torch.empty(count, len(self.model.center))
        with isolated_rng(seed):
            member = torch.randint(parts, (count,))
            for part, flow in enumerate(self.model.flows):
                rows = (member == part).nonzero()[:, 0]
                seen = self.encoders.features(x, part)[rows % len(x)]
                for index, context in zip(rows.split(_ROWS), seen.split(_ROWS), strict=True):
                    if len(index):
                        z[index] = flow(context).sample()
        theta = self.model.support.from_real(z * self.model.scale + self.model.center)
        return theta.reshape(num_samples, len(x), -1)

    @torch.no_grad()
    @unvalidated()
    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Log density at theta (K, n, d) given x (n, p), (K, n); -inf outside the support."""
        from .splines import quickened

        rows = theta.flatten(0, 1)
        inside = self.model.support.contains(rows).nonzero()[:, 0]
        out = torch.full((len(rows),), -torch.inf)
        if not len(inside):
            return out.reshape(theta.shape[:2])
        z = self.model.support.to_real(rows[inside])
        standard = (z - self.model.center) / self.model.scale
        parts = []
        for part, flow in enumerate(self.model.flows):
            quick = quickened(flow)
            seen = self.encoders.features(x, part)[inside % len(x)]
            pairs = zip(standard.split(_ROWS), seen.split(_ROWS), strict=True)
            parts.append(torch.cat([quick(context).log_prob(some) for some, context in pairs]))
        value = torch.stack(parts).logsumexp(dim=0) - math.log(len(parts))
        jacobian = self.model.support.log_jacobian(z) + torch.log(self.model.scale).sum()
        out[inside] = value - jacobian
        return out.reshape(theta.shape[:2])

    @torch.no_grad()
    @unvalidated()
    def of_members(self, x: Tensor, num_samples: int, seed: int) -> Tensor:
        """Each flow's own draws at one x (p,), (M, n, d), of the same noise: where flows differ."""
        drawn = []
        for part, flow in enumerate(self.model.flows):
            context = self.encoders.features(x[None], part).expand(num_samples, -1)
            with isolated_rng(seed):
                z = flow(context).sample() * self.model.scale + self.model.center
            drawn.append(self.model.support.from_real(z))
        return torch.stack(drawn)
