"""From the words of a command line to objects and arrays; nothing is unpickled."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor


def load_object(spec: str, option: str) -> Any:
    """Import ``module:object``; a class is called without arguments.

    The current folder is searched first, as ``python -m`` does.

    Args:
        spec: for example ``simulators:MG1`` or ``mymodule:simulate``.
        option: the command-line option it was given to, for the error.

    Raises:
        ValueError: if the module or the object does not exist, with the names that do.
    """
    module_name, separator, path = spec.partition(":")
    if not separator or not module_name or not path:
        raise ValueError(f"`{option}` must be module:object, such as simulators:MG1; got {spec!r}.")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and not (module_name + ".").startswith(error.name + "."):
            raise ValueError(
                f"`{option}`: module {module_name!r} needs {error.name!r}, which is not installed."
            ) from error
        raise ValueError(
            f"`{option}`: no module named {module_name!r}; run from the folder that holds it, "
            "or install it."
        ) from error
    for name in path.split("."):
        if not hasattr(found, name):
            offered = ", ".join(sorted(n for n in vars(found) if not n.startswith("_")))
            raise ValueError(f"`{option}`: {spec!r} has no {name!r}; it offers: {offered}.")
        found = getattr(found, name)
    return found() if inspect.isclass(found) else found


def load_array(path: Path, option: str, key: str | None = None) -> Tensor:
    """Read numbers from .npy, .npz or .csv (commas; ``#`` comments and a header are skipped).

    Args:
        path: the file.
        option: the command-line option it was given to, for the error.
        key: the array to take from a .npz; the only one when omitted.

    Raises:
        ValueError: if the file does not exist, is of another kind, or does not hold numbers.
    """
    if not path.is_file():
        raise ValueError(f"`{option}`: no file {path}.")
    try:
        values = _read(path, key)
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(f"`{option}`: {path} could not be read as numbers: {error}") from error
    return torch.from_numpy(np.ascontiguousarray(values)).float()


def _read(path: Path, key: str | None) -> Any:
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            if key is None and len(arrays.files) != 1:
                raise ValueError(f"it holds {len(arrays.files)} arrays, not one: {arrays.files}")
            return arrays[key or arrays.files[0]]
    if path.suffix in (".csv", ".txt"):
        return np.loadtxt(path, delimiter=",", skiprows=_header_lines(path), ndmin=1)
    raise ValueError("the file must end in .npy, .npz or .csv")


def _header_lines(path: Path) -> int:
    """Lines before the first one that holds numbers only."""
    for skipped, line in enumerate(path.read_text().splitlines()):
        content = line.split("#")[0].strip()
        if not content:
            continue
        try:
            [float(value) for value in content.split(",")]
        except ValueError:
            continue
        return skipped
    raise ValueError("no line of numbers")
