"""A prior that is the output of a simulator: draws of it can be made, its density is unknown.

=================== ================================= ====== ======================================
symbol              meaning                           unit   prior
=================== ================================= ====== ======================================
log prey            log of one plus the prey          log    what predators and prey end with after
log predators       log of one plus the predators     log    ten units of time (Gillespie's paths)
=================== ================================= ====== ======================================

    rates ~ U(0.8, 1.2) x (0.5, 0.01, 1, 0.01), (X, Y) = a path of the Lotka-Volterra process,
    theta = (log(1 + X_10), log(1 + Y_10)),   x_i | theta ~ N(theta, 0.5^2 I),   i = 1 ... 4

A survey counts two species four times, with an error; what is known of them beforehand is a model
of their dynamics. The prior's density sums over all event histories and all rates. The posterior
can still be drawn exactly, the likelihood being Gaussian: a draw of the prior is kept with
probability L(theta) / max L.

Source: Lu & Wong (2025), Table 1: which methods can do without a prior density.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from simulators import LotkaVolterra
from simulators.base import as_observation, as_rows
from simulators.random import child_seed, fresh_seed, isolated_rng, torch_generator
from simulators.streams.xoshiro import row_normals

_RATES = (0.5, 0.01, 1.0, 0.01)
_NOISE = 0.5
_BATCH = 20_000
_MOST_BATCHES = 50
_TRUE_SEED = 1900


@dataclass(frozen=True)
class PopulationPrior:
    """Log populations after ten units of time; a sampler and nothing else."""

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Draw (*sample_shape, 2)."""
        num = int(torch.Size(sample_shape).numel())
        rates = torch.tensor(_RATES) * (0.8 + 0.4 * torch.rand(num, 4))
        # The path's streams hang on the global one, as a user's own prior would.
        seed = int(torch.randint(2**31, (1,)))
        paths = LotkaVolterra()(rates, seed).reshape(num, 2, -1)
        return torch.log1p(paths[:, :, -1]).reshape(*sample_shape, 2)


@dataclass(frozen=True)
class CountedPopulations:
    """Four noisy counts of two species, (n, 8); the default observation is one simulation."""

    theta_dim = 2
    x_dim = 8
    item_dim = 2
    parameter_names = ("log prey", "log predators")

    @property
    def prior(self) -> PopulationPrior:
        """What a model of their dynamics says of the populations."""
        return PopulationPrior()

    @property
    def true_theta(self) -> Tensor:
        """The populations behind the default observation, (2,): one draw of the prior."""
        with isolated_rng(_TRUE_SEED):
            return self.prior.sample((1,))[0]

    @property
    def observation(self) -> Tensor:
        """The default observation, (8,)."""
        return self(self.true_theta[None], _TRUE_SEED)[0]

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, 2) -> x (n, 8), float32."""
        rows = as_rows(theta, self.theta_dim).double()
        seed = fresh_seed() if seed is None else seed
        noise = torch.from_numpy(row_normals(seed, len(rows), self.x_dim, first_row))
        return (rows.repeat(1, 4) + _NOISE * noise).float()

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw (num_samples, 2) from the exact posterior at ``x_o`` (8,), by rejection.

        Raises:
            ValueError: if hardly any draw of the prior explains ``x_o``.
        """
        mean = as_observation(x_o, self.x_dim).reshape(4, 2).mean(dim=0)
        generator = torch_generator(child_seed(seed, 0))
        kept: list[Tensor] = []
        for number in range(1, _MOST_BATCHES + 1):
            with isolated_rng(child_seed(seed, number)):
                theta = self.prior.sample((_BATCH,))
            log_ratio = -0.5 * 4 * ((theta - mean) ** 2).sum(dim=1) / _NOISE**2
            kept.append(theta[torch.rand(_BATCH, generator=generator).log() < log_ratio])
            if sum(map(len, kept)) >= num_samples:
                return torch.cat(kept)[:num_samples]
        raise ValueError(
            f"`x_o` is too far from the prior: {sum(map(len, kept))} of {num_samples} draws after "
            f"{_MOST_BATCHES * _BATCH:,} tries."
        )
