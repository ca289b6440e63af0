"""What is imported as it is first used: names of a package, and libraries that are extras."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any


def lazily(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package whose public names live in its modules.

    Args:
        package: ``__name__`` of the package.
        homes: Public name -> the module of the package that it is in, or that it is.

    Returns:
        A function name -> what it names, which is imported once and then kept on the package. A
        name that is not in ``homes`` raises ``AttributeError``. Beside it, one that gives
        ``__all__``: what a user needs, for rooms are found in docs/architecture.md.
    """

    def load(name: str) -> Any:
        if name not in homes:
            words = f"module {package!r} has no attribute {name!r}"
            # With these two, Python asks whether a name like it was meant.
            raise AttributeError(words, name=name, obj=sys.modules[package])
        home = import_module(f".{homes[name]}", package)
        found = home if name == homes[name] else getattr(home, name)
        setattr(sys.modules[package], name, found)
        return found

    return load, lambda: sys.modules[package].__all__


def check_installed(what: str, *modules: str) -> None:
    """Refuse before the work what needs an extra that is missing.

    Args:
        what: was asked for, as its user named it.
        modules: that it imports.

    Raises:
        ValueError: naming what was asked for and what to install.
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ValueError(f"`{what}` needs {' and '.join(missing)}: install abi-toolkit[plots].")
