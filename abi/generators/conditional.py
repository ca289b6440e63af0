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
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from simulators.random import isolated_rng

from ..encoders.fitted import FittedEncoders
from .flow import FlowModel, standard_normal

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

    def at(self, x: Tensor) -> FlowModel:
        """The model read at another x (p,)."""
        parts = range(len(self.model.flows))
        seen = [self.encoders.features(x[None], part)[0] for part in parts]
        return replace(self.model, context=torch.stack(seen))

    @torch.no_grad()
    def sample(self, num_samples: int, x: Tensor, seed: int) -> Tensor:
        """Draw (num_samples, n, d) at x (n, p), float32."""
        count, parts = num_samples * len(x), len(self.model.flows)
        with isolated_rng(seed):
            member = torch.randint(parts, (count,))
            base = standard_normal(count, self.model.trend.dim)
        z = torch.empty_like(base)
        for part in range(parts):
            rows = (member == part).nonzero()[:, 0]
            seen = self.encoders.features(x, part)
            for index in rows.split(_ROWS):
                z[index] = self.model.from_base(part, base[index], seen[index % len(x)])
        theta = self.model.support.from_real(z)
        return theta.reshape(num_samples, len(x), -1)

    @torch.no_grad()
    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Log density at theta (K, n, d) given x (n, p), (K, n); -inf outside the support."""
        rows = theta.flatten(0, 1)
        inside = self.model.support.contains(rows).nonzero()[:, 0]
        out = torch.full((len(rows),), -torch.inf)
        z = self.model.support.to_real(rows[inside])
        parts = []
        for part in range(len(self.model.flows)):
            seen = self.encoders.features(x, part)
            pairs = zip(z.split(_ROWS), inside.split(_ROWS), strict=True)
            parts.append(
                torch.cat([self.model.log_density(part, w, seen[i % len(x)]) for w, i in pairs])
            )
        value = torch.stack(parts).logsumexp(dim=0) - math.log(len(parts))
        jacobian = self.model.support.log_jacobian(z) + self.model.trend.log_scale
        out[inside] = value - jacobian
        return out.reshape(theta.shape[:2])

    @torch.no_grad()
    def of_members(self, x: Tensor, num_samples: int, seed: int) -> Tensor:
        """Each flow's own draws at one x (p,), (M, n, d), of the same noise: where flows differ."""
        drawn = []
        with isolated_rng(seed):
            base = standard_normal(num_samples, self.model.trend.dim)
        for part in range(len(self.model.flows)):
            z = self.model.from_base(part, base, self.encoders.features(x[None], part)[0])
            drawn.append(self.model.support.from_real(z))
        return torch.stack(drawn)
