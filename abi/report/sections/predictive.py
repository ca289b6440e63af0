"""Posterior predictive: does data simulated at the posterior's parameters look like x_o?

It uses the data twice, once to fit and once to check, so it cannot certify a posterior: it can show
that a posterior, or a model, is wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from simulators import simulate
from simulators.random import child_seed
from validation.page import Block, Cell, Figure, Readout, Section, Series, Table, Text, Written
from validation.page.palette import LIGHT
from validation.page.svg import axis_shares, canvas, dots, inline_svg
from validation.page.words import measured, number, plural

from ..sources import FitRecord
from .density import Array

_SIZE = (540, 230)
_MOST_VALUES = 2_000
_NUM_FURTHEST = 8
_NUM_SIMULATIONS, _SECONDS = 200, 120.0
LEAST = 20
"""Simulations that the bands need."""


@dataclass(frozen=True, eq=False)
class Predictive:
    """Simulations at the posterior's draws beside the observation."""

    x: Array
    """(n, p), finite."""
    x_o: Array
    """(p,)."""
    failures: int

    @property
    def tails(self) -> Array:
        """For each value of x_o, the smaller share of simulations on one of its sides, (p,)."""
        below = (self.x < self.x_o).mean(axis=0)
        above = (self.x > self.x_o).mean(axis=0)
        return np.asarray(np.minimum(1.0 - below, 1.0 - above))

    @property
    def covered(self) -> float:
        """Share of the values of x_o inside the central 90% of the simulations."""
        low, high = np.quantile(self.x, [0.05, 0.95], axis=0)
        return float(((self.x_o >= low) & (self.x_o <= high)).mean())


def predict(record: FitRecord, num_simulations: int | None, seed: int) -> Predictive | str:
    """Simulate at draws of the posterior, or say in a line why not.

    Without a number it makes 200 simulations, or as many as the fit's own pace allows in two
    minutes: a report should not cost what a fit costs.
    """
    if num_simulations is None:
        pace = _seconds_per_call(record)
        num_simulations = min(_NUM_SIMULATIONS, int(_SECONDS / pace) if pace > 0 else 10**9)
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
        run = simulate(
            record.simulator,
            theta,
            seed=child_seed(seed, 3),
            progress=False,
            max_failure_fraction=1.0,
        )
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return f"Not simulated: the simulator failed: {reason}"
    x, x_o = run.x.double().numpy(), record.posterior.observation.double().numpy()
    return _unusable(x, len(theta), len(x_o)) or Predictive(x, x_o, len(run.failures))


def _unusable(x: Array, num_simulations: int, x_dim: int) -> str:
    """Why simulations cannot be shown beside an observation of ``x_dim`` values; empty if can."""
    if len(x) < LEAST:
        return (
            f"Not shown: {len(x)} of {plural(num_simulations, 'simulation')} gave a usable result, "
            f"and the bands need {LEAST}."
        )
    if x.shape[1] != x_dim:
        return f"Not shown: the simulator gives {x.shape[1]} values for an observation of {x_dim}."
    return ""


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
            "The observation was used to fit and is used again to check: agreement here is "
            "necessary, not sufficient.",
            note=True,
        )
    )
    return Section(name, title, tuple(blocks))


def _figure(found: Predictive) -> Figure:
    p = len(found.x_o)
    x, x_o, unit = found.x[:, :_MOST_VALUES], found.x_o[:_MOST_VALUES], "value"
    if not _one_scale(x):
        centre, spread = np.median(x, axis=0), _spread(x)
        x, x_o, unit = (x - centre) / spread, (x_o - centre) / spread, "in predictive sds"
    low, left_half, median, right_half, high = np.quantile(x, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0)
    index = np.arange(1, len(x_o) + 1)
    with canvas(*_SIZE) as (figure, axes):
        if len(index) <= 24:
            axes.vlines(index, low, high, color=LIGHT["posterior"], alpha=0.35, linewidth=5)
            axes.vlines(index, left_half, right_half, color=LIGHT["posterior"], linewidth=5)
        else:
            axes.fill_between(index, low, high, color=LIGHT["posterior"], alpha=0.2, linewidth=0)
            axes.fill_between(index, left_half, right_half, color=LIGHT["posterior"], alpha=0.35,
                              linewidth=0)  # fmt: skip
            axes.plot(index, median, color=LIGHT["posterior"], linewidth=1)
        dots(axes, index, x_o, LIGHT["observed"], 6 if len(index) <= 60 else 3, 1.0)
        ends = min(low.min(), x_o.min()), max(high.max(), x_o.max())
        margin = 0.06 * (ends[1] - ends[0]) or 1.0
        axes.set(xlim=(0.5, len(index) + 0.5), ylim=(ends[0] - margin, ends[1] + margin))
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
        alt=f"{found.covered:.0%} of the {p} values of x_o lie inside the central 90% of "
        f"{len(found.x)} simulations at draws of the posterior.",
        caption=f"{found.covered:.0%} of the {p} values of x_o lie inside the central 90% of "
        f"{len(found.x):,} simulations.",
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
    order = np.argsort(found.tails, kind="stable")[:_NUM_FURTHEST]
    rows: list[tuple[Cell, ...]] = []
    for j in order:
        spread = float(found.x[:, j].std())
        values = (found.x_o[j], *np.quantile(found.x[:, j], [0.05, 0.5, 0.95]))
        cells = (Written(measured(float(value), spread), float(value)) for value in values)
        rows.append((int(j) + 1, *cells, float(f"{found.tails[j]:.2g}")))
    columns = ("value number", "x_o", "5%", "median", "95%", "share as far out")
    return Table("The values of x_o that the posterior expects least", columns, tuple(rows))


def _seconds_per_call(record: FitRecord) -> float:
    """At most: the training of the fit's networks is in it."""
    rounds = record.posterior.rounds
    calls = sum(r.simulator_calls for r in rounds)
    return sum(r.seconds for r in rounds) / calls if calls else 0.0


def _spread(x: Array) -> Array:
    spread = x.std(axis=0)
    return np.where(spread > 0, spread, 1.0)


def _one_scale(x: Array) -> bool:
    """Whether the values can share one axis."""
    spread = _spread(x)
    whole = float(np.quantile(x, 0.99) - np.quantile(x, 0.01))
    return bool(np.median(spread) > 0.02 * whole) and float(spread.max() / spread.min()) < 30


def covered_words(found: Predictive) -> str:
    """The line of the verdict."""
    return (
        f"Data simulated at the posterior: {number(100 * found.covered, 3)}% of the values of x_o "
        "lie inside the central 90%. Agreement here is necessary, not sufficient."
    )
