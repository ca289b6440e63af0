"""The answer of a fit: a frozen posterior for the one observation it was fitted to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .config import ABIConfig
from .generators.base import GenerativeModel
from .rounds import RoundRecord


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
        """Draw (*sample_shape, d), float32.

        Args:
            sample_shape: for example ``(1000,)``.
            x: the observation, if given; it must be the fit's own ``x_o``.
            seed: the same seed gives the same draws; pass another for new ones.

        Raises:
            ValueError: if ``x`` is another observation.
        """
        self._check(x)
        shape = tuple(sample_shape)
        return self.model.sample(int(torch.Size(shape).numel()), seed).reshape(
            *shape, self.theta_dim
        )

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
        from .storage import save_posterior

        save_posterior(self, Path(path))

    def to_arviz(self, num_samples: int = 1000, seed: int = 0) -> Any:
        """The posterior as ArviZ data: InferenceData (0.x) or a DataTree (1.x).

        Args:
            num_samples: draws, put into one chain.
            seed: seed of the draws.
        """
        import arviz

        draws = self.sample((num_samples,), seed=seed).numpy()
        names = self.parameter_names
        columns = {name: draws[None, :, j] for j, name in enumerate(names)}
        return arviz.from_dict({"posterior": columns}) if _takes_groups(arviz) else (
            arviz.from_dict(posterior=columns)
        )  # fmt: skip

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


def _takes_groups(arviz: Any) -> bool:
    """ArviZ 1.x takes one dictionary of groups where 0.x takes a keyword each."""
    return int(arviz.__version__.split(".")[0]) >= 1
