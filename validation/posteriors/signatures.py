"""What a callable declares, and whose it is, without importing anything."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch


def comes_from(obj: Any, *packages: str) -> bool:
    """Whether the object's class, or one it inherits from, is of one of ``packages``."""
    return any(cls.__module__.split(".")[0] in packages for cls in type(obj).__mro__)


def arguments(function: Callable[..., Any]) -> list[str]:
    """Names of its parameters, in order; none where it cannot be inspected."""
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def num_required(function: Callable[..., Any]) -> int:
    """Positional arguments without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 0
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is p.empty for p in parameters)


def seeded(function: Callable[..., Any], target: Any = None) -> Callable[..., Any]:
    """A function with a ``seed`` is given one of the global stream, which stands at the test's.

    Its default would repeat the same noise in every batch and for every seed of a test.
    """
    if "seed" not in arguments(target or function):
        return function
    return lambda *values, **named: function(*values, **named, seed=int(torch.randint(1 << 31, ())))
