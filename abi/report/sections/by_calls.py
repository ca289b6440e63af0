"""Did the rounds settle? Each round's answer, judged by pairs that it has not seen, by calls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from validation.page import Block, Cell, Facts, Figure, Readout, Series, Table, Text
from validation.page.svg import axis_shares, canvas, inline_svg
from validation.palette import LIGHT
from validation.words import listing, number

from ...posterior import ABIPosterior
from ...verdict.record import Check, Distance

_SIZE = (420, 200)
_GRID = 61


@dataclass(frozen=True)
class _Judged:
    """A round's answer: what its pairs say, and how far it moved from the answer before."""

    name: str
    calls: int
    check: Check
    moved: Distance | None

    @property
    def errors(self) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
        """Largest |bias|, and largest share by which an sd is off, each with its interval."""
        parts = self.check.parameters
        bias = max(parts, key=lambda part: abs(part.bias))
        near = _nearest(bias.bias_low, bias.bias_high, 0.0)
        wide = max(parts, key=lambda part: _off(part.sd_ratio))
        least = 0.0
        if not wide.sd_ratio_low <= 1.0 <= wide.sd_ratio_high:
            least = min(_off(wide.sd_ratio_low), _off(wide.sd_ratio_high))
        most = max(_off(wide.sd_ratio_low), _off(wide.sd_ratio_high))
        return (abs(bias.bias), near, bias.largest_bias), (_off(wide.sd_ratio), least, most)


def calls_blocks(posterior: ABIPosterior) -> list[Block]:
    """The curve, its table, and the MSW distances that were moved."""
    judged = _judged(posterior)
    blocks: list[Block] = []
    if len(judged) > 1:
        blocks += [_figure(judged), _table(judged)]
    moves = [
        (name, f"{distance.value:.2f} sd ({distance.by_chance:.2f})")
        for name, distance in (
            ("from the answer of the round before", posterior.verdict.moved),
            ("from the marginals of the quantile network", posterior.verdict.marginals),
        )
        if distance is not None
    ]
    if not moves:
        return blocks
    said = (
        "How far the answer lies, at x_o, from two others; in brackets, how far two exact samples "
        "would lie apart (MSW distance, in posterior sd):"
    )
    return [*blocks, Text(said, note=True), Facts(tuple(moves))]


def _judged(posterior: ABIPosterior) -> list[_Judged]:
    """Answers whose parameters were judged, in order; the last is that of the fit."""
    verdict = posterior.verdict
    moves = {record.round: record.moved for record in posterior.rounds}
    found = [
        _Judged(f"round {part.round}", part.calls, part.check, moves.get(part.round))
        for part in verdict.rounds
    ]
    calls = sum(record.simulator_calls for record in posterior.rounds)
    found.append(_Judged("the answer", calls, verdict.check, verdict.moved))
    return [part for part in found if part.check.parameters and _finite(part)]


def _finite(part: _Judged) -> bool:
    return all(math.isfinite(value) for error in part.errors for value in error)


def _figure(judged: list[_Judged]) -> Figure:
    calls = [part.calls for part in judged]
    errors = list(zip(*(part.errors for part in judged), strict=True))
    top = max(max(error[0] for error in line) for line in errors)
    most = max(max(error[2] for error in line) for line in errors)
    with canvas(*_SIZE) as (figure, axes):
        for line, role, style, aside in zip(
            errors, ("c1", "c2"), ("o-", "s--"), (-1, 1), strict=True
        ):
            _line(axes, calls, line, (role, style), aside * 0.006 * (calls[-1] - calls[0]))
        axes.set(xlabel="simulator calls", ylabel="largest error at x_o")
        axes.set_ylim(0, 1.08 * min(most, max(2.0 * top, 0.5)))
        axes.locator_params(axis="both", nbins=5)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        left, right = axis_shares(figure, axes)
        ends = axes.get_xlim()
        svg = inline_svg(figure)
    scale = (right - left) / (ends[1] - ends[0])
    first, last = (left + scale * (end - ends[0]) for end in (calls[0], calls[-1]))
    grid = np.linspace(calls[0], calls[-1], _GRID)
    series = tuple(
        Series(name, np.interp(grid, calls, [error[0] for error in line]).tolist())
        for name, line in zip(("bias", "sd off by"), errors, strict=True)
    )
    words = [
        f"{number(bias[0], 2)} sd and {bias_sd[0]:.0%} after {part.calls:,} calls"
        for part, (bias, bias_sd) in zip(judged, zip(*errors, strict=True), strict=True)
    ]
    return Figure(
        svg,
        alt=f"Largest bias, and largest share by which an sd is off, by simulator calls: "
        f"{listing(words)}.",
        caption="The answer of each round, judged by simulations that it has not seen; bars are "
        "95% intervals. Of a perfect answer, too, the largest estimate lies above 0.",
        title="Did more calls help?",
        legend=(("c1", "bias of a mean, in sd"), ("c2", "share by which an sd is off")),
        readout=Readout("calls", first, last, calls[0], calls[-1], series),
        wide=True,
    )


def _line(axes: Any, calls: list[int], line: Any, look: tuple[str, str], aside: float) -> None:
    role, style = look
    places = [place + aside for place in calls]
    axes.vlines(
        places,
        [error[1] for error in line],
        [error[2] for error in line],
        color=LIGHT[role],
        alpha=0.35,
        linewidth=3,
    )
    axes.plot(places, [error[0] for error in line], style, color=LIGHT[role], linewidth=1.8)


def _table(judged: list[_Judged]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for part in judged:
        bias, spread = part.errors
        moved, check = part.moved, part.check
        rows.append(
            (
                part.name,
                part.calls,
                check.num_pairs,
                None if check.p_value is None else float(f"{check.p_value:.2g}"),
                round(bias[0], 2),
                round(bias[2], 2),
                f"{spread[0]:.0%}",
                None if moved is None else round(moved.value, 2),
                None if moved is None else round(moved.by_chance, 2),
            )
        )
    columns = "answer, calls, judged by, p, largest bias, at most, sd off by, moved, by chance"
    return Table(
        "Each round’s answer, judged by the simulations of the next; moved: MSW distance from the "
        "answer before, in posterior sd, and that of two exact samples",
        tuple(columns.split(", ")),
        tuple(rows),
        folded="Numbers of each round",
    )


def _off(ratio: float) -> float:
    """The share by which an sd is too large or too small."""
    ratio = max(ratio, 1e-6)
    return max(ratio, 1.0 / ratio) - 1.0


def _nearest(low: float, high: float, right: float) -> float:
    """The smallest error that an interval allows."""
    return 0.0 if low <= right <= high else min(abs(low - right), abs(high - right))
