"""Settings in words: the same in every process, and others for other settings.

Cells of a study and the files of a failure are found again by them. A function or class is known
by its module and name, numbers and text as they are, arrays and networks by a hash of what they
hold, other objects by their type and attributes, as pickle would keep them.
"""

from __future__ import annotations

import copyreg
import hashlib
import sys
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import ReferenceType

import numpy as np
import torch
from torch import Tensor, nn

_PLAIN = (str, bytes, int, float, complex, type(None), type(...), Enum, np.generic)
_OWN_OF_MODULES = frozenset(vars(nn.Module()))
"""Attributes that torch gives every module."""


def described(value: Any, argument: str | None = None) -> str:
    """Settings in words.

    Args:
        value: the settings.
        argument: what it is called where the words must tell it from all others; where omitted,
            the type stands for what cannot be read.

    Raises:
        ValueError: if ``argument`` is named and something in ``value`` cannot be read, such as a
            lock, a generator or a C++ object.
    """
    describer = _Describer()
    words = describer.words(value)
    if describer.unread and argument is not None:
        raise ValueError(
            f"`{argument}` holds a {describer.unread[0]}, whose settings cannot be read, so that "
            "what is kept could be another's; hold arrays, numbers and functions instead."
        )
    return words


class _Describer:
    """One description under way."""

    def __init__(self) -> None:
        self.unread: list[str] = []
        """Types of what could not be read."""
        self.open: list[int] = []
        """What the words are inside of, by identity: an object may hold itself."""

    def words(self, value: Any) -> str:
        if isinstance(value, _PLAIN):
            return repr(value)
        if id(value) in self.open:
            return "itself"
        self.open.append(id(value))
        try:
            return self._of(value)
        # Whatever an object's own methods raise, it could not be read.
        except Exception:
            return self._unread(value)
        finally:
            self.open.pop()

    def _of(self, value: Any) -> str:  # noqa: PLR0911 - one line a kind
        if isinstance(value, nn.Module):
            return self._network(value)
        if isinstance(value, Tensor):
            return f"{value.dtype} {tuple(value.shape)} {_digest(_tensor_bytes(value))}"
        if type(value) in (np.ndarray, np.memmap):
            return self._array(value)
        if is_dataclass(value) and not isinstance(value, type):
            parts = (f"{f.name}={self.words(getattr(value, f.name))}" for f in fields(value))
            return f"{type(value).__name__}({', '.join(parts)})"
        if isinstance(value, partial):
            places = f"{self.words(value.args)} and " if value.args else ""
            return f"{self.words(value.func)} with {places}{self.words(value.keywords)}"
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, list | tuple | Set):
            return self._collection(value)
        if isinstance(value, ReferenceType):
            return self.words(value())
        if isinstance(value, ModuleType):
            return value.__name__
        if isinstance(value, type) or _is_found(value):
            return _name(value)
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType | BuiltinFunctionType):
            return self._method(value)
        return self._object(value)

    def _unread(self, value: Any) -> str:
        self.unread.append(_name(type(value)))
        return _name(type(value))

    def _mapping(self, value: Mapping[Any, Any]) -> str:
        plain: dict[Any, Any] = {
            k if isinstance(k, _PLAIN) else self.words(k): v for k, v in value.items()
        }
        try:
            keys = sorted(plain)
        except TypeError:  # of several types
            keys = sorted(plain, key=repr)
        return "{" + ", ".join(f"{key}: {self.words(plain[key])}" for key in keys) + "}"

    def _collection(self, value: Any) -> str:
        """A list, tuple or set as Python writes it; a set in the order of its words."""
        parts, kind = [self.words(part) for part in value], type(value)
        if isinstance(value, Set):
            whole = "{" + ", ".join(sorted(parts)) + "}"
            return whole if kind is set and parts else f"{kind.__name__}({whole if parts else ''})"
        if isinstance(value, list):
            whole = f"[{', '.join(parts)}]"
        else:
            whole = f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
        return whole if kind in (list, tuple) else f"{kind.__name__}{whole}"

    def _array(self, value: np.ndarray) -> str:
        held = self.words(value.tolist()) if value.dtype.hasobject else _digest(value.tobytes())
        return f"{value.dtype} {value.shape} {held}"

    def _network(self, network: nn.Module) -> str:
        """Its type, and a hash of the weights and attributes of all its modules."""
        # Buffers that a state leaves out count too.
        tensors = dict(network.named_buffers()) | network.state_dict()
        modules = [
            (name, _name(type(part)), _attributes(part))
            for name, part in network.named_modules(remove_duplicate=False)
        ]
        inside = self.words(tensors) + self.words(modules)
        return f"{_name(type(network))} {_digest(inside.encode())}"

    def _function(self, value: FunctionType) -> str:
        """One that no module holds under its name: what made it is in closure and defaults."""
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        # A cell is empty where its variable is yet to be set.
        inside = {name: cell.cell_contents for name, cell in cells if cell != type(cell)()}
        held: dict[str, Any] = {
            "closure": inside,
            "defaults": value.__defaults__,
            "keywords": value.__kwdefaults__,
            # All lambdas of a place have one name.
            "code": _code(value.__code__) if value.__name__ == "<lambda>" else None,
        }
        held = {key: part for key, part in held.items() if part}
        return _name(value) + (f" with {self.words(held)}" if held else "")

    def _method(self, value: Any) -> str:
        owner = value.__self__
        if owner is None or isinstance(owner, ModuleType | type):
            return _name(value)
        return f"{_name(value)} of {self.words(owner)}"

    def _object(self, value: Any) -> str:
        """Its own words where they can be trusted, else type and attributes."""
        kind: Any = type(value)
        # An estimator of scikit-learn writes all its parameters.
        told = not hasattr(value, "__dict__") or hasattr(value, "get_params")
        if told and not callable(value) and kind.__repr__ is not object.__repr__:
            shown = repr(value)
            if " at 0x" not in shown and "..." not in shown:
                return shown
        kept = value.__reduce_ex__(4)
        # Text is a global name, and that was looked up; a bare object() is nothing but itself.
        if isinstance(kept, str) or kind is object:
            return self._unread(value)
        make, arguments, state, items, pairs = (*kept, None, None, None)[:5]
        if make is copyreg.__newobj__:  # type: ignore[attr-defined]  # typeshed leaves it out
            arguments = arguments[1:]
            name = _name(kind)
        else:
            name = f"{_name(kind)} by {self.words(make)}"
        parts = (arguments, state, list(items or ()), list(pairs or ()))
        held = [part for part in parts if not _is_nothing(part)]
        return name + (f" with {' and '.join(map(self.words, held))}" if held else "")


