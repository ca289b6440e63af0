"""What CoLT finds at one x: the ball that q and p share least."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor

from .plain import plain
from .printed import coordinates
from .tables import html_table, text_table

_TITLE = "where q and p differ most at this x, by CoLT: a ball"


@dataclass(frozen=True, eq=False, repr=False)
class Localization:
    """The region of theta where q and the posterior p differ most at one x, as CoLT finds it.

    It is a ball around ``point``, in the metric that CoLT learned.
    """

    point: Tensor
    """Centre of the ball, (d,)."""
    radius: float
    """Radius of the ball, in the learned metric."""
    q_mass: float
    """Probability of the ball under q."""
    p_mass: float
    """Probability of such balls under p, averaged over x. The test's statistic is the largest
    difference of the two."""
    samples: Tensor
    """Draws from q at this x, (K, d)."""
    distances: Tensor
    """Distances of the draws to the centre, (K,); draws below ``radius`` are inside."""

    def __repr__(self) -> str:
        return (
            f"Localization(point={coordinates(self.point)}, radius={self.radius:.4g}, "
            f"q_mass={self.q_mass:.3g}, p_mass={self.p_mass:.3g}, K={len(self.samples)})"
        )

    def __str__(self) -> str:
        return f"{_TITLE}\n{text_table(self._rows())}"

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return html_table(self._rows(), caption=_TITLE)

    def _rows(self) -> list[tuple[str, str]]:
        inside = int((self.distances <= self.radius).sum())
        return [
            ("centre", coordinates(self.point)),
            ("radius", f"{self.radius:.4g}, in CoLT's metric"),
            ("mass under q", f"{self.q_mass:.3g}"),
            ("mass under p", f"{self.p_mass:.3g}, of such balls on average over x"),
            ("draws", f"{inside:,} of {len(self.samples):,} inside, in .samples and .distances"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """The ball as plain values, for JSON; tensors above 1,000 values are left out."""
        return plain({part.name: getattr(self, part.name) for part in fields(self)})
