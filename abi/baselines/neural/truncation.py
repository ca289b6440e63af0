"""The prior within the region where a posterior so far has its mass: truncated proposals.

The region is that of highest density which holds all but 1e-4 of q(theta | x_o). Draws of the prior
that lie inside are kept. Where fewer than one in a thousand do, each draw is one of 1,024 of q
inside, chosen by its weight p(theta) / q(theta | x_o), which costs the same.

(`RestrictedPrior` of sbi 0.27 takes 0 and 1 of outside and inside for logarithms of a density and
leaves the prior's out, so that its resampling lets in what lies outside.)

Source: Deistler, Goncalves & Macke (2022), "Truncated proposals for scalable and hassle-free
simulation-based inference".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ..reals import RealPrior

_MASS_OUTSIDE = 1e-4
_DRAWS = 100_000  # that say where the region ends, and what share of the prior it holds
_LEAST_SHARE, _CANDIDATES = 1e-3, 1_024
_ROWS, _TOGETHER = 20_000, 20  # at a time: densities, and draws that candidates are looked at for


@dataclass(frozen=True, eq=False)
class Truncated:
    """A prior on the real line, cut to where a posterior has its mass.

    Attributes:
        prior: that is cut.
        draw: n -> z (n, d) of the posterior, with the global stream.
        log_density: of the posterior at z (n, d), (n,).
    """

    prior: RealPrior
    draw: Callable[[int], Tensor]
    log_density: Callable[[Tensor], Tensor]

    def sample(self, num_samples: int) -> Tensor:
        """Draw z (num_samples, d) with the global stream.

        Raises:
            RuntimeError: if the posterior lies outside the prior.
        """
        batch = self._of_prior if self.share > _LEAST_SHARE else self._of_posterior
        kept: list[Tensor] = []
        while sum(map(len, kept)) < num_samples:
            kept.append(batch())
        return torch.cat(kept)[:num_samples]

    @cached_property
    def share(self) -> float:
        """What the region holds of the prior."""
        inside = self._at(self.prior.sample((_DRAWS,))) >= self._edge
        return float(inside.float().mean())

    @cached_property
    def _edge(self) -> Tensor:
        return self._at(self.draw(_DRAWS)).quantile(_MASS_OUTSIDE)

    @torch.no_grad()
    def _at(self, z: Tensor) -> Tensor:
        """The posterior's log density at z (n, d), (n,)."""
        return torch.cat([self.log_density(rows) for rows in z.split(_ROWS)])

    def _of_prior(self) -> Tensor:
        z = self.prior.sample((_ROWS,))
        return z[self._at(z) >= self._edge]

    def _of_posterior(self) -> Tensor:
        z = self.draw(_TOGETHER * _CANDIDATES)
        z = z[torch.randperm(len(z))]  # an ensemble gives its members' draws one after the other
        log_density = self._at(z)
        log_weights = self.prior.log_prob(z) - log_density
        log_weights = log_weights.where(log_density >= self._edge, -torch.inf)
        groups = log_weights.reshape(_TOGETHER, _CANDIDATES)
        known = groups.isfinite().any(dim=1)
        if not known.any():
            raise RuntimeError(
                f"`snpe` put all of {len(z):,} draws outside the prior. Use more simulations."
            )
        one = torch.multinomial(groups[known].softmax(dim=1), 1)[:, 0]
        return z.reshape(_TOGETHER, _CANDIDATES, -1)[known][torch.arange(len(one)), one]
