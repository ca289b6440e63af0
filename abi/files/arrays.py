"""Numbers from a user's files: .npy, .npz and .csv; nothing is unpickled."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

_ENCODING = "utf-8-sig"  # a spreadsheet may begin a file with a byte-order mark


def load_array(path: Path, option: str, key: str | None = None) -> Tensor:
    """Read numbers from .npy, .npz or .csv (commas; ``#`` comments and a header are skipped).

    A .csv is a table always: one column gives (n, 1), one line (1, d).

    Args:
        path: the file.
        option: what it was given to, for the error.
        key: the array to take from a .npz; the only one when omitted.

    Raises:
        ValueError: if the file does not exist, is of another kind, or does not hold numbers.
    """
    if not path.is_file():
        raise ValueError(
            f"`{option}`: no file {path}. Numbers are read from a file: .npy, .npz or .csv."
        )
    try:
        values = _read(path, key)
        if values.dtype.kind not in "iufb":
            raise ValueError(f"its values are of type {values.dtype}")
    except (ValueError, KeyError, OSError, EOFError, BadZipFile, TypeError) as error:
        raise ValueError(f"`{option}`: {path} could not be read as numbers: {error}.") from error
    return torch.from_numpy(np.ascontiguousarray(values)).float()


def holds_array(path: Path, key: str) -> bool:
    """Whether an .npz has this array."""
    with np.load(path, allow_pickle=False) as arrays:
        return key in arrays.files


def _read(path: Path, key: str | None) -> Any:
    if key is not None and path.suffix != ".npz":
        raise ValueError(f"it must be an .npz that holds {key!r} among its arrays")
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    if path.suffix == ".npz":
        # Opened here, for numpy leaves a damaged one open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            if key is None and len(arrays.files) != 1:
                raise ValueError(f"it holds {len(arrays.files)} arrays, not one: {arrays.files}")
            return arrays[key or arrays.files[0]]
    if path.suffix in (".csv", ".txt"):
        skipped = _header_lines(path)
        return np.loadtxt(path, delimiter=",", skiprows=skipped, ndmin=2, encoding=_ENCODING)
    raise ValueError("the file must end in .npy, .npz or .csv")


def _header_lines(path: Path) -> int:
    """Lines before the first one of numbers: comments, and one of names at most."""
    names = False
    for skipped, line in enumerate(path.read_text(encoding=_ENCODING).splitlines()):
        content = line.split("#")[0].strip()
        if not content:
            continue
        fields = content.split(",")
        wrong = [field for field in fields if not _is_number(field)]
        if not wrong:
            return skipped
        if names or len(wrong) < len(fields):  # a row that would be lost as if it were names
            raise ValueError(
                f"line {skipped + 1} holds {wrong[0]!r}, which is no number. Write numbers with "
                "commas between them, and a decimal point"
            )
        names = True
    raise ValueError("no line of numbers. Write numbers with commas between them")


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
