"""At which x an answer holds: where its posterior lies inside what the fit has simulated.

The last flows were trained on pairs whose theta lie in the regions of the rounds. At an x whose
posterior lies inside, they answer as well as at x_o; at one whose posterior is cut by an edge, they
give the part inside and leak a little over the edge, which their draws show. So an x is answered if
at least ``SHARE_INSIDE`` of q's draws lie in the regions. (Conjugate Gaussians, of which the true
share is known: where 90% of q's draws lie inside, so does at least 95% of the true posterior in
nine of ten cases; where 60% do, less than half.)

And x must be like the fit's own simulations: no farther from its neighbours among them than they
are from each other, half as far again for chance. After one round, which has no regions, that is
all: the fit is amortised.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..encoders.choice import build_encoder, features_of
from ..generators.conditional import ConditionalFlows
from .plausibility import neighbour_distances
from .regions import Region, inside_all

SHARE_INSIDE = 0.9
MOST_ROWS = 1_000  # simulations kept with an answer to compare with
_DRAWS = 100
_FARTHER = 1.5


@dataclass(frozen=True, eq=False)
class Reach:
    """What an answer was trained on, to tell at which x it holds.

    Attributes:
        regions: of the rounds before the last, in which its theta lie.
        simulated: some of the x that its flows were trained on, (m, p).
    """

    regions: tuple[Region, ...]
    simulated: Tensor

    def doubts(self, q: ConditionalFlows, x: Tensor, seed: int = 0) -> list[str | None]:
        """Of each x (n, p) why the answer does not hold there; None where it does."""
        share = self._share_inside(q, x, seed)
        far = self._distance(x)
        return [
            _beyond(float(part)) if part < SHARE_INSIDE else _unlike(float(away))
            if away > _FARTHER else None
            for part, away in zip(share, far, strict=True)
        ]  # fmt: skip

    def _share_inside(self, q: ConditionalFlows, x: Tensor, seed: int) -> Tensor:
        if not self.regions:
            return torch.ones(len(x))
        draws = q.sample(_DRAWS, x, seed)
        inside = inside_all(self.regions, draws.flatten(0, 1))
        return inside.reshape(draws.shape[:2]).float().mean(dim=0)

    def _distance(self, x: Tensor) -> Tensor:
        """Distance of each x to its neighbours, over the largest among the simulations."""
        if len(self.simulated) < 2:
            return torch.zeros(len(x))
        encoder = build_encoder("flat", self.simulated)
        known = features_of(encoder, self.simulated)
        own, theirs = (
            neighbour_distances(known),
            neighbour_distances(known, features_of(encoder, x)),
        )
        return theirs / own.max().clamp_min(1e-30)


def _beyond(share: float) -> str:
    return (
        f"{share:.0%} of its draws lie where the fit has simulated, fewer than {SHARE_INSIDE:.0%}: "
        "the posterior there reaches beyond the region around x_o"
    )


def _unlike(away: float) -> str:
    return (
        f"it is {away:.1f} times as far from the fit's simulations as any of these from the others"
    )
