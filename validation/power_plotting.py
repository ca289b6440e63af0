"""Pictures of studies of power; apart from the pictures of single results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .power_rates import PowerStudy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        from matplotlib.figure import Figure

        ax = Figure(figsize=(5, 4), layout="constrained").add_subplot()
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
