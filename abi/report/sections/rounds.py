"""What each round did and cost: tolerance, acceptance, calls, what was dropped, losses, seconds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from validation.page import Block, Figure, Figures, Readout, Section, Series, Table, Text
from validation.page.palette import LIGHT
from validation.page.svg import axis_shares, canvas, inline_svg
from validation.page.words import listing, number

from ...rounds.record import RoundRecord
from ..sources import FitRecord

_SIZE = (300, 180)


def rounds_section(record: FitRecord, key: str) -> Section:
    """One row a round, and what changed over them."""
    rounds = record.posterior.rounds
    blocks: list[Block] = [_table(rounds)]
    if len(rounds) > 1:
        blocks.append(
            Figures(
                (
                    _line("Tolerance", rounds, [r.tolerance for r in rounds]),
                    _line("Accepted share", rounds, [r.accepted / r.pairs for r in rounds], True),
                    _line("Dropped share", rounds, [r.dropped_fraction for r in rounds], True),
                )
            )
        )
    blocks.append(
        Text(
            f"The tolerance is in the units of each round’s own distance. {_dropped(record)} "
            "Losses are those of held-out pairs in the epoch that was kept.",
            note=True,
        )
    )
    return Section(f"{key}-rounds", "Rounds", tuple(blocks))


def _dropped(record: FitRecord) -> str:
    """What a dropped theta is, and whether dropping it biases the answer."""
    if not retries(record):
        return (
            "Dropped: theta whose one simulation failed; among the pairs that are left, theta "
            "given x is what it was."
        )
    return (
        "Dropped: theta whose simulations stayed outside the tolerance for as many calls as a "
        "theta may use; they bias the posterior towards theta whose data fall near x_o easily (Lu "
        "& Wong 2025, Theorem 2.2)."
    )


def retries(record: FitRecord) -> bool:
    """Whether rounds after the first tried a theta again until its data were near x_o.

    They do where the config says so, and where the distance was known: then no network was trained.
    """
    posterior = record.posterior
    known = all(r.network is None for r in posterior.rounds)
    return posterior.config.proposal == "generator" or known


def _table(rounds: Sequence[RoundRecord]) -> Table:
    rows = tuple(
        (
            r.round,
            float(r.tolerance),
            r.simulator_calls,
            r.failures,
            r.proposed,
            f"{r.dropped_fraction:.1%}",
            r.pairs,
            r.accepted,
            None if r.network is None else float(r.network.validation_loss),
            None if r.generator is None else float(r.generator.validation_loss),
            r.x_o_p_value,
            round(r.seconds, 1),
        )
        for r in rounds
    )
    columns = "round, tolerance, calls, failures, proposed, dropped, pairs, accepted, network loss"
    names = (*columns.split(", "), "generator loss", "p of x_o", "seconds")
    return Table("What each round did", names, rows)


def _line(
    title: str, rounds: Sequence[RoundRecord], values: Sequence[float], percent: bool = False
) -> Figure:
    numbers = [r.round for r in rounds]
    scale = 100.0 if percent else 1.0
    with canvas(*_SIZE) as (figure, axes):
        axes.plot(
            numbers, [scale * v for v in values], "o-", color=LIGHT["posterior"], linewidth=1.8
        )
        axes.set(
            xlabel="round", xticks=_ticks(numbers), xlim=(numbers[0] - 0.15, numbers[-1] + 0.15)
        )
        axes.set_ylim(0, max(1.15 * scale * max(values), 1.0 if percent else 1e-12))
        if percent:
            axes.set_ylabel("%")
        axes.locator_params(axis="y", nbins=4)
        left, right = axis_shares(figure, axes)
        svg = inline_svg(figure)
    words = [f"{100 * v:.3g}%" if percent else number(float(v), 3) for v in values]
    inset = 0.15 / (numbers[-1] - numbers[0] + 0.3) * (right - left)
    return Figure(
        svg,
        alt=f"{title} by round: {listing(words)}.",
        caption=f"From {words[0]} in round {numbers[0]} to {words[-1]} in round {numbers[-1]}.",
        title=title,
        readout=Readout(
            "round", left + inset, right - inset, numbers[0], numbers[-1],
            (Series(title.lower(), list(values), percent),), whole=True,
        ),
    )  # fmt: skip


def _ticks(numbers: Sequence[int]) -> list[int]:
    step = -(-len(numbers) // 8)
    return list(np.array(numbers)[::step])
