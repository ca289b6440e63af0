"""At which x an answer holds: where its posterior lies inside what the fit has simulated.

The last flows were trained on pairs whose theta lie in the regions of the rounds. At an x whose
posterior lies inside, they answer as well as at x_o; at one whose posterior is cut by an edge, they
give the part inside and leak a little over the edge, which their draws show. So an x is answered if
at least ``SHARE_INSIDE`` of q's draws lie in the regions. (Measured on a conjugate Gaussian of ten
parameters after 3,000 calls, at sixty x ever farther from x_o: where 95% or more of q's draws lie
inside, so does 97% of the true posterior in the median and 83% in nine of ten; where 90 to 95% do,
83% in the median; where 80 to 90% do, 45%.)

And x must be like the fit's own simulations: no farther from its neighbours among them than they
are from each other, half as far again for chance. After one round, which has no regions, that is
all: the fit is amortised.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from simulators.summary import summary

from ..config import ABIConfig
from ..encoders.choice import build_encoder, features_of
from ..encoders.layout import Layout
from ..generators.conditional import ConditionalFlows
from ..plan import answers_elsewhere
from ..quantiles.kernel import FixedKernel
from .plausibility import neighbour_distances
from .record import RoundState
from .regions.region import AnyRegion, inside_all, narrowed

SHARE_INSIDE = 0.95
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

    regions: tuple[AnyRegion, ...]
    simulated: Tensor

    __repr__ = summary

    @classmethod
    def of(cls, state: RoundState, config: ABIConfig) -> Reach | None:
        """That of the answer a round leaves; None where it knows no x but its own."""
        kernel = state.kernel
        known = answers_elsewhere(config, len(state.records))
        if not known or isinstance(kernel, FixedKernel) or ConditionalFlows.of(state.model) is None:
            return None
        near = state.x[kernel(state.x) <= state.tolerance]
        # Later rows are the last round's own, and nearest to the answer.
        return cls(tuple(map(narrowed, state.regions)), near[-MOST_ROWS:].clone())

    def require(self, q: ConditionalFlows, x: Tensor) -> None:
        """Refuse observations x (n, p) that the answer does not reach.

        Raises:
            ValueError: naming the first, how many they are, and why.
        """
        doubts = self.doubts(q, x)
        bad = [row for row, doubt in enumerate(doubts) if doubt is not None]
        if bad:
            which = "" if len(x) == 1 else f" row {bad[0]} ({len(bad)} of {len(x)} rows)"
            raise ValueError(
                f"`x`{which}: the fit around x_o does not reach it: {doubts[bad[0]]}. Fit again "
                "with that x as x_o; or with num_rounds=1, whose answer holds at every x like the "
                "simulated ones; validation.PerObservation makes a fit at each x."
            )

    def doubts(self, q: ConditionalFlows, x: Tensor, seed: int = 0) -> list[str | None]:
        """Of each x (n, p) why the answer does not hold there; None where it does."""
        share = self._share_inside(q, x, seed)
        far = self._distance(x, q.encoders.layout)
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

    def _distance(self, x: Tensor, layout: Layout) -> Tensor:
        """Distance of each x to its neighbours, over the largest among the simulations."""
        if len(self.simulated) < 2:
            return torch.zeros(len(x))
        encoder = build_encoder("flat", self.simulated, layout)
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
        f"it lies {away:.1f} times farther from the fit's simulations than any of these from its "
        "neighbours"
    )
