"""The observation in the form its owner has it, set beside what the simulator returns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..base import as_observation, check_length
from .values import as_float, as_row, named_parts


@dataclass(frozen=True)
class Returned:
    """What one simulation is: its shape and, where its values have names, how many of each."""

    shape: tuple[int, ...]
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()

    @staticmethod
    def of(value: Any) -> Returned:
        """What a simulator returned for one theta.

        Raises:
            TypeError, ValueError: if that are no real numbers.
        """
        parts = named_parts(value)
        if parts is None:
            return Returned(_shape(value))
        sizes = tuple(len(as_row(part)) for part in parts.values())
        return Returned((sum(sizes),), tuple(parts), sizes)

    @property
    def size(self) -> int:
        """Number of values."""
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Observed:
    """One observation as it was given: an array of any shape, or named values."""

    values: Tensor
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()

    @staticmethod
    def of(x_o: Any) -> Observed:
        """A number, a list, an array, a tensor, a dict, or a row of a data frame.

        NaN is a value that was not measured.

        Raises:
            TypeError: if it does not consist of numbers.
            ValueError: if some are infinite.
        """
        parts = named_parts(x_o)
        if parts is not None:
            rows = [_numbers(part, f"`x_o` {name!r}").reshape(-1) for name, part in parts.items()]
            values = as_observation(torch.cat([torch.empty(0), *rows]), gaps=True)
            return Observed(values, tuple(parts), tuple(len(row) for row in rows))
        values = _numbers(x_o, "`x_o`")
        values = values.reshape(1) if values.ndim == 0 else values
        if values.ndim == 1 or len(values) == 1 == values.ndim - 1:
            values = as_observation(values, gaps=True)
        return Observed(values)

    def fits(self, returned: Returned) -> bool:
        """Whether it may be such a simulation; names that differ are told by :meth:`matched`."""
        return bool(self.names and returned.names) or returned.size == self.values.numel()

    def matched(self, returned: Returned | None) -> Tensor:
        """The observation (p,), float32, in the order of the simulator's values.

        Args:
            returned: what the simulator returns, where that is known.

        Raises:
            ValueError: if it is not one observation of that simulator.
        """
        if returned is None:
            return as_observation(self.values, gaps=True)
        if self.names and returned.names:
            return self._by_name(returned)
        same = tuple(self.values.shape) == returned.shape
        values = self.values.reshape(-1) if same else self.values
        return as_observation(values, returned.size, gaps=True)

    def _by_name(self, returned: Returned) -> Tensor:
        missing = [name for name in returned.names if name not in self.names]
        extra = [name for name in self.names if name not in returned.names]
        if missing or extra:
            what = f"lacks {missing[0]!r}" if missing else f"also has {extra[0]!r}"
            raise ValueError(
                f"`x_o` must have the names that `simulator` returns, {', '.join(returned.names)}; "
                f"it {what}. Rename, add or drop values of x_o."
            )
        blocks = dict(zip(self.names, self.values.split(list(self.sizes)), strict=True))
        for name, size in zip(returned.names, returned.sizes, strict=True):
            check_length(len(blocks[name]), size, f" of {name!r}")
        return torch.cat([blocks[name] for name in returned.names])


def same_values(first: Tensor, second: Tensor) -> bool:
    """Whether two observations are one: the same values, and the same gaps."""
    return torch.equal(first.nan_to_num(0.0), second.nan_to_num(0.0)) and torch.equal(
        first.isnan(), second.isnan()
    )


def _shape(value: Any) -> tuple[int, ...]:
    """The shape of an array, or of nested lists as one; (p,) of parts of different sizes."""
    row = as_row(value)
    try:
        shape = tuple(np.shape(value))
    except ValueError:  # they do not make up an array
        return (len(row),)
    return shape if math.prod(shape) == len(row) else (len(row),)


def _numbers(values: Any, name: str) -> Tensor:
    """Numbers of any kind as float32, in their shape."""
    try:
        if isinstance(values, Tensor):
            return as_float(values)
        return as_row(values).reshape(_shape(values))
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"{name} must be a tensor of numbers; got {values!r:.60}.{_hint(values)}"
        ) from error


def _hint(values: Any) -> str:
    """What was probably meant."""
    if isinstance(values, str):
        return " Read a file first, as numpy.loadtxt(file, delimiter=',') does."
    if values is None:
        return " Pass the observed values, as the simulator returns them."
    if np.iscomplexobj(values):
        return " Real and imaginary parts are values of their own."
    if callable(values) or hasattr(values, "sample"):
        return " The order of the arguments is (prior, simulator, x_o)."
    return ""
