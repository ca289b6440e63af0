"""What a region is: theta where a posterior's density is high, of one x or of several."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from ...generators import pool
from ...generators.base import GenerativeModel
from ...generators.flow import FlowModel


@dataclass(frozen=True, eq=False)
class Region:
    """{theta : q(theta) >= exp(log_threshold)} inside a box, (d,) each, that is quick to check."""

    model: GenerativeModel
    log_threshold: float
    lower: Tensor
    upper: Tensor

    def contains(self, theta: Tensor) -> Tensor:
        """Whether each row lies in the region, (n, d) -> (n,)."""
        inside = ((theta >= self.lower) & (theta <= self.upper)).all(dim=1)
        if inside.any():
            inside[inside.clone()] = self.model.log_prob(theta[inside]) >= self.log_threshold
        return inside


@dataclass(frozen=True, eq=False)
class SharedRegion:
    """Where any of several posteriors lies that one model gives, each at its own x.

    Attributes:
        model: flows of theta given x.
        contexts: what they see of each x, (K, M, k).
        log_thresholds: of the posterior at each x, (K,).
        lower: of the box of each, (K, d).
        upper: likewise.
    """

    model: FlowModel
    contexts: Tensor
    log_thresholds: Tensor
    lower: Tensor
    upper: Tensor

    @cached_property
    def parts(self) -> tuple[Region, ...]:
        """The region of each posterior."""
        rows = zip(self.contexts, self.log_thresholds.tolist(), self.lower, self.upper, strict=True)
        return tuple(
            Region(replace(self.model, context=context), threshold, *box)
            for context, threshold, *box in rows
        )

    def contains(self, theta: Tensor) -> Tensor:
        """Whether each row lies in the region of one of them, (n, d) -> (n,)."""
        inside = torch.zeros(len(theta), dtype=torch.bool)
        for part in self.parts:
            rows = (~inside).nonzero()[:, 0]
            inside[rows] = part.contains(theta[rows])
        return inside


AnyRegion = Region | SharedRegion


def is_pooled(region: AnyRegion) -> bool:
    """Whether a likelihood has a part in it: its model is not the one that its round keeps."""
    return isinstance(region.model, pool.PooledFlows)


def narrowed(region: AnyRegion) -> AnyRegion:
    """The region with no more of its model than membership needs: without encoders."""
    model = region.model
    if isinstance(model, FlowModel):
        return replace(region, model=replace(model, encoders=None, held=()))
    return region


def inside_all(regions: tuple[AnyRegion, ...], theta: Tensor) -> Tensor:
    """Whether each row lies in every region, (n, d) -> (n,); the narrowest is asked first."""
    inside = torch.ones(len(theta), dtype=torch.bool)
    for region in reversed(regions):
        rows = inside.nonzero()[:, 0]
        inside[rows] = region.contains(theta[rows])
    return inside
