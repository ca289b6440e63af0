"""What a study of power found: rejection rates with intervals, and the smallest strength seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from simulators.arguments import FRACTION
from simulators.summary import summary

from ..results.tables import html_table, text_table
from .cells import PowerCell

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class PowerRate:
    """How often one test rejects a posterior that is wrong by one strength."""

    method: str
    strength: float
    rejections: int
    repetitions: int
    """Over all seeds, without those that ended in an error."""
    rate: float | None
    """Rejections over repetitions; None where all ended in an error or were not yet made."""
    interval: tuple[float, float]
    """95% interval of the rate (Clopper-Pearson). Where one trained network serves several
    repetitions, it is for these networks alone."""
    seed_rates: tuple[float, ...]
    """The rate of each seed; their spread includes that of the training."""
    standard_error: float | None
    """Standard error of the mean over seeds, as the papers print it; None for fewer than 2."""
    seconds: float | None
    """CPU time of one repetition, on average."""
    errors: tuple[str, ...]
    """Errors that tests raised."""


@dataclass(frozen=True)
class PowerStudy:
    """Rejection rates of tests against one kind of wrong posterior, over its strengths."""

    failure: str
    cells: tuple[PowerCell, ...]
    """One for each method, strength and seed, in this order."""

    __repr__ = summary

    def __str__(self) -> str:
        return f"{self._title()}\n{text_table(*self._table())}"

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return html_table(*self._table(), self._title())

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the tests."""
        return tuple(dict.fromkeys(cell.method for cell in self.cells))

    @property
    def strengths(self) -> tuple[float, ...]:
        """Strengths, ascending."""
        return tuple(sorted({cell.strength for cell in self.cells}))

    def rate(self, method: str, strength: float, alpha: float = 0.05) -> PowerRate:
        """How often a test rejects at one strength.

        Args:
            method: name of the test in this study.
            strength: one of the study's.
            alpha: the level, in (0, 1).

        Raises:
            ValueError: if the study has no such test or no such strength.
        """
        FRACTION(alpha, "alpha")
        cells = [c for c in self.cells if (c.method, c.strength) == (method, float(strength))]
        known = cells or (method in self.methods and float(strength) in self.strengths)
        if not known:
            raise ValueError(
                f"`method` and `strength` must be of this study; got {method!r} at {strength}."
            )
        good = [cell for cell in cells if cell.error is None]
        counts = [sum(p <= alpha for p in cell.p_values) for cell in good]
        total, rejections = sum(len(cell.p_values) for cell in good), sum(counts)
        by_seed = tuple(k / len(c.p_values) for k, c in zip(counts, good, strict=True))
        spread = float(np.std(by_seed, ddof=1)) / len(by_seed) ** 0.5 if len(by_seed) > 1 else None
        seconds = sum(cell.seconds or 0.0 for cell in good) / total if total else None
        return PowerRate(
            method, float(strength), rejections, total, rejections / total if total else None,
            clopper_pearson(rejections, total), by_seed, spread, seconds,
            tuple(cell.error for cell in cells if cell.error is not None),
        )  # fmt: skip

    def rates(self, alpha: float = 0.05) -> list[PowerRate]:
        """The rates of every test at every strength."""
        FRACTION(alpha, "alpha")
        pairs = dict.fromkeys((cell.method, cell.strength) for cell in self.cells)
        return [self.rate(method, strength, alpha) for method, strength in pairs]

    def smallest_strength(
        self, method: str, power: float = 0.8, alpha: float = 0.05
    ) -> float | None:
        """The smallest strength above 0 that a test notices; None if it notices none.

        Args:
            method: its name in this study.
            power: the rejection rate that counts as noticing, in [0, 1].
            alpha: the level, in (0, 1).

        Raises:
            ValueError: if the study has no such test, or every cell of it above 0 had an error.
        """
        if not 0.0 <= power <= 1.0:
            raise ValueError(f"`power` must lie in [0, 1]; got {power}.")
        rates = [self.rate(method, strength, alpha) for strength in self.strengths]
        wrong = [rate for rate in rates if rate.strength > 0]
        errors = [error for rate in wrong for error in rate.errors]
        if errors and all(rate.rate is None for rate in wrong):
            raise ValueError(f"`method`: {method!r} had an error in every cell: {errors[0]}")
        seen = [rate.strength for rate in wrong if rate.rate is not None and rate.rate >= power]
        return min(seen, default=None)

    def to_dict(self, alpha: float = 0.05) -> dict[str, Any]:
        """Rates and settings as plain values, for JSON."""
        self._refuse_empty()
        return {
            "failure": self.failure,
            "alpha": alpha,
            "seed": self.cells[0].seed,
            "num_pairs": self.cells[0].num_pairs,
            "settings": {cell.method: cell.settings for cell in self.cells},
            "rates": [_plain(rate) for rate in self.rates(alpha)],
        }

    def plot(
        self, ax: Axes | None = None, alpha: float = 0.05, order: Sequence[str] | None = None
    ) -> Axes:
        """Draw power against strength with intervals; needs matplotlib.

        Args:
            ax: new axes when omitted.
            alpha: the level, in (0, 1).
            order: names of tests by whose places colours are given: one for several pictures.
        """
        self._refuse_empty()
        return plot_power(self, ax, alpha, order)

    def _title(self) -> str:
        sizes = f", {self.cells[0].num_pairs:,} pairs" if self.cells else ""
        return f"power at level .05 against {self.failure}{sizes}"

    def _table(self) -> tuple[list[list[str]], list[str]]:
        """Tests by strengths: the rate of rejections, and over how many repetitions."""
        rows = []
        for method in self.methods:
            rates = [self.rate(method, strength) for strength in self.strengths]
            cells = ["" if one.rate is None else f"{one.rate:.2f}" for one in rates]
            rows.append([method, *cells, str(min(one.repetitions for one in rates))])
        return rows, ["test", *(f"{strength:g}" for strength in self.strengths), "repetitions"]

    def _refuse_empty(self) -> None:
        if not self.cells:
            raise ValueError("`minutes` left time for no cell of this study, and none was kept.")


