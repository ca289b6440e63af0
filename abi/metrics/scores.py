"""Scores of draws against the exact posterior, and how they read at the prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from validation.results.tables import html_table, text_table

_COLUMNS = ("metric", "value", "exact vs exact", "excess", "95% interval")
_FIRST = 4
_OF_COORDINATES: Mapping[str, Callable[[float], float]] = {
    "mean_bias": abs,
    "sd_ratio": lambda ratio: max(ratio, 1.0 / ratio) if ratio > 0 else float("inf"),
    "correlation_error": abs,
}
"""Metric of coordinates -> how far off a value of it is."""


@dataclass(frozen=True)
class Score:
    """One metric: its value, and what it is between two exact samples.

    Attributes:
        value: of the samples against the exact ones.
        floor: of exact samples against other exact samples, as many.
        interval: 95% interval of the value, for other draws from the same two distributions; None
            where none was asked for.
    """

    value: float
    floor: float
    interval: tuple[float, float] | None = None

    @property
    def excess(self) -> float:
        """The value less its floor: what the samples are off by."""
        return self.value - self.floor

    def cells(self) -> tuple[str, ...]:
        """Value, floor, excess and interval as text for a table."""
        numbers = (f"{number:.3g}" for number in (self.value, self.floor, self.excess))
        ends = "" if self.interval is None else "{:.3g} to {:.3g}".format(*self.interval)
        return (*numbers, ends)


@dataclass(frozen=True, repr=False)
class Comparison:
    """The metrics of one sample, by name: ``comparison["w1"]``.

    Metrics of single parameters have a number in their name: ``mean_bias_1``. ``print`` shows each
    metric once, of these the parameter that is furthest off.

    Attributes:
        scores: a :class:`Score` for each name.
        size: number of draws on each side.
        bandwidth: of the MMD's kernel, in the units of theta; None where the MMD was not asked for.
        seed: of everything random.
    """

    scores: dict[str, Score]
    size: int
    bandwidth: float | None
    seed: int

    def __getitem__(self, name: str) -> Score:
        if name not in self.scores:
            raise KeyError(f"no score {name!r}; there are {', '.join(self.scores)}")
        return self.scores[name]

    def __repr__(self) -> str:
        found = ", ".join(f"{name}={self[name].value:.3g}" for name, _ in self._shown()[:_FIRST])
        more = "" if len(self._shown()) <= _FIRST else ", ..."
        return f"Comparison({found}{more}, size={self.size}, seed={self.seed})"

    def __str__(self) -> str:
        return f"{self._title()}\n{text_table(self._rows(), _COLUMNS)}"

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return html_table(self._rows(), _COLUMNS, self._title())

    def to_dict(self) -> dict[str, Any]:
        """The scores as plain values, for JSON."""
        return asdict(self)

    def _title(self) -> str:
        return f"draws against the exact posterior, {self.size:,} on each side"

    def _rows(self) -> list[tuple[str, ...]]:
        return [(name + of, *self[name].cells()) for name, of in self._shown()]

    def _shown(self) -> list[tuple[str, str]]:
        """Each metric once, of coordinates the one furthest off, with how many it is out of."""
        shown = [(name, "") for name in self.scores if not name.startswith(tuple(_OF_COORDINATES))]
        for metric, off in _OF_COORDINATES.items():
            names = [name for name in self.scores if name.startswith(metric)]
            if names:
                furthest = max(names, key=lambda name: off(self[name].value))
                shown.append((furthest, f" (furthest of {len(names)})" if len(names) > 1 else ""))
        return shown
