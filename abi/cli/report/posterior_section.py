"""The posterior itself: every parameter in a row, densities of the few, pairs of the chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
from validation.page.palette import LIGHT
from validation.page.svg import axis_shares, canvas, inline_svg
from validation.page.words import measured, number

from .density import Array, Ends, curve, view
from .pairs_section import pairs_block
from .sources import FitRecord

_MOST_PICTURES = 12
_SIZE = (300, 190)


@dataclass(frozen=True, eq=False)
class Marginal:
    """One parameter: its draws, where it is shown, and its numbers."""

    name: str
    draws: Array
    prior: Array | None
    exact: Array | None
    ends: Ends
    span: Ends

    @property
    def mean(self) -> float:
        """Of the draws."""
        return float(self.draws.mean())

    @property
    def sd(self) -> float:
        """Of the draws."""
        return float(self.draws.std())

    def near(self, value: float, digits: int = 3) -> str:
        """A value of this parameter in the decimals that its spread has."""
        return measured(float(value), self.sd, digits)

    def cell(self, value: float) -> Written:
        """The same in a table."""
        return Written(self.near(value), float(value))

    @property
    def contraction(self) -> float | None:
        """One minus the ratio of the variances of posterior and prior."""
        if self.prior is None or self.prior.var() == 0:
            return None
        return 1.0 - float(self.draws.var() / self.prior.var())

    @property
    def shift(self) -> float | None:
        """Mean minus the exact mean, in exact standard deviations."""
        if self.exact is None or self.exact.std() == 0:
            return None
        return float((self.draws.mean() - self.exact.mean()) / self.exact.std())

    @property
    def width_ratio(self) -> float | None:
        """Standard deviation over the exact one."""
        if self.exact is None or self.exact.std() == 0:
            return None
        return float(self.draws.std() / self.exact.std())


def marginals_of(record: FitRecord) -> list[Marginal]:
    """Every parameter of the fit, in order."""
    found = []
    for j, name in enumerate(record.posterior.parameter_names):
        columns = [
            None if part is None else part[:, j].double().numpy()
            for part in (record.samples, record.prior, record.exact)
        ]
        draws, prior, exact = columns
        ends = float(record.support.lower[j]), float(record.support.upper[j])
        span = view([part for part in (draws, exact) if part is not None], ends)
        found.append(Marginal(name, draws, prior, exact, ends, span))  # type: ignore[arg-type]
    return found


def posterior_section(record: FitRecord, wanted: Sequence[str], key: str) -> Section:
    """Table of all parameters, densities and pairs of the wanted or the first few."""
    marginals = marginals_of(record)
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
    columns += ["mean − exact, in sds", "sd ÷ exact"] if with_exact else []
    rows: list[tuple[Cell, ...]] = []
    many = len(marginals) > _MOST_PICTURES
    for m in _ordered(marginals) if many else marginals:
        values = (m.mean, m.sd, *np.quantile(m.draws, [0.05, 0.5, 0.95]))
        row: list[Cell] = [m.name, _glyph(m), *(m.cell(value) for value in values)]
        row += [_rounded(m.contraction)] if with_prior else []
        row += [_rounded(m.shift), _rounded(m.width_ratio)] if with_exact else []
        rows.append(tuple(row))
    caption = f"Each parameter, from {num_samples:,} draws of the posterior"
    if with_prior:
        caption += "; contraction is 1 − the ratio of posterior to prior variance"
    if many and with_prior:
        caption += "; the parameters that x_o says most about come first"
    return Table(caption, tuple(columns), tuple(rows), sortable=len(rows) > 1, filterable=many)


def legend_of(record: FitRecord, fill: bool = False) -> tuple[tuple[str, str], ...]:
    """Marks of the curves that are there."""
    marks = [("posterior", "posterior given x_o")]
    marks += [("inner", "its central 90%")] if fill else []
    marks += [("prior", "prior")] if record.prior is not None else []
    marks += [("reference", "exact posterior")] if record.exact is not None else []
    return tuple(marks)


def marginal_figure(m: Marginal) -> Figure:
    """Density of one parameter with prior and exact posterior; readable by pointer and keys."""
    grid, density = curve(m.draws, m.span, m.ends)
    low, high = (float(v) for v in np.quantile(m.draws, [0.05, 0.95]))
    inside = (grid >= low) & (grid <= high)
    with canvas(*_SIZE) as (figure, axes):
        shade: dict[str, Any] = {"color": LIGHT["posterior"], "alpha": 0.28, "linewidth": 0}
        axes.fill_between(grid, density, where=inside.tolist(), **shade)
        if m.prior is not None:
            axes.plot(*curve(m.prior, m.span, m.ends), color=LIGHT["prior"], linewidth=1.6)
        axes.plot(grid, density, color=LIGHT["posterior"], linewidth=2)
        if m.exact is not None:
            axes.plot(
                *curve(m.exact, m.span, m.ends), "--", color=LIGHT["reference"], linewidth=1.6
            )
        axes.set(xlim=m.span, yticks=[])
        axes.set_ylim(bottom=0)
        axes.spines["left"].set_visible(False)
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


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
