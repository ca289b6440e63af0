"""From the words of a command line to objects and arrays; nothing is unpickled."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..origin import load_object


def load_instance(spec: str, option: str) -> Any:
    """Import ``module:object``; a class is called without arguments."""
    found = load_object(spec, option)
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
