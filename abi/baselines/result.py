"""What every baseline returns: draws, and an account of what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from simulators.arguments import sample_shape as as_size
from simulators.random import child_seed, torch_generator
from simulators.summary import summary

from ..posterior import DRAWS_KEY
from ..training.torch_settings import usual_torch

Draw = Callable[[Tensor, int, int], Tensor]


@dataclass(frozen=True, eq=False)
class BaselinePosterior:
    """The posterior that one baseline found for one observation, and what it cost.

    Attributes:
        method: name of the baseline.
        x_o: the observation, (p,).
        parameter_names: d names.
        draw: the sampler behind :meth:`sample`: (x_o, n, seed) -> (n, d).
        amortised: whether the fit answers for any observation, not for ``x_o`` alone.
        num_simulations: simulator calls made, failed ones included.
        cpu_seconds: CPU time of simulation and training.
        seed: seed of the fit.
        details: what the method reports: losses, tolerances, acceptance rates.
    """

    method: str
    x_o: Tensor
    parameter_names: tuple[str, ...]
    draw: Draw
    amortised: bool
    num_simulations: int
    cpu_seconds: float
    seed: int
    details: dict[str, Any] = field(default_factory=dict)

    __repr__ = summary

    @property
    def theta_dim(self) -> int:
        """Number of parameters d."""
        return len(self.parameter_names)

    def sample(
        self, sample_shape: Sequence[int] = (), x: Tensor | None = None, *, seed: int = 0
    ) -> Tensor:
        """Draw from the posterior, ``(*sample_shape, d)``, float32.

        Args:
            sample_shape: a tuple, such as ``(1000,)``.
            x: another observation (p,), where the fit is amortised; its own when omitted.
            seed: the same seed gives the same draws.

        Raises:
            ValueError: if ``x`` is another observation and the fit is for ``x_o`` alone, or
                ``sample_shape`` is not as described.
        """
        x_o = self.x_o if x is None else self.at(x).x_o
        shape = as_size(sample_shape)
        if shape.numel() == 0:
            return torch.empty(*shape, self.theta_dim)
        # A stream of its own: noise that others draw at the same seed must not go with theta.
        with usual_torch():
            draws = self.draw(x_o, shape.numel(), child_seed(seed, DRAWS_KEY))
        return draws.float().reshape(*shape, self.theta_dim)

    def at(self, x_o: Tensor) -> BaselinePosterior:
        """The same fit at another observation (p,), where it is amortised.

        Raises:
            ValueError: if the fit is for its own ``x_o`` alone.
        """
        given = torch.as_tensor(x_o, dtype=torch.float32).reshape(-1)
        if given.shape != self.x_o.shape:
            raise ValueError(
                f"`x` must hold {len(self.x_o)} values; got shape {tuple(given.shape)}."
            )
        if not torch.isfinite(given).all():
            raise ValueError("`x` must be finite; it holds NaN or infinite values.")
        if not self.amortised and not torch.equal(given, self.x_o):
            raise ValueError(
                f"`x` must be the observation of the fit: {self.method} made its simulations for "
                "one x_o. Fit again for another."
            )
        return replace(self, x_o=given)


def resampled(theta: Tensor, weights: Tensor) -> Draw:
    """Draws with replacement from weighted particles (n, d), whatever the observation."""

    def draw(x_o: Tensor, num_samples: int, seed: int) -> Tensor:
        generator = torch_generator(seed)
        chosen = torch.multinomial(weights, num_samples, replacement=True, generator=generator)
        return theta[chosen]

    return draw
