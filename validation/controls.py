"""Posteriors that are wrong on purpose: what tests must reject before they are believed."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from torch import Tensor

WIDER = 1.5
"""How much wider than q the posterior is that is wrong on purpose."""
CONTROLS: Mapping[str, str] = MappingProxyType(
    {"prior": "the pairs' prior in its place", "wide": f"the posterior {WIDER:g} times too wide"}
)
"""Posteriors that are wrong on purpose, in words.

The pairs' prior is the law that their theta were drawn from: the whole prior or, where they check
a fit, the prior cut to the region of its answer.
"""


def spread(samples: Tensor) -> Tensor:
    """Draws (L, n, d), :data:`WIDER` times as far from their mean at each of n observations."""
    mean = samples.mean(dim=0)
    return mean + WIDER * (samples - mean)
