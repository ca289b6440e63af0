"""What an argument may be: one rule for each kind, and one sentence for what breaks it.

A rule takes a value and its name, and gives the value in a plain form that files can hold:
:func:`settle` applies one to each field of a dataclass of settings.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .random import as_count

Rule = Callable[[Any, str], Any]
"""(value, name) -> the value in its plain form, or a ValueError that names it."""


def require(holds: bool, name: str, rule: str, value: object) -> None:
    """Refuse a value by the argument's name and the rule it breaks.

    Raises:
        ValueError: unless the rule holds.
    """
    if not holds:
        raise ValueError(f"`{name}` must be {rule}; got {value!r}.")


def settle(settings: object, **rules: Rule) -> None:
    """Check the fields of a frozen dataclass, each by its rule, and keep their plain forms."""
    for name, rule in rules.items():
        object.__setattr__(settings, name, rule(getattr(settings, name), name))


def count(least: int = 1) -> Rule:
    """A whole number of at least ``least``."""
    return partial(as_count, least=least)


def number(rule: str, holds: Callable[[float], bool]) -> Rule:
    """A finite real number for which something holds, which ``rule`` says in words."""

    def checked(value: Any, name: str) -> float:
        real = isinstance(value, Real) and not isinstance(value, bool)
        require(real and math.isfinite(value) and holds(value), name, rule, value)
        return value if isinstance(value, int | float) else float(value)

    return checked


def at_least(bound: float) -> Rule:
    """A finite number of at least ``bound``."""
    return number(f"at least {bound:g} and finite", lambda value: value >= bound)


POSITIVE = number("positive and finite", lambda value: value > 0.0)
FRACTION = number("between 0 and 1, without either", lambda value: 0.0 < value < 1.0)
SHARE = number("in (0, 1]", lambda value: 0.0 < value <= 1.0)


def layers(least: int = 0) -> Rule:
    """Widths of at least ``least`` hidden layers; a network without any is linear."""
    rule = "a tuple of whole numbers of at least 1, such as (64, 64)"

    def checked(value: Any, name: str) -> tuple[int, ...]:
        try:
            widths = tuple(as_count(width, name, 1) for width in value)
        except (TypeError, ValueError):
            widths = None
        require(widths is not None and len(widths) >= least, name, rule, value)
        return widths or ()

    return checked


def choice(*names: str) -> Rule:
    """One of some names."""

    def checked(value: Any, name: str) -> str:
        known = isinstance(value, str) and value in names
        require(known, name, f"one of {', '.join(names)}", value)
        return str(value)

    return checked


def flag(value: Any, name: str) -> bool:
    """True or False, and nothing that would be taken for one of them."""
    require(isinstance(value, bool | np.bool_), name, "True or False", value)
    return bool(value)


def of_type(kind: type) -> Rule:
    """An instance of a class."""

    def checked(value: Any, name: str) -> Any:
        require(isinstance(value, kind), name, f"of type {kind.__module__}.{kind.__name__}", value)
        return value

    return checked


def sample_shape(value: Any, name: str = "sample_shape") -> torch.Size:
    """A tuple of numbers of draws as a size."""
    try:
        counts = [operator.index(part) for part in value]
    except TypeError:
        counts = [-1]
    rule = "a tuple of non-negative integers, such as (5,)"
    require(min(counts, default=0) >= 0, name, rule, value)
    return torch.Size(counts)


def refuse_class(value: Any, name: str) -> None:
    """Refuse a class where an object of it is meant.

    Raises:
        TypeError: by the name of the argument, with what to write.
    """
    if isinstance(value, type):
        kind = value.__name__
        raise TypeError(f"`{name}` is the class {kind}: pass an object of it, {kind}(...).")


def as_tensor(values: Any, name: str, dtype: torch.dtype | None = None) -> Tensor:
    """Numbers of any kind and shape as a tensor on the CPU.

    Raises:
        TypeError: if they are no numbers, by the name of the argument.
    """
    try:
        return torch.as_tensor(values).detach().to("cpu", dtype)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            f"`{name}` must be an array or a tensor of numbers; got {values!r:.60}."
        ) from error


def as_path(value: Any, name: str) -> Path:
    """A path of the file system.

    Raises:
        TypeError: if it is none, by the name of the argument.
    """
    try:
        return Path(value)
    except TypeError as error:
        raise TypeError(
            f"`{name}` must be a path, such as 'runs/mine'; got {value!r:.60}."
        ) from error


def as_folder(value: Any, name: str) -> Path:
    """The path of a folder that is there or can be made.

    Raises:
        TypeError: if it is no path.
        ValueError: if a file, or a place where nothing may be written, is in its way.
    """
    path = as_path(value, name)
    present = next(part for part in (path, *path.absolute().parents) if part.exists())
    if not present.is_dir():
        raise ValueError(f"`{name}` must be a folder; {present} is a file. Name another.")
    if not os.access(present, os.W_OK):
        raise ValueError(f"`{name}` {path}: nothing may be written in {present}; name another.")
    return path


def optional(rule: Rule) -> Rule:
    """None, or what the rule allows."""
    return lambda value, name: None if value is None else rule(value, name)


def device_name(value: Any, name: str = "device") -> str:
    """A device by a name that torch knows, here or not: files may come from other machines."""
    try:
        known = isinstance(value, str | torch.device) and str(torch.device(value))
    except RuntimeError:  # an unknown name
        known = False
    require(bool(known), name, 'a device of torch, such as "cpu" or "cuda"', value)
    return str(value)


def device_here(value: Any, name: str = "device") -> str:
    """A device that torch can place a tensor on, seen before anything is spent."""
    device = device_name(value, name)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # how builds without CUDA refuse it
        reason = str(error).splitlines()[0]
        raise ValueError(
            f'`{name}` {device!r} is not to be had here ({reason}); take "cpu", or see abi doctor.'
        ) from error
    return device
