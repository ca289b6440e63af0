"""What the sampler asks of a generative model: draws, a density where there is one, its state."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

Progress = Callable[[float], None]
Past = tuple[Tensor, Tensor]
"""Theta (m, d) and x (m, p) of pairs, simulated wherever it was."""


def both(first: Past, second: Past) -> Past:
    """The pairs of two, one after the other."""
    return torch.cat([first[0], second[0]]), torch.cat([first[1], second[1]])


@dataclass(frozen=True, eq=False)
class GeneratorState:
    """A fitted model in safe parts: tensors, and plain values that fit in JSON."""

    kind: str
    tensors: dict[str, Tensor]
    values: dict[str, Any]


def prefixed(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors as those of a part of a file, ``name.key``."""
    return {f"{name}.{key}": tensor for key, tensor in tensors.items()}


def unprefixed(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Those of one part, by their own names."""
    start = f"{name}."
    return {key[len(start) :]: t for key, t in tensors.items() if key.startswith(start)}


def besides(name: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Those of no such part."""
    return {key: t for key, t in tensors.items() if not key.startswith(f"{name}.")}


class GenerativeModel(Hashable, Protocol):
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


@runtime_checkable
class WideModel(GenerativeModel, Protocol):
    """A model whose draws can be spread out, and that knows theta held out from its training."""

    def sample_wide(self, num_samples: int, stretch: float, seed: int) -> tuple[Tensor, Tensor]:
        """Draw (num_samples, d) with the base stretched, and the log density of these draws."""
        ...

    def drops(self) -> Tensor | None:
        """How far each held-out theta's log density lies below the median of draws at its x, (n,).

        Nothing where none are known.
        """
        ...


def units(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Means (d,) and deviations (d,) of rows (n, d), and which parameters do not vary (d,).

    Those have next to no width, rather than none.
    """
    fixed = (z == z[0]).all(dim=0)
    center = torch.where(fixed, z[0], z.mean(dim=0))
    scale = torch.where(fixed, 1e-6 * (1.0 + center.abs()), z.std(dim=0))
    return center, scale, fixed


@lru_cache(maxsize=2)  # an answer and the one before
def two_samples(model: GenerativeModel) -> tuple[Tensor, Tensor]:
    """Two samples of 2,000 draws, (2,000, d) each, which all that compares answers shares."""
    return model.sample(2_000, seed=1), model.sample(2_000, seed=2)
