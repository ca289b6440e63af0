"""What a callable declares, and whose it is, without importing anything."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product, takewhile
from typing import Any

import torch
from torch import Tensor

# Names that say what an argument is. Short ones count where they have no default, for a default
# is how a lambda keeps a constant.
_NUMBERS = {"num_samples", "n_samples", "nsamples", "num_draws", "n_draws"}
_SHORT_NUMBERS = {"num", "n", "k", "count"}
_SHAPES = {"sample_shape", "shape"}
_MANY = {"x", "xs", "condition", "conditions", "context", "contexts", "observations"}
_ONE = {"x_o", "x_obs", "observation"}


def comes_from(obj: Any, *packages: str) -> bool:
    """Whether the object's class, or one it inherits from, is of one of ``packages``."""
    return any(cls.__module__.split(".")[0] in packages for cls in type(obj).__mro__)


def arguments(function: Callable[..., Any]) -> list[str]:
    """Names of its parameters, in order; none where it cannot be inspected."""
    return [parameter.name for parameter in _parameters(function)]


def num_required(function: Callable[..., Any]) -> int:
    """Positional arguments without a default, a seed aside."""
    return len(_required(function))


def seeded(function: Callable[..., Any], target: Any = None) -> Callable[..., Any]:
    """A function with a ``seed`` is given one of the global stream, which stands at the test's.

    Its default would repeat the same noise in every batch and for every seed of a test.
    """
    if "seed" not in arguments(target or function):
        return function
    return lambda *values, **named: function(*values, **named, seed=int(torch.randint(1 << 31, ())))


@dataclass(frozen=True)
class Call:
    """One way to ask a sampler for draws: which argument is which, and for how many x at once."""

    amount: str
    """The argument that says how many."""
    x: str
    """The argument that is conditioned on."""
    by_place: tuple[str, ...]
    """Arguments to give by their place, in order; the others go by name."""
    as_shape: bool
    """Whether (K,) is asked for, not K."""
    one_at_a_time: bool
    """Whether it takes a single observation, without an axis of observations."""

    def __call__(self, sampler: Callable[..., Any], num_samples: int, x: Tensor) -> Any:
        """Draws at x (n, ...), or at one x (...)."""
        values = {self.amount: (num_samples,) if self.as_shape else num_samples, self.x: x}
        named = {name: value for name, value in values.items() if name not in self.by_place}
        return sampler(*(values[name] for name in self.by_place), **named)

    def __str__(self) -> str:
        """As it would be written, for errors."""
        words = {
            self.amount: "(num_samples,)" if self.as_shape else "num_samples",
            self.x: "x_i" if self.one_at_a_time else "x",
        }
        named = [f"{name}={word}" for name, word in words.items() if name not in self.by_place]
        return f"({', '.join([words[name] for name in self.by_place] + named)})"


def calls(function: Callable[..., Any]) -> list[Call]:
    """How a sampler may be called, as its arguments' names tell; the likeliest first.

    One call where the names tell all. None where it is no function of a number and of x.
    """
    required = _required(function)
    named = (*_PLACED, inspect.Parameter.KEYWORD_ONLY)
    pool = [p for p in _parameters(function) if p.kind in named]
    amount = _first(pool, lambda p: _is_number(p) or p.name.lower() in _SHAPES)
    x = _first(pool, lambda p: p.name.lower() in _MANY | _ONE)
    if amount is not None and x is not None:
        if set(required) - {amount, x}:
            return []
        placed = takewhile(lambda p: p.kind in _PLACED and p.name in (amount, x), pool)
        return _forms(amount, x, tuple(p.name for p in placed))
    if len(required) != 2:
        return []
    first, second = required
    orders = [(a, b) for a, b in ((first, second), (second, first)) if b != amount and a != x]
    found = [form for a, b in orders for form in _forms(a, b, (first, second))]
    return sorted(found, key=lambda call: call.one_at_a_time)


_PLACED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _forms(amount: str, x: str, by_place: tuple[str, ...]) -> list[Call]:
    """Number or shape, many x or one: what the two names leave open, the likeliest first."""
    number = amount.lower() in _NUMBERS | _SHORT_NUMBERS
    shapes = [False] if number else [True] if amount.lower() in _SHAPES else [False, True]
    ones = [False, True]
    if x.lower() in _ONE:
        ones = [True, False]
    elif x.lower() in _MANY and (number or x.lower() not in ("x", "xs")):
        ones = [False]  # ``sample(shape, x)`` of sbi's posteriors takes one x, or trials of one
    return [Call(amount, x, by_place, shape, one) for one, shape in product(ones, shapes)]


def _is_number(parameter: inspect.Parameter) -> bool:
    name = parameter.name.lower()
    return name in _NUMBERS or (name in _SHORT_NUMBERS and parameter.default is parameter.empty)


def _first(
    parameters: list[inspect.Parameter], fits: Callable[[inspect.Parameter], bool]
) -> str | None:
    return next((parameter.name for parameter in parameters if fits(parameter)), None)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def _required(function: Callable[..., Any]) -> list[str]:
    placed = [p for p in _parameters(function) if p.kind in _PLACED and p.default is p.empty]
    return [parameter.name for parameter in placed if parameter.name != "seed"]
