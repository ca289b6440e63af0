"""A record that holds arrays and networks as one line: ``__repr__ = summary`` in its class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from textwrap import shorten
from typing import Any

import numpy as np
from torch import Tensor

_WIDEST, _WIDEST_VALUE = 280, 40


def summary(record: Any) -> str:
    """A dataclass with arrays by their shapes, and what takes more than a few words by its type.

    What is None or empty is left out.

    >>> from dataclasses import dataclass
    >>> @dataclass(eq=False)
    ... class Draws:
    ...     theta: Tensor
    ...     seed: int
    ...     __repr__ = summary
    >>> import torch
    >>> Draws(torch.zeros(500, 2), 3)
    Draws(theta (500, 2), seed 3)
    """
    values = {part.name: getattr(record, part.name) for part in fields(record) if part.repr}
    held = [f"{name} {_in_words(value)}" for name, value in values.items() if not _is_empty(value)]
    line = f"{type(record).__name__}({', '.join(held)})"
    return shorten(line, _WIDEST, placeholder=" ...)")


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, tuple | list | Mapping | str) and not value)


def _in_words(value: Any) -> str:
    if isinstance(value, Tensor | np.ndarray):
        return str(tuple(value.shape))
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, str):
        return repr(shorten(value, _WIDEST_VALUE, placeholder=" ..."))
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, tuple | list | Mapping):
        plain = not isinstance(value, Mapping) and all(isinstance(v, int | str) for v in value)
        words = str(value) if plain else ""
        return words if words and len(words) <= _WIDEST_VALUE else f"[{len(value)}]"
    return type(value).__name__
