"""Numbers out of what people keep them in: tensors, arrays, data frames, nested lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from simulators.base import unresolved


def as_numbers(values: Any, argument: str) -> Tensor:
    """Real numbers of any shape as a tensor on the CPU, in the precision they came in.

    A data frame or a series is one that has ``to_numpy``, whoever made it.

    Raises:
        TypeError: if they are no numbers, by the name of the argument.
        ValueError: if they are lists of different lengths.
    """
    if isinstance(values, Tensor):
        numbers = values.detach().cpu()
        if numbers.is_complex():
            raise TypeError(f"`{argument}` must hold real numbers; got {numbers.dtype}.")
        return numbers
    array = _array(values, argument)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"`{argument}` must be an array of numbers{_not_numbers(values)}; got "
            f"{type(values).__name__}{_hint(values)}."
        )
    single = array.dtype.kind == "f" and array.dtype.itemsize == 4
    # A copy: arrays of pandas cannot be written to, and those in another byte order not be read.
    copied = np.array(array, dtype=np.float32 if single else np.float64, order="C")
    return torch.from_numpy(copied)


def flat_rows(values: Any, argument: str) -> Tensor:
    """Observations (n, ...) as rows (n, p); of shape (n,) they have one value each.

    Raises:
        ValueError: if they are one number.
    """
    rows = as_numbers(values, argument)
    if rows.ndim == 0:
        raise ValueError(
            f"`{argument}` must hold one observation a row; got the number {float(rows):g}."
        )
    return rows[:, None] if rows.ndim == 1 else rows.flatten(1)


def _array(values: Any, argument: str) -> NDArray[Any]:
    """The values as an array; of objects or text where they are no numbers."""
    if values is None or isinstance(values, str):
        return np.array("", dtype=str)
    try:
        array = np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)
    except ValueError as error:
        raise ValueError(
            f"`{argument}` must be an array of numbers; its rows have different lengths."
        ) from error
    except (TypeError, RuntimeError):  # how tensors in a list refuse it
        return np.array("", dtype=str)
    if array.dtype.kind == "O":  # a frame of columns of different kinds, or with missing values
        try:
            missing: dict[str, Any] = {"dtype": float, "na_value": np.nan}
            array = values.to_numpy(**missing) if hasattr(values, "to_numpy") else array
            return np.asarray(array, dtype=np.float64)
        except (TypeError, ValueError):
            return array
    return array


def _not_numbers(values: Any) -> str:
    """Which columns of a data frame are none."""
    if not hasattr(values, "columns"):
        return ""
    kinds = {str(name): _array(values[name], str(name)).dtype.kind for name in values.columns}
    return f", and {[name for name, kind in kinds.items() if kind not in 'biuf']} are not"


def _hint(values: Any) -> str:
    """What a posterior in this place means."""
    posterior = callable(values) or (hasattr(values, "sample") and not hasattr(values, "to_numpy"))
    return ". The order of the arguments is (q, theta, x)" if posterior else ""


def check_resolution(rows: Tensor, name: str) -> None:
    """Refuse columns (N, f) whose values float32 does not tell apart: ties hide what is wrong.

    Raises:
        ValueError: if a column's spread is less than a hundred steps of float32 at its place.
    """
    coarse = unresolved(rows) if rows.dtype == torch.float64 else ""
    if coarse:
        raise ValueError(
            f"`{name}`: {coarse}; subtract a constant from it"
            + (", and the same from q's draws." if name == "theta" else " before q sees it.")
        )


def names_of(values: Any) -> list[str] | None:
    """Names of the columns of a data frame, or of the values of one row of it; else None."""
    names = columns_of(values)
    if names is None and hasattr(values, "to_numpy"):
        index = getattr(values, "index", None)
        return None if index is None or callable(index) else [str(name) for name in index]
    return names


def columns_of(values: Any) -> list[str] | None:
    """Names of the columns of a data frame; None of anything else."""
    names = getattr(values, "columns", None)
    return None if names is None or callable(names) else [str(name) for name in names]
