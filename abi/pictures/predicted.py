"""Posterior predictive: does data simulated at the posterior's parameters look like x_o?

It uses the data twice, once to fit and once to check, so it cannot certify a posterior: it can show
that a posterior, or a model, is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from simulators import simulate
from simulators.given.observation import Observed
from simulators.given.probe import NUM_PROBES
from simulators.given.task import recognise
from simulators.running.engines import Workers
from validation.palette import LIGHT
from validation.words import plural

from ..files.arviz_data import Fit
from .density import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST = 20
"""Simulations that the bands need."""
NUM_SIMULATIONS = 200
"""Simulations that are made unasked."""
_BARS = 24


@dataclass(frozen=True, eq=False)
class Predictive:
    """Simulations at the posterior's draws beside the observation."""

    x: Array
    """(n, p), NaN where a simulation has a gap."""
    x_o: Array
    """(p,), NaN where it has one."""
    failures: int

    @property
    def unusable(self) -> str:
        """Why the simulations cannot be shown beside x_o; empty if they can."""
        if len(self.x) < LEAST:
            made = plural(len(self.x) + self.failures, "simulation")
            return f"{len(self.x)} of {made} gave a usable result, and the bands need {LEAST}."
        if self.x.shape[1] != len(self.x_o):
            return (
                f"the simulator gives {self.x.shape[1]} values for an observation of "
                f"{len(self.x_o)}."
            )
        return ""

    @property
    def tails(self) -> Array:
        """For each value of x_o, the smaller share of simulations on one of its sides, (p,).

        1 for those that were not measured.
        """
        count = np.maximum((~np.isnan(self.x)).sum(axis=0), 1)
        below = (self.x < self.x_o).sum(axis=0) / count
        above = (self.x > self.x_o).sum(axis=0) / count
        return np.asarray(np.minimum(1.0 - below, 1.0 - above))

    @property
    def covered(self) -> float:
        """Share of the values of x_o inside the central 90% of the simulations."""
        low, high = quantiles(self.x, [0.05, 0.95])
        return float(((self.x_o >= low) & (self.x_o <= high))[~np.isnan(self.x_o)].mean())

    @property
    def coverage_in_words(self) -> str:
        """The same as a sentence without its end."""
        count = int((~np.isnan(self.x_o)).sum())
        lie = "lies" if count == 1 else "lie"
        return (
            f"{self.covered:.0%} of the {plural(count, 'value')} of x_o {lie} inside the "
            f"central 90% of {len(self.x):,} simulations at draws of the posterior"
        )


def simulated(
    posterior: Fit,
    simulator: Callable[..., Any],
    theta: Tensor,
    seed: int,
    workers: Workers = 1,
    timeout: float | None = None,
) -> Predictive:
    """Simulate at draws theta (n, d) of the posterior."""
    names, observed = posterior.parameter_names, Observed.of(posterior.observation)
    found = recognise(simulator, theta[:NUM_PROBES], None, names, observed)
    run = simulate(
        found.simulator, theta, seed=seed, workers=workers, timeout=timeout, progress=False,
        max_failure_fraction=1.0,
    )  # fmt: skip
    x, x_o = run.x.double().numpy(), posterior.observation.double().numpy()
    return Predictive(x, x_o, len(run.failures))


def draw_predicted(axes: Axes, places: Array, x: Array, x_o: Array) -> tuple[Array, Array]:
    """Intervals of simulations x (n, p) at places (p,), in a view that holds x_o (p,), too.

    Up to 24 values are bars that hold 50% and 90%, more are bands with the median.

    Returns:
        The ends of the 90%, (p,) each.
    """
    low, left, median, right, high = quantiles(x, [0.05, 0.25, 0.5, 0.75, 0.95])
    colour, count = LIGHT["posterior"], len(places)
    if count <= _BARS:
        axes.vlines(places, low, high, color=colour, alpha=0.35, linewidth=5)
        axes.vlines(places, left, right, color=colour, linewidth=5)
    else:
        axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.fill_between(places, left, right, color=colour, alpha=0.35, linewidth=0)
        axes.plot(places, median, color=colour, linewidth=1)
    ends = np.nanmin([low, x_o]), np.nanmax([high, x_o])
    margin = 0.06 * (ends[1] - ends[0]) or 1.0
    aside = 0.5 * (places[-1] - places[0]) / max(count - 1, 1) or 0.5
    axes.set(xlim=(places[0] - aside, places[-1] + aside))
    axes.set(ylim=(ends[0] - margin, ends[1] + margin))
    return low, high


def quantiles(x: Array, levels: Sequence[float]) -> Array:
    """Quantiles of each column of x (n, p) over what is there, (levels, p); NaN of nothing."""
    empty = np.isnan(x).all(axis=0)
    found = np.nanquantile(np.where(empty, 0.0, x), levels, axis=0)
    return np.where(empty, np.nan, found)


def in_one_unit(x: Array, x_o: Array) -> tuple[Array, Array, str]:
    """Simulations (n, p) and x_o (p,) that can share an axis, and in what they are measured."""
    centre = quantiles(x, [0.5])[0]
    spread = np.nanstd(np.where(np.isnan(centre), 0.0, x), axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    whole = float(np.nanquantile(x, 0.99) - np.nanquantile(x, 0.01))
    if np.median(spread) > 0.02 * whole and float(spread.max() / spread.min()) < 30:
        return x, x_o, "value"
    return (x - centre) / spread, (x_o - centre) / spread, "in predictive sds"
