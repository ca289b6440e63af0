"""A plain function as a seeded simulator, whatever it takes and returns."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor

from ..arguments import refuse_class
from ..base import SeededSimulator
from ..random import child_seed, isolated_rng, stream_seed, torch_generator
from .reads import Generator, generators_of, language, parameters_of, seeded, signature_of
from .values import as_row, as_rows_of

_ASKS = ("seed", "rng", "generator", "random_state")
"""Arguments by which a function asks for a random generator."""
_INSTEAD = ". Pass the function itself, not what it returns"
_SEEDS = 1 << 32  # what numpy's global stream takes, too


@dataclass(frozen=True)
class Form:
    """How a function is called.

    Attributes:
        batched: with many theta at a time, or with one.
        takes: ``"theta"``: (n, d), or (d,) of one; ``"row"``: one as (1, d); ``"numbers"``: an
            argument a parameter, a column (n,) or a number of one; ``"mapping"``: a dict of these.
        names: of the arguments, in the order of the parameters.
        numpy: whether it takes numpy's arrays, float64, and floats; torch's float32 otherwise.
        values: names of what it returns, in order, where it names them.
    """

    batched: bool = False
    takes: Literal["theta", "row", "numbers", "mapping"] = "theta"
    names: tuple[str, ...] = ()
    numpy: bool = False
    values: tuple[str, ...] = ()

    def arguments(self, theta: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What one call is made with: theta (n, d), or (d,) of one."""
        if self.takes in ("numbers", "mapping"):
            columns = theta.unbind(-1)
            kinds = [self._kind(column) for column in columns]
            named = dict(zip(self.names, kinds, strict=True))
            return ((named,), {}) if self.takes == "mapping" else ((), named)
        theta = theta.clone()  # the function may write into what it is given
        return (self._kind(theta[None] if self.takes == "row" else theta),), {}

    def _kind(self, values: Tensor) -> Any:
        if not self.numpy:
            return values.clone()
        return float(values) if values.ndim == 0 else values.double().numpy()

    def __str__(self) -> str:
        """In words, for errors."""
        if self.takes == "mapping":
            return f"a dict of {', '.join(self.names)}"
        library = "numpy" if self.numpy else "torch"
        if self.takes == "numbers":
            what = "columns" if self.batched else "numbers"
            return f"{what} {', '.join(self.names)} in {library}"
        shape = "(n, d)" if self.batched else "(1, d)" if self.takes == "row" else "(d,)"
        return f"theta {shape} in {library}"


@dataclass(frozen=True)
class FunctionSimulator:
    """A plain function as a seeded simulator.

    Each call of the function runs with the global random streams of Python, numpy and torch, and
    the generators that its code names, seeded for it and restored afterwards; a function with an
    argument ``seed``, ``rng``, ``generator`` or ``random_state`` is given one. Called with one
    theta at a time, row i depends on ``(seed, first_row + i)`` alone; with many, its noise depends
    on ``(seed, first_row)`` and on how many rows it is given at once.
    """

    function: Callable[..., Any]
    form: Form

    @property
    def batched(self) -> bool:
        """Whether the function takes many theta a call."""
        return self.form.batched

    @property
    def row_wise(self) -> bool:
        """Whether the function sees one theta a call, so that any cut gives the same rows."""
        return not self.batched

    @property
    def failure_reason(self) -> Callable[[Tensor, Tensor], str | None] | None:
        """What the function offers to explain rows that are not finite."""
        return getattr(self.function, "failure_reason", None)

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, d) -> x (n, p), float32."""
        seed = stream_seed(seed)
        own, form = generators_of(self.function), self.form
        if form.batched:
            values = self.call(theta, child_seed(seed, first_row), own)
            columns = form.takes == "numbers"
            return as_rows_of(values, len(theta), form.values, lists=columns)
        rows = [
            as_row(self.call(row, child_seed(seed, first_row + i), own), form.values)
            for i, row in enumerate(theta)
        ]
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            raise ValueError(
                f"`simulator` must return the same number of values for every theta; "
                f"got {min(widths)} and {max(widths)}."
            )
        return torch.stack(rows)

    def call(self, theta: Tensor, seed: int, own: tuple[Generator, ...]) -> Any:
        """One call of the function, as it returns it."""
        given, named = self.form.arguments(theta)
        with isolated_rng(seed), seeded(own, seed):
            return self.function(*given, **named, **asked_for(self.function, seed, named))


def as_seeded(simulator: Callable[..., Any]) -> SeededSimulator:
    """Return a simulator whose rows are seeded; a plain function is taken as batched."""
    refuse_other(simulator)
    if is_seeded(simulator):
        return cast(SeededSimulator, simulator)
    return FunctionSimulator(simulator, declared_form(simulator) or Form(batched=True))


def refuse_other(simulator: Any, name: str = "simulator", order: str = "") -> None:
    """Refuse what is no function: a class, or what cannot be called.

    Args:
        simulator: what was given as one.
        name: of the argument.
        order: of the arguments, for a prior in this place.

    Raises:
        TypeError: naming what it is.
    """
    refuse_class(simulator, name)
    if not callable(simulator):
        prior = hasattr(simulator, "sample") and order
        raise TypeError(
            f"`{name}` must be a callable theta (n, d) -> x (n, p); got {type(simulator).__name__}"
            f"{f', a prior. The order of the arguments is {order}' if prior else _INSTEAD}."
        )


def declared_form(function: Callable[..., Any]) -> Form | None:
    """How a function says that it is called, as commands do."""
    form = getattr(function, "form", None)
    return form if isinstance(form, Form) else None


def is_seeded(simulator: Callable[..., Any]) -> bool:
    """Whether a simulator makes the promise of a :class:`~simulators.SeededSimulator`."""
    return {"seed", "first_row"} <= parameters_of(simulator)


def asked_for(function: Callable[..., Any], seed: int, named: Any = ()) -> dict[str, Any]:
    """The seeds and generators that a function asks for by the names of its arguments.

    ``seed`` and ``random_state`` are whole numbers below 2^32, ``rng`` a generator of numpy;
    ``generator`` is one of torch where the function works on tensors, else one of numpy.
    """
    found = dict[str, Any]()
    for name in asking(function):
        if name in named:  # a parameter of that name
            continue
        if name in ("seed", "random_state"):
            found[name] = seed % _SEEDS
        elif name == "generator" and language(function) != "numpy":
            found[name] = torch_generator(child_seed(seed, 1, 0))
        else:
            found[name] = np.random.default_rng(child_seed(seed, 1, 0))
    return found


def asking(function: Callable[..., Any]) -> list[str]:
    """Names of the arguments by which a function asks for a seed or a generator."""
    declared = signature_of(function)
    return [name for name in _ASKS if name in declared and _is_open(declared[name].default)]


def _is_open(default: Any) -> bool:
    """Whether an argument with that default may be filled: not if it is something else's."""
    unset = default is None or default is inspect.Parameter.empty
    return unset or isinstance(default, int | Generator)
