"""The posterior itself: every parameter in a row, densities of the few, pairs of the chosen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from validation.page import (
    Block,
    Cell,
    Figure,
    Figures,
    Glyph,
    Readout,
    Section,
    Series,
    Table,
    Text,
    Written,
)
from validation.page.svg import axis_shares, canvas, inline_svg
from validation.words import measured, number

from ...pictures.density import curve
from ...pictures.drawing import draw_density
from ...pictures.marginals import Marginal
from ..sources import FitRecord
from .pairs import pairs_block

_MOST_PICTURES = 12
_SIZE = (300, 190)


def posterior_section(
    record: FitRecord, marginals: Sequence[Marginal], wanted: Sequence[str], key: str
) -> Section:
    """Table of all parameters, densities and pairs of the wanted or the first few."""
    blocks: list[Block] = [summary_table(marginals, len(record.samples))]
    shown = [m for m in marginals if m.name in wanted] or marginals[:_MOST_PICTURES]
    if len(marginals) <= _MOST_PICTURES or wanted:
        blocks.append(
            Figures(tuple(marginal_figure(m) for m in shown), legend=legend_of(record, fill=True))
        )
    else:
        blocks.append(
            Text(
                f"With {len(marginals)} parameters the table's glyphs stand for the densities; "
                "abi report --parameter NAME draws those you name.",
                note=True,
            )
        )
    parts: list[Section] = []
    if len(marginals) > 1:
        parts.append(
            Section(f"{key}-pairs", "Pairs", (pairs_block(record, marginals, wanted, key),))
        )
    return Section(f"{key}-posterior", "Posterior", tuple(blocks), tuple(parts))


def summary_table(marginals: Sequence[Marginal], num_samples: int) -> Table:
    """Mean, spread and quantiles of every parameter, with its density as a glyph."""
    with_prior = any(m.prior is not None for m in marginals)
    with_exact = any(m.exact is not None for m in marginals)
    columns = ["parameter", "density", "mean", "sd", "5%", "median", "95%"]
    columns += ["contraction"] if with_prior else []
    columns += ["mean − exact, in sd", "sd ÷ exact"] if with_exact else []
    rows: list[tuple[Cell, ...]] = []
    many = len(marginals) > _MOST_PICTURES
    for m in _ordered(marginals) if many else marginals:
        values = (m.mean, m.sd, *(m.quantile(level) for level in (0.05, 0.5, 0.95)))
        row: list[Cell] = [m.name, _glyph(m), *(Written(m.near(v), v) for v in values)]
        row += [_rounded(m.contraction)] if with_prior else []
        row += [_rounded(m.shift), _rounded(m.width_ratio)] if with_exact else []
        rows.append(tuple(row))
    caption = f"Each parameter, from {num_samples:,} draws of the posterior"
    if with_prior:
        caption += "; contraction: 1 − posterior variance ÷ prior variance"
    if many and with_prior:
        caption += "; the parameters that x_o says most about come first"
    return Table(caption, tuple(columns), tuple(rows), sortable=len(rows) > 1, filterable=many)


def legend_of(record: FitRecord, fill: bool = False) -> tuple[tuple[str, str], ...]:
    """Marks of the curves that are there."""
    marks = [("posterior", "posterior")]
    marks += [("inner", "its central 90%")] if fill else []
    marks += [("prior", "prior")] if record.prior is not None else []
    marks += [("reference", "exact posterior")] if record.exact is not None else []
    return tuple(marks)


def marginal_figure(m: Marginal) -> Figure:
    """Density of one parameter with prior and exact posterior; readable by pointer and keys."""
    low, high = m.quantile(0.05), m.quantile(0.95)
    with canvas(*_SIZE) as (figure, axes):
        draw_density(axes, m)
        axes.locator_params(axis="x", nbins=5)
        left, right = axis_shares(figure, axes)
        svg = inline_svg(figure)
    below = np.searchsorted(np.sort(m.draws), np.linspace(*m.span, 61)) / len(m.draws)
    return Figure(
        svg,
        alt=_alt(m, low, high),
        caption=f"{m.near(m.mean, 2)} ± {m.near(m.sd, 2)}, 90% in {m.near(low)} to {m.near(high)}",
        title=m.name,
        readout=Readout(
            m.name, left, right, *m.span, (Series("below:", below.tolist(), percent=True),)
        ),
    )


def _alt(m: Marginal, low: float, high: float) -> str:
    text = (
        f"Density of {m.name}: mean {m.near(m.mean)}, standard deviation {m.near(m.sd)}, "
        f"90% between {m.near(low)} and {m.near(high)}."
    )
    for what, part in (("Prior", m.prior), ("Exact posterior", m.exact)):
        if part is not None:
            mean, sd = float(part.mean()), float(part.std())
            text += f" {what}: mean {measured(mean, sd)}, standard deviation {number(sd, 3)}."
    return text


def _glyph(m: Marginal) -> Glyph:
    _, density = curve(m.draws, m.span, m.ends, num=40)
    top = max(float(density.max()), 1e-300)
    behind = None
    if m.prior is not None:
        prior = curve(m.prior, m.span, m.ends, num=20)[1]
        behind = [min(1.0, value / top) for value in prior]
    return Glyph(
        [value / top for value in density],
        behind,
        f"Density of {m.name} between {m.near(m.span[0], 1)} and {m.near(m.span[1], 1)}",
    )


def _ordered(marginals: Sequence[Marginal]) -> list[Marginal]:
    """Those that x_o says most about first."""
    return sorted(marginals, key=lambda m: -(m.contraction or 0.0))


def _rounded(value: float | None) -> Written | None:
    return None if value is None else Written(f"{value:.3f}".replace("-", "−"), value)
