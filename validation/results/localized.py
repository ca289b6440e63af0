"""What CoLT finds at one x: the ball that q and p share least."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Localization:
    """Where q and p differ most at one x: a ball around ``point``, in CoLT's metric."""

    point: Tensor
    """theta_l(x), (d,)."""
    radius: float
    """Of the ball, in the metric of ``distances``."""
    q_mass: float
    """Mass of the ball under q."""
    p_mass: float
    """Mass of such balls under p, averaged over x: the statistic is their largest difference."""
    samples: Tensor
    """Draws from q(. | x), (K, d), for the picture."""
    distances: Tensor
    """Their distances to the point, (K,); inside the ball where below ``radius``."""
