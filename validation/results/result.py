"""What every test returns: one frozen record, the same for all methods."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from simulators.arguments import FRACTION

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LARGEST_TENSOR = 1_000


@dataclass(frozen=True, eq=False)
class ValidationResult:
    """Outcome of one test of ``H0: q(theta | x) = p(theta | x)``.

    Under H0, ``P(p_value <= alpha) <= alpha`` for every alpha (up to the approximation named in
    ``details["p_value_kind"]`` where there is one).
    """

    method: str
    """Name of the test, a key of :data:`validation.METHODS` or a variant of one."""
    statistic: float
    """Test statistic; larger means further from the null, unless ``details`` says otherwise."""
    p_value: float
    """In (0, 1]."""
    seed: int
    """The seed that reproduces the result bit for bit on the same machine."""
    null_statistics: Tensor | None = None
    """Statistics under the null (m,), where the null was simulated or permuted."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the method saw on the way: ranks, per-parameter p-values, split sizes, callables."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def reject(self, alpha: float = 0.05) -> bool:
        """Whether H0 is rejected at level ``alpha``, in (0, 1).

        Raises:
            ValueError: if alpha lies outside.
        """
        FRACTION(alpha, "alpha")
        return self.p_value <= alpha

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the method's own picture on ``ax`` (new axes when omitted); needs matplotlib."""
        from .plotting import plot_result

        return plot_result(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Everything that JSON can hold; callables and tensors above 1,000 values are left out."""
        null = None if self.null_statistics is None else self.null_statistics.tolist()
        return {
            "method": self.method,
            "statistic": self.statistic,
            "p_value": self.p_value,
            "seed": self.seed,
            "null_statistics": null,
            "details": _plain(self.details),
        }


_LEFT_OUT = object()


def _plain(value: Any) -> Any:
    """Return ``value`` with JSON's types only, or the mark of what JSON cannot hold."""
    if isinstance(value, Mapping):
        items = ((str(key), _plain(item)) for key, item in value.items())
        return {key: item for key, item in items if item is not _LEFT_OUT}
    if isinstance(value, list | tuple):
        return [item for item in map(_plain, value) if item is not _LEFT_OUT]
    if isinstance(value, Tensor | np.ndarray):
        values = torch.as_tensor(value)
        return _plain(values.tolist()) if values.numel() <= _LARGEST_TENSOR else _LEFT_OUT
    if isinstance(value, float | np.floating):
        # JSON has no NaN or infinity.
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.integer):
        return int(value)
    return value if value is None or isinstance(value, bool | int | str) else _LEFT_OUT
