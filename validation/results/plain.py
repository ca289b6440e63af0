"""What a result holds, in JSON's types: for ``to_dict``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

_LARGEST_TENSOR = 1_000
_LEFT_OUT = object()


def plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Everything in ``values`` that JSON can hold.

    Callables and tensors above 1,000 values are left out; NaN and infinity, which JSON has no word
    for, are None. A record is a mapping, unless something in it would be left out.

    >>> plain({"p": float("nan"), "ranks": torch.ones(2), "draws": torch.ones(5000), "call": print})
    {'p': None, 'ranks': [1.0, 1.0]}
    """
    items = ((str(key), _plain(item)) for key, item in values.items())
    return {key: item for key, item in items if item is not _LEFT_OUT}


def _plain(value: Any) -> Any:
    """``value`` with JSON's types only, or the mark of what JSON cannot hold."""
    if isinstance(value, Mapping):
        return plain(value)
    if is_dataclass(value) and not isinstance(value, type):
        held = {part.name: getattr(value, part.name) for part in fields(value)}
        kept = plain(held)
        return kept if len(kept) == len(held) else _LEFT_OUT
    if isinstance(value, list | tuple):
        return [item for item in map(_plain, value) if item is not _LEFT_OUT]
    if isinstance(value, Tensor | np.ndarray):
        values = torch.as_tensor(value)
        return _plain(values.tolist()) if values.numel() <= _LARGEST_TENSOR else _LEFT_OUT
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else _LEFT_OUT
