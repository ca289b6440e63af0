"""What an experiment is: failures, tests, sizes, and what the paper printed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from validation.perturbations import Failure


class Published(NamedTuple):
    """A rejection rate as a paper prints it."""

    mean: float
    standard_error: float
    """Over its seeds; 0 where it gives none."""


@dataclass(frozen=True, eq=False)
class Part:
    """One failure, some tests, some strengths: a panel of a figure, or columns of a table."""

    label: str
    """What ``--part`` calls it."""
    failure: Failure | Callable[[Path, bool], Failure]
    """Itself; or a function that trains a network for it, given the folder that keeps the network
    and whether to show progress."""
    tests: Mapping[str, Any]
    """Name -> trial, see :func:`validation.power`."""
    strengths: tuple[float, ...]
    num_pairs: int
    repetitions: int
    """Batches a seed."""
    num_seeds: int
    published: Mapping[tuple[str, float], Published] = field(default_factory=dict)
    """(test, strength) -> what the paper has in print."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """A table or a figure of a paper."""

    title: str
    source: str
    """Paper, table, figure."""
    setting: str
    """How it is done here, and where that differs."""
    parts: tuple[Part, ...]
