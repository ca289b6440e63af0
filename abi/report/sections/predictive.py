"""The section of predicted data; :mod:`abi.pictures.predicted` says what it can show."""

from __future__ import annotations

import numpy as np

from simulators.random import child_seed
from validation.page import Block, Cell, Figure, Readout, Section, Series, Table, Text, Written
from validation.page.svg import axis_shares, canvas, dots, inline_svg
from validation.palette import LIGHT
from validation.words import measured, number, plural

from ...pictures.predicted import (
    LEAST,
    NUM_SIMULATIONS,
    Predictive,
    draw_predicted,
    in_one_unit,
    quantiles,
    simulated,
)
from ..sources import FitRecord, reason

_SIZE = (420, 220)
_MOST_VALUES = 2_000
_NUM_FURTHEST = 8
_SECONDS = 120.0


def predict(record: FitRecord, num_simulations: int | None, seed: int) -> Predictive | str:
    """Simulate at draws of the posterior, or say in a line why not.

    Without a number it makes 200 simulations, or as many as the fit's own pace allows in two
    minutes: a report should not cost what a fit costs.
    """
    if num_simulations is None:
        pace = _seconds_per_call(record)
        num_simulations = min(NUM_SIMULATIONS, int(_SECONDS / pace) if pace > 0 else 10**9)
        if num_simulations < LEAST:
            return (
                f"Not simulated: a call took {number(pace, 2)} seconds in the fit; ask for as many "
                "as you like with --num-predictive."
            )
    if num_simulations == 0:
        return "Not simulated: --num-predictive 0 was asked for."
    if record.simulator is None:
        return "Not simulated: the simulator is not at hand (see the notes)."
    theta = record.samples[:num_simulations]
    try:
        found = simulated(record.posterior, record.simulator, theta, child_seed(seed, 3))
    except Exception as error:
        return f"Not simulated: the simulator failed: {reason(error)}."
    return f"Not shown: {found.unusable}" if found.unusable else found


def predictive_section(found: Predictive | str, key: str) -> Section:
    """Bands of simulated data with the observation, and its least expected values."""
    name, title = f"{key}-predictive", "Data predicted by the posterior"
    if isinstance(found, str):
        return Section(name, title, (Text(found),))
    blocks: list[Block] = [_figure(found), _furthest(found)]
    if found.failures:
        blocks.append(
            Text(f"{plural(found.failures, 'simulation')} gave no usable result.", note=True)
        )
    blocks.append(
        Text(
            "x_o was used to fit and is used again here: a wrong model or a wrong posterior may "
            "show, a right one is not proved.",
            note=True,
        )
    )
    return Section(name, title, tuple(blocks))


def _figure(found: Predictive) -> Figure:
    x, x_o = found.x[:, :_MOST_VALUES], found.x_o[:_MOST_VALUES]
    x, x_o, unit = in_one_unit(x, x_o)
    index = np.arange(1.0, len(x_o) + 1)
    with canvas(*_SIZE) as (figure, axes):
        low, high = draw_predicted(axes, index, x, x_o)
        size = 5.5 if len(index) <= 60 else 3
        dots(axes, index, x_o, LIGHT["page"], size + 2.5, 1.0)
        dots(axes, index, x_o, LIGHT["observed"], size, 1.0)
        axes.set(xlabel="value number", ylabel=unit)
        axes.locator_params(axis="x", integer=True)
        left, right = axis_shares(figure, axes)
        svg = inline_svg(figure)
    inset = 0.5 / len(index) * (right - left)
    series = (
        Series("x_o", x_o.tolist()),
        Series("90% from", low.tolist()),
        Series("to", high.tolist()),
    )
    return Figure(
        svg,
        alt=f"{found.coverage_in_words}.",
        caption=f"{found.coverage_in_words}.",
        legend=(
            ("dot", "x_o"),
            ("posterior", "half of the simulations"),
            ("inner", "90% of them"),
        ),
        readout=Readout(
            "value number", left + inset, right - inset, 1, len(index), series, whole=True
        ),
        wide=True,
    )


def _furthest(found: Predictive) -> Table:
    order = np.argsort(found.tails, kind="stable")
    order = order[~np.isnan(found.x_o[order])][:_NUM_FURTHEST]
    rows: list[tuple[Cell, ...]] = []
    for j in order:
        spread = float(np.nanstd(found.x[:, j]))
        values = (found.x_o[j], *quantiles(found.x[:, [j]], [0.05, 0.5, 0.95])[:, 0])
        cells = (Written(measured(float(value), spread), float(value)) for value in values)
        rows.append((int(j) + 1, *cells, float(f"{found.tails[j]:.2g}")))
    columns = ("value number", "x_o", "5%", "median", "95%", "share as far out")
    return Table("The values of x_o that the posterior expects least", columns, tuple(rows))


def _seconds_per_call(record: FitRecord) -> float:
    """At most: the training of the fit's networks is in it."""
    rounds = record.posterior.rounds
    calls = sum(r.simulator_calls for r in rounds)
    return sum(r.seconds for r in rounds) / calls if calls else 0.0


def covered_words(found: Predictive) -> str:
    """The line of the verdict."""
    return (
        f"Of the values of x_o, {found.covered:.0%} lie inside the central 90% of "
        "data simulated at the posterior."
    )
