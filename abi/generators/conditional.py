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

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ..encoders.fitted import FittedEncoders
from .flow import FlowModel


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
        return self.model.read_at(self._seen(x[None]))

    def sample(self, num_samples: int, x: Tensor, seed: int) -> Tensor:
        """Draw (num_samples, n, d) at x (n, p), float32."""
        return self.model.sample_given(num_samples, self._seen(x), seed)

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Log density at theta (K, n, d) given x (n, p), (K, n); -inf outside the support."""
        return self.model.log_prob_given(theta, self._seen(x))

    def relative_log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """The same up to a constant at each x, where that costs less."""
        return self.model.relative_given(theta, self._seen(x))

    def of_members(self, x: Tensor, num_samples: int, seed: int) -> Tensor:
        """Each flow's own draws at one x (p,), (M, n, d), of the same noise: where flows differ."""
        return self.model.members_given(num_samples, self._seen(x[None]), seed)

    @torch.no_grad()
    def _seen(self, x: Tensor) -> list[Tensor]:
        """What the model's parts see of x (n, p), (n, k) each."""
        return self.model.seen(self.encoders, x)
