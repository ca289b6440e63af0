"""Pairs of parameters: contours of the posterior, in a triangle whose parameters one can choose."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from validation.page import Choice, Figure, Pairs
from validation.page.palette import LIGHT
from validation.page.svg import canvas, inline_svg
from validation.page.words import number

from ..sources import FitRecord
from .density import Ends, curve, levels_of_mass, surface
from .marginals import Marginal

_SIDE = 120
_MOST_CHOICES = 10
_SHOWN_AT_FIRST = 5
_SHARES = (0.5, 0.9)


def pairs_block(
    record: FitRecord, marginals: Sequence[Marginal], wanted: Sequence[str], key: str
) -> Pairs:
    """The triangle of the wanted parameters, or of those with the strongest correlations."""
    chosen = [j for j, m in enumerate(marginals) if m.name in wanted]
    order = _by_correlation(record) if len(chosen) < 2 else chosen
    offered = sorted(order[:_MOST_CHOICES])
    first = set(order[:_SHOWN_AT_FIRST]) if len(chosen) < 2 else set(chosen)
    spans = [_tight(marginals[j]) for j in range(len(marginals))]
    panels = []
    for row, i in enumerate(offered):
        line = [_pair(marginals[j], marginals[i], (spans[j], spans[i])) for j in offered[:row]]
        panels.append((*line, _diagonal(marginals[i], spans[i])))
    choices = tuple(
        Choice(
            marginals[j].name,
            " to ".join(marginals[j].near(end, 1) for end in spans[j]),
            j in first,
        )
        for j in offered
    )
    caption = "Darker: half of the posterior; lighter: 90% of it."
    if len(marginals) > len(offered):
        caption += f" The {len(offered)} of {len(marginals)} parameters with the strongest "
        caption += "correlations are offered."
    legend = [("inner", "posterior, 50% and 90%")]
    legend += [("prior", "prior, 90%, where it is in view")] if record.prior is not None else []
    legend += [("reference", "exact posterior, 50% and 90%")] if record.exact is not None else []
    return Pairs(f"{key}-triangle", choices, tuple(panels), caption, tuple(legend))


def _by_correlation(record: FitRecord) -> list[int]:
    """Parameters by their strongest rank correlation with another, strongest first."""
    values = record.samples.double().numpy()
    ranks = values.argsort(axis=0).argsort(axis=0).astype(float)
    centred = ranks - ranks.mean(axis=0)
    norms = np.linalg.norm(centred, axis=0)
    together = np.abs(centred.T @ centred) / np.maximum(np.outer(norms, norms), 1e-30)
    np.fill_diagonal(together, 0.0)
    return [int(j) for j in np.argsort(-together.max(axis=0), kind="stable")]


def _tight(m: Marginal) -> Ends:
    return m.span


def _pair(across: Marginal, up: Marginal, spans: tuple[Ends, Ends]) -> Figure:
    """Contours of one pair."""
    correlation = _correlation(across, up)
    grids = [np.linspace(*span, 49)[:-1] + (span[1] - span[0]) / 96 for span in spans]
    with canvas(_SIDE, _SIDE, bare=True) as (figure, axes):
        density = surface(across.draws, up.draws, spans)
        half, most = levels_of_mass(density, _SHARES)
        if most < half < density.max():
            axes.contourf(*grids, density, levels=[most, half, density.max() * 1.001],
                          colors=[LIGHT["posterior"]] * 2, alpha=0.32)  # fmt: skip
            axes.contourf(*grids, density, levels=[half, density.max() * 1.001],
                          colors=[LIGHT["posterior"]], alpha=0.45)  # fmt: skip
        if across.prior is not None and up.prior is not None:
            _prior_contour(axes, across, up)
        if across.exact is not None and up.exact is not None:
            exact = surface(across.exact, up.exact, spans)
            levels = sorted(set(levels_of_mass(exact, _SHARES)))
            axes.contour(*grids, exact, levels=levels, colors=LIGHT["reference"],
                         linestyles="--", linewidths=1.1)  # fmt: skip
        _bare(axes, spans[0], spans[1])
        svg = inline_svg(figure)
    return Figure(
        svg,
        alt=f"{up.name} against {across.name}: correlation {number(correlation, 2)}.",
        caption="",
    )


def _prior_contour(axes: object, across: Marginal, up: Marginal) -> None:
    """90% of the prior, from its own range: the posterior's view holds too few of its draws."""
    spans = tuple(
        (float(np.quantile(m.prior, 0.001)), float(np.quantile(m.prior, 0.999)))  # type: ignore[arg-type]
        for m in (across, up)
    )
    if any(low >= high for low, high in spans):
        return
    density = surface(across.prior, up.prior, spans, num=32)  # type: ignore[arg-type]
    grids = [np.linspace(*span, 33)[:-1] + (span[1] - span[0]) / 64 for span in spans]
    axes.contour(*grids, density, levels=levels_of_mass(density, (0.9,)),  # type: ignore[attr-defined]
                 colors=LIGHT["prior"], linewidths=1.1)  # fmt: skip


def _diagonal(m: Marginal, span: Ends) -> Figure:
    with canvas(_SIDE, _SIDE, bare=True) as (figure, axes):
        grid, density = curve(m.draws, span, m.ends, num=80)
        axes.fill_between(grid, density, color=LIGHT["posterior"], alpha=0.28, linewidth=0)
        axes.plot(grid, density, color=LIGHT["posterior"], linewidth=1.4)
        if m.prior is not None:
            axes.plot(*curve(m.prior, span, m.ends, num=60), color=LIGHT["prior"], linewidth=1.1)
        top = float(density.max())
        if m.exact is not None:
            grid, density = curve(m.exact, span, m.ends, num=80)
            top = max(top, float(density.max()))
            axes.plot(grid, density, "--", color=LIGHT["reference"], linewidth=1.1)
        _bare(axes, span, (0.0, max(1.12 * top, 1e-30)))
        for side in ("left", "top", "right"):
            axes.spines[side].set_visible(False)
        svg = inline_svg(figure)
    return Figure(svg, alt=f"{m.name}: {m.near(m.mean, 2)} ± {m.near(m.sd, 2)}.", caption="")


def _correlation(across: Marginal, up: Marginal) -> float:
    if across.draws.std() == 0 or up.draws.std() == 0:
        return 0.0
    return float(np.corrcoef(across.draws, up.draws)[0, 1])


def _bare(axes: object, across: Ends, up: Ends) -> None:
    axes.set(xlim=across, ylim=up, xticks=[], yticks=[])  # type: ignore[attr-defined]
    for spine in axes.spines.values():  # type: ignore[attr-defined]
        spine.set(visible=True, color=LIGHT["line"])
