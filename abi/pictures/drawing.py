"""A density, a pair and an interval on axes: what every picture of a posterior consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from validation.palette import LIGHT

from .density import Array, Ends, curve, levels_of_mass, surface
from .marginals import Marginal

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHARES = (0.5, 0.9)
"""Of the mass, in the regions of a pair."""
PRIOR_GRID = 32
POSTERIOR: dict[str, Any] = {"color": LIGHT["posterior"]}
PRIOR: dict[str, Any] = {"color": LIGHT["prior"]}
EXACT: dict[str, Any] = {"color": LIGHT["reference"], "linestyle": "--"}
TRUTH: dict[str, Any] = {"color": LIGHT["observed"], "linewidth": 1.3}
INNER, OUTER = 0.28, 0.32
"""How dark the central 90% under a density is, and a region of 90%."""


def draw_density(axes: Axes, m: Marginal, width: float = 2.0, num: int = 120) -> None:
    """A marginal density, its central 90% filled, with the prior's and the exact one."""
    grid, density = curve(m.draws, m.span, m.ends, num)
    top = float(density.max())
    inside = (grid >= m.quantile(0.05)) & (grid <= m.quantile(0.95))
    shade: dict[str, Any] = {"alpha": INNER, "linewidth": 0, **POSTERIOR}
    axes.fill_between(grid, density, where=inside.tolist(), **shade)
    if m.prior is not None:
        axes.plot(*curve(m.prior, m.span, m.ends, num), linewidth=0.8 * width, **PRIOR)
    axes.plot(grid, density, linewidth=width, **POSTERIOR)
    if m.exact is not None:
        grid, density = curve(m.exact, m.span, m.ends, num)
        top = max(top, float(density.max()))
        axes.plot(grid, density, linewidth=0.8 * width, **EXACT)
    axes.set(xlim=m.span, ylim=(0.0, max(1.12 * top, 1e-30)), yticks=[])
    axes.spines[["left", "top", "right"]].set_visible(False)


def draw_pair(
    axes: Axes, across: Marginal, up: Marginal, width: float = 1.1, num: int = 48
) -> None:
    """Regions that hold 50% and 90% of a pair of parameters, those of the exact one dashed.

    The prior is a line around 90% of it, where that is in view.
    """
    spans = across.span, up.span
    grids = centres(spans, num)
    density = surface(across.draws, up.draws, spans, num)
    half, most = levels_of_mass(density, SHARES)
    top = float(density.max()) * 1.001
    if most < half < density.max():
        axes.contourf(*grids, density, levels=[most, half, top], alpha=OUTER,
                      colors=[LIGHT["posterior"]] * 2)  # fmt: skip
        axes.contourf(*grids, density, levels=[half, top], alpha=0.45,
                      colors=[LIGHT["posterior"]])  # fmt: skip
    if across.prior is not None and up.prior is not None:
        _draw_prior(axes, across.prior, up.prior, width)
    if across.exact is not None and up.exact is not None:
        exact = surface(across.exact, up.exact, spans, num)
        axes.contour(*grids, exact, levels=sorted(set(levels_of_mass(exact, SHARES))),
                     colors=LIGHT["reference"], linestyles="--", linewidths=width)  # fmt: skip
    axes.set(xlim=spans[0], ylim=spans[1])


def centres(spans: tuple[Ends, Ends], num: int) -> list[Array]:
    """Where the values of a surface stand, (num,) along each axis."""
    return [np.linspace(*span, num + 1)[:-1] + (span[1] - span[0]) / (2 * num) for span in spans]


def _draw_prior(axes: Axes, x: Array, y: Array, width: float) -> None:
    """90% of the prior, from its own range: the posterior's view holds too few of its draws."""
    spans = tuple(
        (float(np.quantile(part, 0.001)), float(np.quantile(part, 0.999))) for part in (x, y)
    )
    if any(low >= high for low, high in spans):
        return
    density = surface(x, y, spans, PRIOR_GRID)  # type: ignore[arg-type]
    axes.contour(*centres(spans, PRIOR_GRID), density,  # type: ignore[arg-type]
                 levels=levels_of_mass(density, (0.9,)), colors=LIGHT["prior"],
                 linewidths=width)  # fmt: skip


def draw_interval(
    axes: Axes, place: float, values: tuple[float, float, float], right: float, upright: bool
) -> None:
    """An estimate with its interval; another colour and shape where that leaves out ``right``.

    Args:
        axes: to draw on.
        place: where on the other axis.
        values: the estimate, and the ends of its interval.
        right: the value that would be right.
        upright: whether the interval is vertical.
    """
    value, low, high = values
    wrong = not low <= right <= high
    colour = LIGHT["observed" if wrong else "posterior"]
    points = ([low, high], [place, place]), ([value], [place])
    line, mark = ((b, a) if upright else (a, b) for a, b in points)
    axes.plot(*line, color=colour, linewidth=2.6 if wrong else 2.0)
    axes.plot(*mark, "D" if wrong else "o", color=colour, markersize=5.5)
