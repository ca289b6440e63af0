"""What a study of power repeats: a whole test on new pairs every time, p-values in return."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

from .methods import METHODS
from .perturbations import Task
from .result import ValidationResult
from .seeds import part_seed


@runtime_checkable
class Trial(Protocol):
    """A test as a study runs it.

    :class:`WholeTest` trains and tests on the pairs of every repetition, as a user does; the trials
    of :mod:`~validation.trained_tests` train once and judge many batches, as two of the papers do.
    """

    def p_values(self, task: Task, num_pairs: int, repetitions: int, seed: int) -> list[float]:
        """One p-value a repetition, each on ``num_pairs`` new pairs; the same for the same seed."""
        ...


@dataclass(frozen=True)
class WholeTest:
    """A function of :data:`validation.METHODS`, or a user's own, called anew each time."""

    method: str | Callable[..., ValidationResult]
    """Its name, or ``function(q, theta, x, *, seed, ...) -> ValidationResult``."""
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Its settings."""
    fresh: bool = False
    """Whether it is given ``fresh``, new draws from p: conformal C2ST, as published."""

    def __post_init__(self) -> None:
        if isinstance(self.method, str) and self.method not in METHODS:
            raise ValueError(
                f"`methods` must be names among {', '.join(METHODS)}, or functions; "
                f"got {self.method!r}."
            )

    def p_values(self, task: Task, num_pairs: int, repetitions: int, seed: int) -> list[float]:
        """One p-value a repetition."""
        test = METHODS[self.method] if isinstance(self.method, str) else self.method
        keywords = dict(self.keywords) | ({"fresh": task.joint} if self.fresh else {})
        found = []
        for r in range(repetitions):
            theta, x = task.joint(num_pairs, part_seed(seed, 1, r))
            result = test(task.q, theta, x, seed=part_seed(seed, 2, r), **keywords)
            found.append(float(result.p_value))
        return found


def as_trial(test: Any) -> Trial:
    """A trial as it is; a name or a function as a :class:`WholeTest`."""
    if isinstance(test, Trial):
        return test
    if isinstance(test, str) or callable(test):
        return WholeTest(test)
    raise TypeError(f"`methods` must hold names, functions or trials; got {type(test).__name__}.")


def described(value: Any) -> str:
    """Settings in words that are the same in every process, for files to be recognised by."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = (f"{f.name}={described(getattr(value, f.name))}" for f in fields(value))
        return f"{type(value).__name__}({', '.join(parts)})"
    if isinstance(value, partial):
        places = f"{value.args} and " if value.args else ""
        return f"{described(value.func)} with {places}{described(value.keywords)}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {described(value[key])}" for key in sorted(value)) + "}"
    if callable(value):
        return f"{value.__module__}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    return repr(value)
