"""What a study of power repeats: a whole test on new pairs every time, p-values in return."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from ..methods.registry import METHODS
from ..perturbations import Task
from ..perturbations.described import described
from ..results.result import ValidationResult
from ..seeds import part_seed


@runtime_checkable
class Trial(Protocol):
    """A test as a study runs it.

    :class:`WholeTest` trains and tests on the pairs of every repetition, as a user does; the trials
    of :mod:`~validation.laboratory.trained_tests` train once and judge many batches, as two of the
    papers do.
    """

    def p_values(self, task: Task, num_pairs: int, repetitions: int, seed: int) -> list[float]:
        """One p-value a repetition, each on ``num_pairs`` new pairs; the same for the same seed."""
        ...


@dataclass(frozen=True)
class WholeTest:
    """A test that is trained and made anew on the pairs of every repetition, as a user does."""

    method: str | Callable[..., ValidationResult]
    """A name in :data:`validation.METHODS`, or a function ``(q, theta, x, *, seed, ...)``."""
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Its other arguments."""
    fresh: bool = False
    """Whether it is also given new draws from p, as conformal C2ST is in its paper."""

    def __post_init__(self) -> None:
        if isinstance(self.method, str) and self.method not in METHODS:
            raise ValueError(
                f"`method` must be a name among {', '.join(METHODS)}, or a function; "
                f"got {self.method!r}."
            )

    def p_values(self, task: Task, num_pairs: int, repetitions: int, seed: int) -> list[float]:
        """One p-value for each repetition."""
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
    raise TypeError(f"`method` must hold names, functions or trials; got {type(test).__name__}.")


def named_trials(method: Any) -> dict[str, Trial]:
    """Tests by name: those of a mapping, else each test's own.

    Raises:
        TypeError: if something is no test.
        ValueError: if there is none, or two have one name.
    """
    if not isinstance(method, Mapping):
        alone = isinstance(method, str | Trial) or callable(method)
        tests = list(method) if isinstance(method, Iterable) and not alone else [method]
        named = {_name_of(as_trial(test)): test for test in tests}
        if len(named) < len({id(test) for test in tests}):
            raise ValueError(
                "`method` holds two tests of one name; give a mapping from names of yours."
            )
        method = named
    if not method:
        raise ValueError("`method` must name at least one test.")
    return {name: as_trial(test) for name, test in method.items()}


def settings_of(trials: Mapping[str, Trial], kept: bool) -> dict[str, str]:
    """The settings of every test in words.

    Raises:
        ValueError: if cells are ``kept`` and a test has settings that cannot be read.
    """
    argument = "method" if kept else None
    return {name: described(trial, argument) for name, trial in trials.items()}


def _name_of(trial: Trial) -> str:
    test = getattr(trial, "method", trial)  # of a WholeTest
    return test if isinstance(test, str) else getattr(test, "__name__", type(test).__name__)
