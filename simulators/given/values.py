"""What a simulator returns, in whatever form, as float32: a row (p,), or rows (n, p).

Names of values are known where it returns a dict, a named tuple or a pandas object; the order of
the first one that was seen holds for all, and for the observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

_NESTED = (Tensor, np.ndarray, list, tuple, Mapping)


def as_float(values: Any) -> Tensor:
    """Real numbers of any kind as float32 on the CPU; what it cannot hold becomes infinite.

    Raises:
        TypeError: if they are complex, no numbers, or nothing.
    """
    if values is None:
        raise TypeError("`simulator` returned None; end it with `return` and the simulated values.")
    if not isinstance(values, Tensor):
        array = np.asarray(values)
        try:
            array = array if np.iscomplexobj(array) else array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"`simulator` must return numbers; got {values!r:.60}.") from error
        values = torch.as_tensor(array)
    if values.is_complex():
        raise TypeError(
            f"`simulator` must return real numbers; got {values.dtype}. "
            "Return real and imaginary parts as values of their own, or the absolute value."
        )
    rows: Tensor = values.detach().to("cpu", torch.float32)
    return rows


def named_parts(values: Any) -> dict[str, Any] | None:
    """The values by their names, where they have some: of a dict, a named tuple, a row or table."""
    if isinstance(values, Mapping):
        return {str(name): part for name, part in values.items()}
    if isinstance(values, tuple) and hasattr(values, "_asdict"):
        return dict(values._asdict())
    if type(values).__module__.partition(".")[0] != "pandas":
        return None
    labels = list(values.columns if hasattr(values, "columns") else values.index)
    if not all(isinstance(label, str) for label in labels):
        return None
    return {label: values[label] for label in labels}


def as_row(values: Any, names: tuple[str, ...] = ()) -> Tensor:
    """One simulation as a row (p,): nested values one after the other, named ones by ``names``."""
    parts = named_parts(values)
    if parts is not None:
        values = _in_order(parts, names)
    nested = isinstance(values, list | tuple) and any(isinstance(v, _NESTED) for v in values)
    if nested:
        return torch.cat([as_row(part) for part in values])
    return as_float(values).reshape(-1)


def as_rows_of(values: Any, count: int, names: tuple[str, ...] = (), lists: bool = False) -> Tensor:
    """Many simulations as rows (count, p), or as they are where they are not one row a theta.

    Args:
        values: an array (n, ...), a list of rows, or columns: a dict, a table or a tuple.
        count: how many theta there were.
        names: the order of named columns.
        lists: whether a list holds columns, too.
    """
    parts = named_parts(values)
    if parts is not None:
        values = tuple(_in_order(parts, names))
    if isinstance(values, tuple) or (lists and isinstance(values, list)):
        columns = [as_float(part) for part in values]
        if any(column.ndim == 0 or len(column) != count for column in columns):
            sizes = [tuple(column.shape) for column in columns]
            raise ValueError(f"`simulator` must return columns of {count} values; got {sizes}.")
        return torch.cat([column.reshape(count, -1) for column in columns], dim=1)
    rows = as_float(values)
    one_each = rows.ndim != 2 and rows.ndim > 0 and len(rows) == count > 0
    return rows.reshape(count, -1) if one_each else rows


def _in_order(parts: dict[str, Any], names: tuple[str, ...]) -> list[Any]:
    if not names:
        return list(parts.values())
    if set(parts) != set(names):
        raise ValueError(
            f"`simulator` must return the same names each time; got {', '.join(parts)}, and "
            f"{', '.join(names)} before."
        )
    return [parts[name] for name in names]
