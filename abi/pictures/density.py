"""Densities of draws on even grids: binned, then smoothed, folded back at the ends of a support.

A binned kernel estimate costs the grid, not the draws: ten thousand draws of a hundred parameters
take milliseconds. The width is Silverman's, ``0.9 min(sd, iqr / 1.34) n^(-1/5)``, and in two
dimensions Scott's, ``min(sd, iqr / 1.34) n^(-1/6)`` along each axis, a third larger, for contours
waver more than they are wrong. These suit one hump; where a half, a quarter or an eighth of them
makes half of the draws say more about the other half, as it does for narrow modes and thin arcs,
the width is that.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ends = tuple[float, float]
_SHARPER = (0.5, 0.25, 0.125)
_GAIN = 0.01  # nats a draw: ten thousand draws of a normal law gain less by chance


def view(parts: list[Array], ends: Ends, tail: float = 0.002) -> Ends:
    """The stretch that holds all but the tails of each part, with a margin, inside the support."""
    low = min(float(np.quantile(part, tail)) for part in parts)
    high = max(float(np.quantile(part, 1 - tail)) for part in parts)
    margin = 0.1 * (high - low) or max(abs(low), 1.0) * 0.1
    return max(low - margin, ends[0]), min(high + margin, ends[1])


def curve(draws: Array, span: Ends, ends: Ends, num: int = 120) -> tuple[Array, Array]:
    """Grid (num,) over ``span`` and the density of draws (n,) on it.

    Args:
        draws: (n,).
        span: the part of the axis that is shown.
        ends: the support, infinite where there is none; mass that crosses an end is folded back.
        num: points of the grid.
    """
    width = 0.9 * _width(draws, -1 / 5)
    # Bins fine enough for the kernel, and a frame around the view so that no mass is cut off.
    step = min(width / 8, (span[1] - span[0]) / num)
    low = span[0] if span[0] == ends[0] else span[0] - 4 * width
    high = span[1] if span[1] == ends[1] else span[1] + 4 * width
    bins = int(np.clip(np.ceil((high - low) / step), num, 20_000))
    folds = low == ends[0], high == ends[1]
    step = (high - low) / bins

    def counted(part: Array) -> Array:
        return np.histogram(part, bins=bins, range=(low, high))[0].astype(float)

    def smooth(counts: Array, share: float) -> Array:
        return _smooth(counts, max(share * width / step, 0.7), folds)

    density = _as_sharp_as_told(draws, counted, smooth) / (len(draws) * step)
    grid = np.linspace(*span, num)
    return grid, np.interp(grid, low + step * (np.arange(bins) + 0.5), density)


def surface(x: Array, y: Array, spans: tuple[Ends, Ends], num: int = 48) -> Array:
    """Density of pairs (n,), (n,) on a num x num grid over the spans, rows along y."""
    from scipy.ndimage import gaussian_filter

    widths = np.array(
        [
            4 / 3 * _width(part, -1 / 6) / ((span[1] - span[0]) / num)
            for part, span in ((y, spans[1]), (x, spans[0]))
        ]
    )

    def counted(part: Array) -> Array:
        return np.histogram2d(part[:, 1], part[:, 0], bins=num, range=(spans[1], spans[0]))[0]

    def smooth(counts: Array, share: float) -> Array:
        return np.asarray(gaussian_filter(counts, np.maximum(share * widths, 0.7), mode="nearest"))

    return _as_sharp_as_told(np.stack([x, y], axis=1), counted, smooth)


def levels_of_mass(density: Array, shares: tuple[float, ...]) -> list[float]:
    """Heights above which the density holds each share of its mass, for contours."""
    ordered = np.sort(density.ravel())[::-1]
    mass = np.cumsum(ordered) / max(float(ordered.sum()), 1e-300)
    places = np.minimum(np.searchsorted(mass, shares), len(ordered) - 1)
    return [float(ordered[place]) for place in places]


def _as_sharp_as_told(
    draws: Array, counted: Callable[[Array], Array], smooth: Callable[[Array, float], Array]
) -> Array:
    """Smoothed counts of all draws, of the width by which one half of them predicts the other.

    Halves in order, not every other draw: repeats of a chain would stand on both sides.
    """
    halves = [counted(part) for part in np.array_split(draws, 2)]
    told = [_told(halves, smooth, share) for share in (1.0, *_SHARPER)]
    best = int(np.argmax(np.array(told) - _GAIN * (np.arange(len(told)) > 0)))
    return smooth(halves[0] + halves[1], (1.0, *_SHARPER)[best])


def _told(halves: list[Array], smooth: Callable[[Array, float], Array], share: float) -> float:
    """Mean log density of each half under the other, in nats, a hundredth of it spread evenly."""
    total = 0.0
    for known, other in (halves, halves[::-1]):
        density = smooth(known, share)
        density = 0.99 * density / max(float(density.sum()), 1e-300) + 0.01 / density.size
        total += float((other * np.log(density)).sum()) / max(float(other.sum()), 1.0)
    return 0.5 * total


def _width(draws: Array, power: float) -> float:
    quartiles = np.quantile(draws, [0.25, 0.75])
    spread = [float(draws.std()), float(quartiles[1] - quartiles[0]) / 1.34]
    return (
        min(value for value in [*spread, np.inf] if value > 0) * len(draws) ** power
        if max(spread) > 0
        else 1e-6 + 1e-3 * abs(float(draws[0]))
    )


def _smooth(counts: Array, width: float, folds: tuple[bool, bool]) -> Array:
    """Counts smoothed by a width in bins; what leaves over an end that folds comes back."""
    from scipy.ndimage import gaussian_filter1d

    bins, reach = len(counts), int(np.ceil(4 * width)) + 1
    padded = np.pad(counts, reach, mode="constant")
    smooth = gaussian_filter1d(padded, width, mode="constant", truncate=4.0)
    inner = smooth[reach : reach + bins].copy()
    size = min(reach, bins)
    if folds[0]:
        inner[:size] += smooth[reach - size : reach][::-1]
    if folds[1]:
        inner[-size:] += smooth[reach + bins : reach + bins + size][::-1]
    return np.asarray(inner)
