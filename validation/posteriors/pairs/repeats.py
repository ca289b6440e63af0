"""Pairs that are there more than once: no new evidence, though every test would count them so."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_LEAST_SHARE = 0.01
"""Of the pairs; fewer that repeat change no p-value."""
_NEARLY_ALL = 0.95
"""Of the values of a continuous parameter are different: float32 has few ties of its own."""

_told: ContextVar[bool] = ContextVar("_told", default=False)


@contextmanager
def told_of_repeats() -> Iterator[None]:
    """Say nothing more of repeated pairs: a test inside others is given pairs they have seen."""
    token = _told.set(True)
    try:
        yield
    finally:
        _told.reset(token)


def warn_of_repeats(theta: Tensor, x: Tensor) -> None:
    """Warn where pairs theta (N, d), x (N, p) are there more than once and not by chance.

    Discrete theta and x repeat with reason, and then a theta comes with several x, or is made of
    whole numbers. So pairs count as copied where a parameter is continuous: its values are no whole
    numbers, and nearly all are different once repeated pairs are left out. One pair alone that
    repeats is an atom of the prior.
    """
    if _told.get() or len(theta[:, :1].unique()) == len(theta):
        return
    kinds, counts = _kinds(torch.cat([theta, x], dim=1))
    repeated = int((counts > 1).sum())
    if repeated < 2 or repeated < _LEAST_SHARE * len(counts):
        return
    if any(map(_is_continuous, theta[kinds].T)):
        warn_once(
            f"`theta` and `x` hold {len(counts)} different pairs in {len(theta)} rows. Rows that "
            "repeat others are no evidence, but tests count them: exact posteriors are rejected. "
            "Drop them."
        )


def warn_once(message: str) -> None:
    """Warn the caller of this package, unless a test inside others would say it again."""
    if not _told.get():
        warnings.warn(message, UserWarning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """How many frames up from the caller of this function the first that is not ours stands."""
    frame, level = sys._getframe(1), 1
    while frame.f_back and frame.f_globals.get("__name__", "").split(".")[0] == "validation":
        frame, level = frame.f_back, level + 1
    return level


def _kinds(rows: Tensor) -> tuple[Tensor, Tensor]:
    """The first row of each kind of equal rows, and how many there are, both (u,)."""
    first: dict[bytes, int] = {}
    counts: dict[bytes, int] = {}
    for i, row in enumerate((rows + 0.0).numpy()):  # adding zero makes -0.0 and 0.0 the same
        key = row.tobytes()
        first.setdefault(key, i)
        counts[key] = counts.get(key, 0) + 1
    return torch.tensor(list(first.values())), torch.tensor(list(counts.values()))


def _is_continuous(values: Tensor) -> bool:
    whole = bool((values == values.round()).all())
    return not whole and len(values.unique()) >= _NEARLY_ALL * len(values)