def clopper_pearson(
    rejections: int, repetitions: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Exact interval of a proportion; (0, 1) without repetitions.

    Source: Clopper & Pearson (1934).
    """
    from scipy.special import betaincinv

    tail, missed = (1 - confidence) / 2, repetitions - rejections
    low = float(betaincinv(rejections, missed + 1, tail)) if rejections else 0.0
    high = float(betaincinv(rejections + 1, missed, 1 - tail)) if missed else 1.0
    return low, high


def _plain(rate: PowerRate) -> dict[str, Any]:
    return {key: list(v) if isinstance(v, tuple) else v for key, v in vars(rate).items()}


def plot_power(
    study: PowerStudy,
    ax: Axes | None = None,
    alpha: float = 0.05,
    order: Sequence[str] | None = None,
) -> Axes:
    """Power against strength, one line a test, 95% intervals as bars, the level as a dotted line.

    Args:
        study: of :func:`validation.power`.
        ax: new axes when omitted.
        alpha: level of the tests, in (0, 1).
        order: tests by whose places colours and markers are given, so that several pictures agree
            about them; those of the study that it leaves out follow.
    """
    places = list(dict.fromkeys([*(order or ()), *study.methods]))
    if ax is None:
        from ..results.plotting import new_figure

        ax = new_figure("plot").add_subplot()
    # Tests share strengths: a little apart, their intervals can be told from each other.
    apart = 0.004 * (max(study.strengths) or 1.0)
    for k, method in enumerate(study.methods):
        rates = [study.rate(method, strength, alpha) for strength in study.strengths]
        seen = [
            (rate.strength, rate.rate, rate.interval) for rate in rates if rate.rate is not None
        ]
        at = [strength + apart * (k - len(study.methods) / 2) for strength, _, _ in seen]
        values = [value for _, value, _ in seen]
        below = [value - interval[0] for _, value, interval in seen]
        above = [interval[1] - value for _, value, interval in seen]
        place = places.index(method)
        ax.errorbar(
            at, values, (below, above), label=method, color=f"C{place % 10}",
            marker="os^Dv*Ph"[place % 8], markersize=4, elinewidth=0.7,
        )  # fmt: skip
    ax.axhline(alpha, color="0.4", linestyle=":", linewidth=1)
    ax.set(xlabel="strength", ylabel="rejected", ylim=(-0.03, 1.03), title=study.failure)
    ax.legend(fontsize=7, frameon=False)
    return ax
