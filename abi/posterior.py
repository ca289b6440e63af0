"""The answer of a fit: a frozen posterior for the one observation it was fitted to."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from simulators.random import child_seed

from .config import ABIConfig
from .files.storage import read_posterior, write_posterior
from .generators.base import GenerativeModel
from .rounds.record import RoundRecord

DRAWS_KEY = 1
"""Of the seed of draws."""


@dataclass(frozen=True, eq=False)
class ABIPosterior:
    """pi_ABI(theta | x_o): draws, a density where the generator has one, and how it was made.

    Attributes:
        model: the last round's generative model.
        x_o: the observation it belongs to, (p,).
        parameter_names: d names.
        rounds: one record a round.
        accepted: the draws the model was fitted to, (k, d).
        seed: the seed of the fit.
        config: the constants of the fit.
    """

    model: GenerativeModel
    x_o: Tensor
    parameter_names: tuple[str, ...]
    rounds: tuple[RoundRecord, ...]
    accepted: Tensor
    seed: int
    config: ABIConfig

    @property
    def theta_dim(self) -> int:
        """Number of parameters d."""
        return len(self.parameter_names)

    @property
    def num_simulations(self) -> int:
        """Simulator calls really made, retries and failures included."""
        return sum(record.simulator_calls for record in self.rounds)

    def sample(
        self, sample_shape: Sequence[int] = (), x: Tensor | None = None, *, seed: int = 0
    ) -> Tensor:
        """Draw ``(*sample_shape, d)``, float32.

        Args:
            sample_shape: for example ``(1000,)``.
            x: the observation, if given; it must be the fit's own ``x_o``.
            seed: the same seed gives the same draws; pass another for new ones.

        Raises:
            ValueError: if ``x`` is another observation, or ``sample_shape`` or ``seed`` is not what
                it must be.
        """
        self._check(x)
        shape = as_shape(sample_shape)
        # A stream of its own: noise that others draw at the same seed must not go with theta.
        draws = self.model.sample(shape.numel(), child_seed(seed, DRAWS_KEY))
        return draws.reshape(*shape, self.theta_dim)

    def log_prob(self, theta: Tensor, x: Tensor | None = None) -> Tensor:
        """Log density at theta (n, d) -> (n,), -inf outside the prior's box.

        Raises:
            NotImplementedError: if the generator has no density.
            ValueError: if ``x`` is another observation, or theta has the wrong shape.
        """
        self._check(x)
        theta = torch.as_tensor(theta, dtype=torch.float32)
        if theta.ndim != 2 or theta.shape[1] != self.theta_dim:
            raise ValueError(
                f"`theta` must have shape (n, {self.theta_dim}); got {tuple(theta.shape)}."
            )
        return self.model.log_prob(theta)

    def save(self, path: str | Path) -> None:
        """Write the posterior to one file (safetensors; no pickle), to be read by ``abi.load``."""
        write_posterior(
            Path(path), **{field.name: getattr(self, field.name) for field in fields(self)}
        )

    def to_arviz(
        self,
        num_samples: int = 1000,
        seed: int = 0,
        *,
        prior: Any = None,
        simulator: Any = None,
    ) -> Any:
        """The fit as ArviZ data: InferenceData (0.x) or a DataTree (1.x).

        Beside ``posterior`` stand ``observed_data``, ``sample_stats`` with the log-density of each
        draw, and ``rounds``, one value a round of :attr:`rounds`.

        Args:
            num_samples: draws, put into one chain, for they are independent.
            seed: seed of the draws.
            prior: the prior of the fit, for a group ``prior`` of as many draws.
            simulator: the simulator of the fit, for ``posterior_predictive`` and, with the prior,
                ``prior_predictive``; each costs ``num_samples`` calls, and a failed one is NaN.
        """
        from .files.arviz_data import to_arviz

        return to_arviz(self, num_samples, seed, prior, simulator)

    def to_zuko(self) -> nn.Module:
        """The posterior as a zuko flow over theta, to train on, to compose, or to draw from.

        ``flow = posterior.to_zuko()`` is a module; ``flow()`` is a distribution whose ``log_prob``,
        ``sample`` and ``rsample`` are those of this posterior, the prior's support included. It is
        a copy: training it leaves the posterior as it is.

        Raises:
            NotImplementedError: if the generator has no density.
        """
        from .generators.flow_module import as_zuko

        return as_zuko(self.model)

    def _check(self, x: Tensor | None) -> None:
        if x is None:
            return
        given = torch.as_tensor(x, dtype=torch.float32).reshape(-1)
        if given.shape != self.x_o.shape or not torch.equal(given, self.x_o):
            raise ValueError(
                "`x` must be the observation of the fit: ABI concentrates its simulations around "
                "one x_o and says nothing about others. Fit again, or wrap the fit with "
                "validation.PerObservation."
            )


def load(path: str | Path) -> ABIPosterior:
    """Read a posterior written by :meth:`ABIPosterior.save`.

    Args:
        path: the file.

    Raises:
        ValueError: if the file is not a posterior of this format, or is from a newer version.
    """
    return ABIPosterior(**read_posterior(Path(path)))


def as_shape(sample_shape: Any) -> torch.Size:
    """A tuple of numbers of draws as a size, or say what is wrong with it."""
    try:
        counts = [operator.index(count) for count in sample_shape]
    except TypeError:
        counts = [-1]
    if min(counts, default=0) < 0:
        raise ValueError(
            "`sample_shape` must be a tuple of non-negative integers, such as (5,); "
            f"got {sample_shape!r}."
        )
    return torch.Size(counts)
