"""What a function declares, and what its code refers to: modules, and random generators.

A function that speaks of numpy, or asks for its ``rng``, is given arrays; one with a generator of
its own, such as a global ``rng = numpy.random.default_rng()``, is reproducible only where that is
seeded for each call.
"""

from __future__ import annotations

import functools
import inspect
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Literal

import numpy as np
import torch

from ..random import child_seed

Generator = np.random.Generator | np.random.RandomState | random.Random | torch.Generator
_OWN = __name__.partition(".")[0]
_TORCH, _NUMPY = {"torch", _OWN}, {"numpy", "scipy", "math", "numba", "pandas", "jax"}


def language(function: Any) -> Literal["torch", "numpy"] | None:
    """The library whose arrays a function works on, as far as its code tells."""
    roots = {_root(value) for value in _referred(function) if value is not function}
    if roots & _TORCH:
        return "torch"
    return "numpy" if roots & _NUMPY or "rng" in signature_of(function) else None


def parameters_of(function: Callable[..., Any]) -> set[str]:
    """Names of the parameters a callable declares; empty where it cannot be inspected."""
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


def signature_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The parameters a callable declares, without those that a partial has filled in."""
    try:
        found = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}
    filled = function.keywords if isinstance(function, functools.partial) else {}
    return {name: part for name, part in found.items() if name not in filled}


def generators_of(function: Any) -> tuple[Generator, ...]:
    """The random generators that a function holds, in the order its code names them."""
    return tuple(value for value in _referred(function) if isinstance(value, Generator))


@contextmanager
def seeded(generators: tuple[Generator, ...], seed: int) -> Iterator[None]:
    """Run code with these generators at ``seed``, then put them back to where they were."""
    states = [_state(generator) for generator in generators]
    try:
        for k, generator in enumerate(generators):
            _start(generator, child_seed(seed, k))
        yield
    finally:
        for generator, state in zip(generators, states, strict=True):
            _restore(generator, state)


def _state(generator: Generator) -> Any:
    if isinstance(generator, np.random.Generator):
        return generator.bit_generator.state
    if isinstance(generator, random.Random):
        return generator.getstate()
    return generator.get_state()


def _start(generator: Generator, seed: int) -> None:
    if isinstance(generator, np.random.Generator):
        bits: Any = type(generator.bit_generator)
        generator.bit_generator.state = bits(seed).state
    elif isinstance(generator, torch.Generator):
        generator.manual_seed(seed)
    else:
        generator.seed(seed % (1 << 32))


def _restore(generator: Generator, state: Any) -> None:
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = state
    elif isinstance(generator, random.Random):
        generator.setstate(state)
    else:
        generator.set_state(state)


def _root(value: Any) -> str:
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0]
    named = value if isinstance(value, type | FunctionType) else type(value)
    return str(getattr(named, "__module__", "")).partition(".")[0]


def _referred(function: Any) -> Iterator[Any]:
    """The function, and what it and the functions and objects of its module refer to."""
    if not isinstance(function, FunctionType):  # what stands around one
        function = inspect.unwrap(function)
    seen, waiting = set[int](), [function]
    home = getattr(_plain(function), "__module__", None)
    while waiting:
        value = waiting.pop(0)
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        waiting += _neighbours(value, home, value is function)


def _plain(function: Any) -> Any:
    """The Python function behind partials, methods, compilers and objects that can be called."""
    while isinstance(function, functools.partial | MethodType):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    function = getattr(function, "py_func", function)  # behind numba's compiler
    return function if isinstance(function, FunctionType) else type(function).__call__


def _neighbours(value: Any, home: str | None, first: bool) -> list[Any]:
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if _root(value) == "numba" and hasattr(value, "py_func"):
        return [value.py_func]
    if isinstance(value, FunctionType):
        return _names_of(value) if first or value.__module__ == home else []
    own = type(value).__module__ == home or first
    if not own or isinstance(value, type | ModuleType):
        return []
    methods = [part for part in vars(type(value)).values() if isinstance(part, FunctionType)]
    return [*getattr(value, "__dict__", {}).values(), *methods]


def _names_of(function: FunctionType) -> list[Any]:
    """What the code of a function names: globals, modules it imports, cells, defaults."""
    scope, imports = function.__globals__, ("numpy", "scipy", "torch")
    found = []
    for name in _names_in(function.__code__):
        if name in scope:
            found.append(scope[name])
        elif name in imports and name in sys.modules:
            found.append(sys.modules[name])
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # not filled yet
            continue
    return [*found, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def _names_in(code: CodeType) -> list[str]:
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    return [*code.co_names, *(name for part in inner for name in _names_in(part))]
