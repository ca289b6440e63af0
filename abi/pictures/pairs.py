"""The picture of a posterior: marginals on the diagonal, pairs below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from validation.palette import LIGHT

from .density import Ends
from .drawing import EXACT, INNER, OUTER, POSTERIOR, PRIOR, TRUTH, draw_density, draw_pair
from .fit import Shown, chosen, shown_marginals, truth_by_name
from .marginals import Marginal
from .style import in_lines, legend_below, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST = 10
_GRID = 96
_WIDEST = 11.0  # inches of ten parameters


def plot(
    posterior: Shown,
    *,
    prior: Any = None,
    truth: Any = None,
    exact: Any = None,
    parameters: Sequence[str] | None = None,
    num_samples: int | None = None,
    seed: int = 0,
) -> Figure:
    """Draw the posterior: each parameter's density on the diagonal, each pair's regions below.

    Filled are the central 90% of a density, and the regions that hold 50% and 90% of a pair. The
    prior is a grey line (around 90% of it, for a pair), exact draws are dashed, the truth is an
    orange line.

    Args:
        posterior: the posterior.
        prior: the prior, as :func:`abi.fit` takes it; that of the fit when omitted, where it is
            known (not of a posterior that was loaded); False leaves it out.
        truth: the true parameters, (d,), or a dict of those that are known.
        exact: draws of the exact posterior, (k, d), as ``task.reference_posterior`` gives them.
        parameters: names of those shown, in this order; the first ten when omitted.
        num_samples: draws of the posterior; ten thousand when omitted, or fewer where parameters
            are many.
        seed: of the draws.

    Returns:
        A matplotlib figure, which a notebook shows; ``figure.savefig("posterior.png")`` keeps it.

    Raises:
        ValueError: if names, truth, prior or exact draws do not belong to these parameters; if
            matplotlib is not installed.
    """
    names = posterior.parameter_names
    places = chosen(parameters, names, _MOST)
    known = truth_by_name(truth, names)
    marginals = shown_marginals(posterior, num_samples, seed, prior, exact)
    shown = [_with_truth(marginals[j], known.get(names[j])) for j in places]
    side = min(2.1, _WIDEST / len(shown))
    width = max(side * len(shown) + 0.7, 3.6)
    with picture(width, side * len(shown) + (1.0 if len(shown) > 1 else 1.3), "plot") as figure:
        panels = figure.subplots(len(shown), len(shown), squeeze=False)
        for i, up in enumerate(shown):
            for j, across in enumerate(shown):
                _panel(panels[i, j], (across, up), (j, i), (len(shown), side), known)
        figure.align_labels()
        if parameters is None and len(names) > len(shown):
            figure.suptitle(
                f"the first {len(shown)} of {len(names)} parameters; parameters= chooses others"
            )
        _legend(figure, shown, known)
    return figure


def _with_truth(m: Marginal, value: float | None) -> Marginal:
    """A marginal whose view holds the truth, too, where that lies within twice its width."""
    if value is None:
        return m
    low, high = m.span
    reach, margin = high - low, 0.05 * (high - low)
    span: Ends = low, high
    if low - reach < value < low + margin:
        span = max(value - margin, m.ends[0]), high
    elif high - margin < value < high + reach:
        span = low, min(value + margin, m.ends[1])
    return Marginal(m.name, m.draws, m.prior, m.exact, m.ends, span)


def _panel(
    axes: Axes,
    parts: tuple[Marginal, Marginal],
    place: tuple[int, int],
    grid: tuple[int, float],
    truth: Mapping[str, float],
) -> None:
    """A density, a pair, or nothing above the diagonal.

    Args:
        axes: to draw on.
        parts: the parameters across and up.
        place: column and row.
        grid: rows there are, and inches of a panel.
        truth: by name.
    """
    (across, up), (j, i), (count, side) = parts, place, grid
    if j > i:
        axes.set_visible(False)
        return
    value, other = truth.get(across.name), truth.get(up.name)
    if i == j:
        draw_density(axes, across, 1.5)
        if value is not None:
            axes.axvline(value, **TRUTH)
    else:
        draw_pair(axes, across, up, num=_GRID)
        lines = {**TRUTH, "linewidth": 0.6, "alpha": 0.7}
        if value is not None:
            axes.axvline(value, **lines)
        if other is not None:
            axes.axhline(other, **lines)
        if value is not None and other is not None:
            axes.plot(
                [value], [other], "o", color=LIGHT["observed"], markersize=3.5 if count < 6 else 2
            )
        axes.spines[["top", "right"]].set_visible(True)
        axes.spines[:].set_color(LIGHT["line"])
        axes.locator_params(axis="y", nbins=3)
    axes.locator_params(axis="x", nbins=3)
    last = i == count - 1
    axes.tick_params(length=2.5, labelbottom=last, labelleft=j == 0 and i > 0)
    axes.tick_params(axis="x", labelrotation=40 if count > 5 else 0)
    size = 9.0 if count < 7 else 8.0
    if last:
        axes.set_xlabel(in_lines(across.name, side), fontsize=size)
    if j == 0 and i > 0:
        axes.set_ylabel(in_lines(up.name, side), fontsize=size)


def marks_of(m: Marginal) -> tuple[list[Any], list[str]]:
    """Handles and labels of what :func:`.drawing.draw_density` draws."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks: list[tuple[Any, str]] = [
        (Line2D([], [], linewidth=1.5, **POSTERIOR), "posterior"),
        (Patch(alpha=INNER, linewidth=0, **POSTERIOR), "its central 90%"),
        *_beside(m),
    ]
    return [mark for mark, _ in marks], [label for _, label in marks]


def _beside(m: Marginal) -> list[tuple[Any, str]]:
    """Marks of the prior and the exact posterior, where they are there."""
    from matplotlib.lines import Line2D

    marks = []
    if m.prior is not None:
        marks.append((Line2D([], [], linewidth=1.2, **PRIOR), "prior"))
    if m.exact is not None:
        marks.append((Line2D([], [], linewidth=1.2, **EXACT), "exact posterior"))
    return marks


def _legend(figure: Figure, shown: Sequence[Marginal], truth: Mapping[str, float]) -> None:
    """In the empty upper corner, or below a single density."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles, labels = marks_of(shown[0])
    several = len(shown) > 1
    if several:
        dark = 1.0 - (1.0 - OUTER) * (1.0 - OUTER) * (1.0 - 0.45)
        handles[:2] = [Patch(alpha=part, linewidth=0, **POSTERIOR) for part in (dark, OUTER)]
        labels[:2] = ["posterior, 50%", "posterior, 90%"]
    if any(m.name in truth for m in shown):
        handles.append(Line2D([], [], **TRUTH))
        labels.append("truth")
    if several:
        figure.legend(handles, labels, loc="upper right", frameon=False)
    else:
        legend_below(figure, handles, labels)
