"""The verdict in detail: how far each parameter may be off, by which tests, and round by round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from validation.page import Block, Cell, Facts, Figure, Section, Table, Text
from validation.page.svg import canvas, inline_svg
from validation.palette import LIGHT
from validation.swaps.deviations import Deviation
from validation.swaps.words import TESTS
from validation.words import listing, number, plural

from ...pictures.drawing import draw_interval
from ...pictures.rounds import bias_reach, mark_ratios
from ...pictures.style import short
from ...verdict.record import ALPHA, Check, control_words
from ..sources import FitRecord
from .by_calls import calls_blocks
from .glance import WIDTH

MOST_SHOWN = 12
"""Parameters of the section's picture."""
_ROW = 26


def verdict_section(record: FitRecord, key: str) -> Section:
    """Intervals, tests with their controls, and the error by simulator calls."""
    verdict = record.posterior.verdict
    check = verdict.check
    blocks: list[Block] = []
    if check.parameters:
        blocks.append(deviation_figure(check))
    blocks += _tests(check, verdict.everywhere)
    blocks += calls_blocks(record.posterior)
    facts = [
        ("simulations that judged", f"{check.num_pairs:,}"),
        ("left out: beyond the answer’s reach", f"{check.left_out:,}" if check.left_out else ""),
        ("simulator calls for them", f"{verdict.num_calls:,}" if verdict.num_calls else ""),
        ("calls that failed", f"{verdict.failures:,}" if verdict.failures else ""),
    ]
    blocks.append(Facts(tuple((name, value) for name, value in facts if value)))
    return Section(f"{key}-verdict", "The verdict in detail", tuple(blocks))


def deviation_figure(check: Check) -> Figure:
    """Bias and sd ratio of each parameter with their intervals; of many, the worst ones."""
    parts = [part for part in check.parameters if all(map(math.isfinite, _numbers(part)))]
    worst = sorted(parts, key=lambda part: (part.wrong, part.size), reverse=True)
    shown = worst[:MOST_SHOWN] if len(parts) > MOST_SHOWN else parts
    with canvas(WIDTH, 46 + _ROW * max(1, len(shown))) as (figure, axes):
        axes.remove()
        bias, ratio = figure.subplots(1, 2, sharey=True)
        for row, part in enumerate(reversed(shown)):
            draw_interval(bias, row, (part.bias, part.bias_low, part.bias_high), 0.0, upright=False)
            values = part.sd_ratio, part.sd_ratio_low, part.sd_ratio_high
            draw_interval(ratio, row, values, 1.0, upright=False)
        _axes(bias, ratio, shown)
        svg = inline_svg(figure)
    caption = "With 95% confidence all intervals hold at once, at x_o."
    if len(shown) < len(check.parameters):
        caption = f"The {len(shown)} worst of {len(check.parameters)} parameters. {caption}"
    return Figure(
        svg,
        alt=f"How far the answer may be off: {listing([_said(part) for part in shown])}.",
        caption=caption,
        title="How far off it may be",
        legend=(
            ("posterior", "interval that allows no error"),
            ("observed", "interval that rules it out"),
            ("bound", "no error"),
        ),
        numbers=_numbers_table(check),
        wide=True,
    )


def _numbers(part: Deviation) -> tuple[float, ...]:
    ratios = part.sd_ratio, part.sd_ratio_low, part.sd_ratio_high
    return (part.bias, part.bias_low, part.bias_high, *ratios)


def _axes(bias: Any, ratio: Any, shown: Sequence[Deviation]) -> None:
    """Ends, ticks and names."""
    reach = bias_reach(shown)
    bias.set(xlim=(-reach, reach), xlabel="bias of the mean, in sd")
    bias.locator_params(axis="x", nbins=5)
    ratio.set_xlabel("sd ÷ true sd")
    mark_ratios(ratio, shown, "x")
    bias.set_yticks(range(len(shown)), labels=[short(part.name) for part in reversed(shown)])
    bias.set_ylim(-0.6, max(1, len(shown)) - 0.4)
    bias.tick_params(axis="y", length=0, labelcolor=LIGHT["ink"])
    ratio.tick_params(axis="y", length=0)
    for axes, right in ((bias, 0.0), (ratio, 1.0)):
        axes.axvline(right, color=LIGHT["muted"], linestyle=":", linewidth=1.3, zorder=0)
        axes.spines["left"].set_visible(False)


def _said(part: Deviation) -> str:
    return (
        f"{part.name}: bias {number(part.bias, 2)} ({number(part.bias_low, 2)} to "
        f"{number(part.bias_high, 2)}) sds, sd {number(part.sd_ratio, 2)} "
        f"({number(part.sd_ratio_low, 2)} to {number(part.sd_ratio_high, 2)}) times the true one"
    )


def _numbers_table(check: Check) -> Table:
    worst = sorted(check.deviations, key=lambda part: part.size, reverse=True)
    columns = ("parameter", "bias", "from", "to", "sd ratio", "from", "to")
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (part.name, *(float(f"{value:.3g}") for value in _numbers(part))) for part in worst
    )
    caption = "Bias of the mean in posterior sd, and sd ÷ true sd, at x_o, with 95% intervals"
    return Table(caption, columns, rows, sortable=len(rows) > 1)


def _tests(check: Check, everywhere: bool) -> list[Block]:
    """The panel's tests, and the same panel on answers that are wrong on purpose."""
    from validation import NOTES

    if check.p_value is None:
        return [
            Text(
                "Too few simulations to test the answer: "
                f"{plural(check.num_pairs, 'simulation')} can judge it."
            )
        ]
    said = "rejected" if check.rejects else "not rejected"
    rows: list[tuple[Cell, ...]] = [
        ("all together", _p(check.p_value), f"{said} at the level of {ALPHA:g}")
    ]
    rows += [
        (TESTS.get(name, name), _p(p), NOTES[name].sees if name in NOTES else "")
        for name, p in check.p_values.items()
    ]
    blocks: list[Block] = [
        Table(
            f"The answer, tested by {plural(check.num_pairs, 'simulation')} near x_o that no "
            "training saw. The verdict takes the p-value of all tests together, which allows for "
            "their number; those of single tests show where it comes from",
            ("test", "p", "what it sees (q: this answer)"),
            tuple(rows),
        )
    ]
    if check.controls:
        judged = {"this answer": check.p_value}
        judged |= {control_words(name, everywhere): p for name, p in check.controls.items()}
        cut = "" if everywhere else (
            ". The simulations come from the prior cut to the region where the answer lies; the "
            "answer and the prior that these tests see are both cut to it"
        )  # fmt: skip
        blocks.append(
            Table(
                f"The same tests on answers wrong on purpose, which they should reject{cut}",
                ("answer", "p", "verdict"),
                tuple(
                    (name, _p(p), "rejected" if p <= ALPHA else "not rejected")
                    for name, p in judged.items()
                ),
            )
        )
    return blocks


def _p(value: float) -> float:
    return float(f"{value:.2g}")
