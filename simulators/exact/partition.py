"""Exact draws from any density on a box of few dimensions, by cutting the box up.

The box is cut into cells, and each cell that still matters is halved across its steepest side
until the log density varies little in it. The cells then make a proposal that is constant on each,
close to the target and never zero, which :func:`independence_chains` turns into exact draws: the
cut decides how fast, not what comes out. The cut is made first for a tempered density, L^b with
small b, whose peaks are too wide to fall between the cells, and follows the peaks as b grows to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from .independence import independence_chains

Array = NDArray[np.float64]
LogDensity = Callable[[Array], Array]

_TEMPERS = (1.0 / 256.0, 1.0 / 64.0, 1.0 / 16.0, 1.0 / 4.0, 1.0)
_MAX_VARIATION = 1.0
_NEGLIGIBLE = 1e-6
_MAX_CELLS = 2_000_000
_FLOOR = -1e9
_STEEP = 1e9


@dataclass(frozen=True, eq=False)
class _Cells:
    """Boxes (n, d) with what the log density does in each, from its centre and faces."""

    lower: Array
    width: Array
    peak: Array
    """The largest value seen, (n,)."""
    variation: Array
    """How far the values along each side differ, (n, d)."""
    hidden: Array
    """How far the values that are not zero differ, (n,): a peak inside may rise by about as much
    above those seen, whereas a hard edge, where the density vanishes, hides none."""

    def take(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> _Cells:
        return _Cells(*(getattr(self, field.name)[index] for field in fields(self)))

    def joined(self, other: _Cells) -> _Cells:
        names = [field.name for field in fields(self)]
        return _Cells(*(np.concatenate([getattr(c, n) for c in (self, other)]) for n in names))


def sample_box(
    log_density: LogDensity,
    lower: Array,
    upper: Array,
    num_samples: int,
    *,
    grid: Sequence[int],
    seed: int = 0,
) -> Array:
    """Draw (num_samples, d) from a density on the box [lower, upper], d <= 4 or so.

    Args:
        log_density: theta (n, d) -> (n,), up to a constant; -inf where it vanishes.
        lower: lower corner of the box, (d,).
        upper: upper corner of the box, (d,).
        num_samples: draws wanted.
        grid: cells along each side to begin with; fine enough that no peak of the density to the
            power 1/256 falls between them.
        seed: seed of the draws.
    """
    cells = _partition(log_density, lower, upper, grid)
    log_mass = cells.peak + np.log(cells.width).sum(axis=1)
    cumulative = np.cumsum(np.exp(log_mass - log_mass.max()))
    cumulative /= cumulative[-1]

    def propose(generator: np.random.Generator, count: int) -> tuple[Array, Array]:
        chosen = np.searchsorted(cumulative, generator.uniform(size=count)).clip(
            max=len(cumulative) - 1
        )
        inside = generator.uniform(size=(count, len(lower)))
        draws = cells.lower[chosen] + cells.width[chosen] * inside
        return draws, log_density(draws) - cells.peak[chosen]

    return independence_chains(propose, num_samples, np.random.default_rng(seed))


def _partition(log_density: LogDensity, lower: Array, upper: Array, grid: Sequence[int]) -> _Cells:
    width = (upper - lower) / np.array(grid)
    index = np.stack(np.meshgrid(*map(np.arange, grid), indexing="ij"), axis=-1)
    corners = lower + width * index.reshape(-1, len(grid))
    cells = _look(log_density, corners, np.broadcast_to(width, corners.shape).copy())
    for temper in _TEMPERS:
        while (split := _to_split(cells, temper)).any():
            if len(cells.peak) > _MAX_CELLS:
                break  # the chains stay exact on a coarse cut; they only take longer
            kept, halves = cells.take(~split), _halve(log_density, cells.take(split))
            cells = kept.joined(halves)
    return cells


def _to_split(cells: _Cells, temper: float) -> NDArray[np.bool_]:
    """Cells of the tempered density that hold mass and are not yet flat."""
    steepest = temper * cells.variation.max(axis=1)
    log_mass = temper * cells.peak + np.log(cells.width).sum(axis=1)
    total = log_mass.max() + np.log(np.exp(log_mass - log_mass.max()).sum())
    return np.asarray(
        (steepest > _MAX_VARIATION)
        & (log_mass + temper * cells.hidden > total + np.log(_NEGLIGIBLE))
    )


def _halve(log_density: LogDensity, cells: _Cells) -> _Cells:
    side = cells.variation.argmax(axis=1)
    rows = np.arange(len(side))
    width = cells.width.copy()
    width[rows, side] *= 0.5
    upper = cells.lower.copy()
    upper[rows, side] += width[rows, side]
    return _look(log_density, np.concatenate([cells.lower, upper]), np.concatenate([width, width]))


def _look(log_density: LogDensity, lower: Array, width: Array) -> _Cells:
    """Evaluate each cell at its centre and at the middles of its faces.

    Where the density vanishes at all of them, a hard edge may still leave a corner of the cell:
    those are looked at too, and a cell that lives at a corner counts as steep, so it is halved.
    """
    count, dim = lower.shape
    centre = lower + 0.5 * width
    points = np.repeat(centre[None], 2 * dim + 1, axis=0)
    for side in range(dim):
        points[2 * side + 1, :, side] = lower[:, side]
        points[2 * side + 2, :, side] = lower[:, side] + width[:, side]
    value = np.maximum(log_density(points.reshape(-1, dim)), _FLOOR).reshape(-1, count)
    variation = np.empty((count, dim))
    for side in range(dim):
        along = value[[0, 2 * side + 1, 2 * side + 2]]
        variation[:, side] = along.max(axis=0) - along.min(axis=0)
    peak = value.max(axis=0)
    dead = np.flatnonzero(peak <= _FLOOR)
    peak[dead] = _peak_at_corners(log_density, lower[dead], width[dead])
    cut = dead[peak[dead] > _FLOOR]
    variation[cut] = _STEEP * width[cut] / width[cut].max(axis=1, keepdims=True)
    least = np.where(value > _FLOOR, value, np.inf).min(axis=0)
    return _Cells(lower, width, peak, variation, np.maximum(peak - least, 0.0))


def _peak_at_corners(log_density: LogDensity, lower: Array, width: Array) -> Array:
    count, dim = lower.shape
    if not count:
        return np.empty(0)
    corners = np.stack(np.meshgrid(*[(0.0, 1.0)] * dim, indexing="ij"), axis=-1).reshape(-1, 1, dim)
    values = log_density((lower + corners * width).reshape(-1, dim))
    return np.asarray(np.maximum(values, _FLOOR).reshape(-1, count).max(axis=0))
