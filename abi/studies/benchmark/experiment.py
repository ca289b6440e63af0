"""What an experiment is: failures, tests, sizes, and what the paper printed."""

from __future__ import annotations

import math
import sys
import time
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


class Place(NamedTuple):
    """Where an experiment runs, and how."""

    cells: Path
    """The folder that keeps cells, and the networks of failures that have one."""
    seed: int = 0
    """Of everything random."""
    workers: int = 1
    """Processes."""
    end: float | None = None
    """Nothing is begun after this time of the monotonic clock; unlimited when None."""
    progress: bool = False
    """Whether to show progress."""
    images: Path | None = None
    """CIFAR-10's binary files and Inception-v3's weights."""

    @property
    def seconds_left(self) -> float:
        """Until nothing more is begun; 0 from then on."""
        return math.inf if self.end is None else max(self.end - time.monotonic(), 0.0)

    def say(self, line: str) -> None:
        """Tell what was worked, a line each, where progress is to be shown."""
        if self.progress:
            sys.stderr.write(f"{line}\n")


@dataclass(frozen=True, eq=False)
class Part:
    """One failure, some tests, some strengths: a panel of a figure, or columns of a table."""

    label: str
    """What ``--part`` calls it."""
    failure: Failure | Callable[[Place], Failure]
    """Itself; or a function that makes it where the experiment runs, networks and all."""
    tests: Mapping[str, Any]
    """Name -> trial, see :func:`validation.power`."""
    strengths: tuple[float, ...]
    num_pairs: int
    repetitions: int
    """Batches a seed."""
    num_seeds: int
    published: Mapping[tuple[str, float], Published] = field(default_factory=dict)
    """(test, strength) -> what the paper has in print."""
    needs_images: bool = False
    """Whether it can only be run with ``--images``."""


@dataclass(frozen=True)
class Ordering:
    """A statement of a paper, in words, that one test rejects more often than others."""

    says: str
    where: str
    """Section or figure."""
    first: str
    seconds: tuple[str, ...]
    parts: tuple[str, ...] = ()
    """Words that the label of a part holds, all of them."""
    strict: bool = True
    """Whether it says above; else at least as often."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """A table or a figure of a paper."""

    title: str
    source: str
    """Paper, table, figure."""
    setting: str
    """How it is done here, and where that differs."""
    parts: tuple[Part, ...]
    orderings: tuple[Ordering, ...] = ()
