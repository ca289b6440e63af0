"""Laws whose densities are worked out for so many rows at a time as keep their terms small."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from typing import ClassVar

import torch
from torch import Tensor

from ...base import GeneratorState, prefixed

_AT_ONCE = 20_000


@dataclass(frozen=True, eq=False)
class InParts(ABC):
    """A law made of tensors, and of a ``network`` if it has one."""

    kind: ClassVar[str]
    """What files call it."""

    def seen(self, x: Tensor, features: Tensor) -> Tensor:
        """What it sees of x (n, p): all of it."""
        return x

    @torch.no_grad()
    def log_prob(self, seen: Tensor, numbers: Tensor) -> Tensor:
        """Log density of what is seen (n, w), or (1, w) for all, given numbers (n, c), (n,).

        Families leave out what does not hang on theta.
        """
        rows = seen.expand(len(numbers), -1)
        parts = zip(rows.split(_AT_ONCE), numbers.split(_AT_ONCE), strict=True)
        return torch.cat([self._log_prob(*part) for part in parts])

    @abstractmethod
    def _log_prob(self, seen: Tensor, numbers: Tensor) -> Tensor:
        """The same of so few rows that there is room for their terms."""

    def state(self) -> GeneratorState:
        """All there is."""
        parts = {part.name: getattr(self, part.name) for part in fields(self)}
        network = parts.pop("network", None)
        weights = {} if network is None else prefixed("network", network.state_dict())
        return GeneratorState(self.kind, parts | weights, {})
