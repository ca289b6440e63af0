"""What the sampler asks of a generative model: draws, a density where there is one, its state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

Progress = Callable[[float], None]


@dataclass(frozen=True, eq=False)
class GeneratorState:
    """A fitted model in safe parts: tensors, and plain values that fit in JSON."""

    kind: str
    tensors: dict[str, Tensor]
    values: dict[str, Any]


class GenerativeModel(Protocol):
    """A fitted distribution over theta (the paper's G_beta, Section 2.2.3)."""

    def sample(self, num_samples: int, seed: int) -> Tensor:
        """Draw (num_samples, d)."""
        ...

    def log_prob(self, theta: Tensor) -> Tensor:
        """Log density at theta (n, d) -> (n,); NotImplementedError where there is none."""
        ...

    def state(self) -> GeneratorState:
        """Everything needed to restore the model."""
        ...