def _name(value: Any) -> str:
    """Module and name of a function or class."""
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    return f"{getattr(value, '__module__', None)}.{name}"


def _is_found(value: Any) -> bool:
    """Whether a module holds it under its name, so that the name is enough."""
    name, found = getattr(value, "__qualname__", None), getattr(value, "__module__", None)
    if not isinstance(name, str) or not isinstance(found, str):
        return False
    held: Any = sys.modules.get(found)
    for part in name.split("."):
        held = getattr(held, part, None)
    return held is value


def _attributes(module: nn.Module) -> dict[str, Any]:
    """What a module has besides weights and modules, its hooks in their order."""
    found = {}
    for key, value in vars(module).items():
        if key not in _OWN_OF_MODULES:
            found[key] = value
        elif key not in ("_parameters", "_buffers", "_modules") and value:
            # Hooks have numbers of the process for keys.
            found[key] = list(value.values()) if isinstance(value, dict) else value
    return found


def _code(code: CodeType) -> tuple[Any, ...]:
    """What a function does, without where it stands."""
    constants = [_code(part) if isinstance(part, CodeType) else part for part in code.co_consts]
    return _digest(code.co_code), constants, code.co_names


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, tuple | list | dict) and not value)


def _tensor_bytes(value: Tensor) -> bytes:
    plain = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
    return plain.reshape(-1).view(torch.uint8).numpy().tobytes()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
