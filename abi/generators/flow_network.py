"""zuko's spline flow as it is built here: an affine autoregressive map, then spline maps.

Each begins as the identity. With a context, features of x, the flow is conditional, theta | x.
Source: Durkan et al. (2019), "Neural spline flows"; Papamakarios et al. (2017) for the affine map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from simulators.arguments import count, layers, settle
from simulators.random import isolated_rng

from ..training.torch_settings import unvalidated

_FEW_ROWS, _BINS_OF_FEW = 2_000, 5


@dataclass(frozen=True)
class FlowSettings:
    """Size of a flow: spline transforms after the affine one, widths of their networks, bins.

    Fewer than 2,000 rows get five bins at most.
    """

    num_transforms: int = 2
    hidden: tuple[int, ...] = (128, 128)
    num_bins: int = 8

    def __post_init__(self) -> None:
        settle(self, num_transforms=count(0), hidden=layers(), num_bins=count(2))

    def halved(self) -> FlowSettings:
        """With networks half as wide."""
        return replace(self, hidden=tuple(max(1, width // 2) for width in self.hidden))

    def for_rows(self, num_rows: int) -> FlowSettings:
        """Those of a flow that is trained on so many rows.

        Of two moons and a mixture, 1,000 calls, twelve fits: mean C2ST .59 with eight bins, .56
        with five. With 10,000 calls and five bins queues and waves were farther off.
        """
        few = num_rows < _FEW_ROWS
        return replace(self, num_bins=min(self.num_bins, _BINS_OF_FEW)) if few else self


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
