"""What each round did and cost; of tolerance, selection and drops only what was at work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from validation.page import Block, Cell, Figure, Figures, Readout, Section, Series, Table, Text
from validation.page.svg import axis_shares, canvas, inline_svg
from validation.palette import LIGHT
from validation.words import listing, number

from ...rounds.record import RoundRecord
from ..sources import FitRecord

_SIZE = (300, 180)


def rounds_section(record: FitRecord, key: str) -> Section:
    """One row a round, and what changed over them."""
    rounds = record.posterior.rounds
    blocks: list[Block] = [_table(rounds)]
    figures = _figures(record) if len(rounds) > 1 else ()
    if figures:
        blocks.append(Figures(figures))
    blocks += [Text(text, note=True) for text in _explained(record)]
    blocks += _losses(rounds)
    return Section(f"{key}-rounds", "Rounds", tuple(blocks))


def retries(record: FitRecord) -> bool:
    """Whether rounds after the first tried a theta again until its data were near x_o.

    They do where the config says so, and where the distance was known: then no network was trained.
    """
    posterior = record.posterior
    known = all(r.network is None for r in posterior.rounds)
    return posterior.config.proposal == "generator" or known


def selects(rounds: Sequence[RoundRecord]) -> bool:
    """Whether a tolerance was at work in a round."""
    return any(r.selected for r in rounds)


def drops(rounds: Sequence[RoundRecord]) -> bool:
    """Whether a theta was given up."""
    return any(r.dropped_fraction > 0 for r in rounds)


def _figures(record: FitRecord) -> tuple[Figure, ...]:
    """What changed, of what was at work."""
    rounds = record.posterior.rounds
    figures = []
    if selects(rounds):
        figures.append(_line("Tolerance", rounds, [r.tolerance for r in rounds]))
        kept = [r.accepted / r.pairs for r in rounds]
        figures.append(_line("Share of pairs kept", rounds, kept, True))
    if drops(rounds) and retries(record):
        dropped = [r.dropped_fraction for r in rounds]
        figures.append(_line("Share of theta given up", rounds, dropped, True))
    return tuple(figures)


def _explained(record: FitRecord) -> list[str]:
    """The words of the table that do not explain themselves."""
    rounds = record.posterior.rounds
    texts = []
    if any(r.x_o_p_value is not None for r in rounds):
        texts.append(
            "p of x_o: a small one says that x_o is unusual among the round’s simulations."
        )
    if selects(rounds):
        texts.append(
            "Pairs farther from x_o than the tolerance are left out; its unit is that of the "
            "round’s own distance."
        )
    if drops(rounds):
        texts.append(
            "Given up: theta whose simulations stayed outside the tolerance for as many calls as a "
            "theta may use. It biases the posterior towards theta whose data fall near x_o easily "
            "(Lu & Wong 2025, Theorem 2.2)."
            if retries(record)
            else "Given up: theta whose one simulation failed."
        )
    return texts


def _table(rounds: Sequence[RoundRecord]) -> Table:
    """A column of what is always so, and of the rest where it happened."""
    columns: list[tuple[str, list[Cell]]] = [
        ("round", [r.round for r in rounds]),
        ("simulator calls", [r.simulator_calls for r in rounds]),
    ]
    if any(r.failures for r in rounds):
        columns.append(("failed", [r.failures for r in rounds]))
    if any(r.proposed != r.simulator_calls for r in rounds):
        columns.append(("theta tried", [r.proposed for r in rounds]))
    if drops(rounds):
        columns.append(("given up", [f"{r.dropped_fraction:.1%}" for r in rounds]))
    columns.append(("pairs to train on", [r.pairs for r in rounds]))
    if selects(rounds):
        columns.append(("tolerance", [float(r.tolerance) for r in rounds]))
        columns.append(("pairs kept", [r.accepted for r in rounds]))
    if any(r.x_o_p_value is not None for r in rounds):
        values = [r.x_o_p_value for r in rounds]
        columns.append(("p of x_o", [None if v is None else float(f"{v:.2g}") for v in values]))
    columns.append(("seconds", [round(r.seconds, 1) for r in rounds]))
    names, cells = zip(*columns, strict=True)
    return Table("What each round did", names, tuple(zip(*cells, strict=True)))


def _losses(rounds: Sequence[RoundRecord]) -> list[Block]:
    """Held-out losses, which compare trainings of one round and no two rounds."""
    logs = [(r.round, r.encoder, r.network, r.generator) for r in rounds]
    if not any(network or generator for _, _, network, generator in logs):
        return []
    rows = tuple(
        (
            number_,
            encoder,
            *(None if log is None else float(log.validation_loss) for log in (network, generator)),
        )
        for number_, encoder, network, generator in logs
    )
    return [
        Table(
            "What the networks saw of x, and their losses on held-out pairs in the epoch that was "
            "kept",
            ("round", "encoder", "quantile network", "generator"),
            rows,
            folded="Training",
        )
    ]


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
