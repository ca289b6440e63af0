"""What the pictures share: the page's colours, figures that a notebook shows, legends that fit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

from simulators.lazy import check_installed
from validation.palette import AXES, LIGHT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = AXES | {
    "text.color": LIGHT["ink"],
    "font.size": 9.0,
    "axes.titlesize": 9.0,
    "figure.titlesize": 10.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
}
_DPI = 130
_LONGEST_NAME, _MOST_LINES = 18, 3
_INCHES_A_LETTER = 0.08


@contextmanager
def picture(width: float, height: float, what: str) -> Iterator[Figure]:
    """A figure of width x height inches in the page's style; it is drawn before the context ends.

    It belongs to no window and no global state: save it by ``figure.savefig("name.png")``. A
    notebook shows it, whether ``pyplot`` was imported or not.

    Raises:
        ValueError: if matplotlib is not installed, naming ``what`` needs it.
    """
    check_installed(what, "matplotlib")
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(width, height), dpi=_DPI, layout="constrained", facecolor="white")
        figure._repr_png_ = partial(_as_png, figure)  # type: ignore[attr-defined]
        yield figure
        figure.draw_without_rendering()  # ticks are made as they are drawn: now, in this style


def _as_png(figure: Figure) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def legend_below(
    figure: Figure,
    handles: Sequence[Any],
    labels: Sequence[str],
    loc: Any = "outside lower center",
    **keywords: Any,
) -> None:
    """A legend below all panels, in as few rows as the figure is wide enough for.

    Args:
        figure: of constrained layout.
        handles: lines or patches.
        labels: what they are called, as many.
        loc: where, one of matplotlib's places outside the panels.
        keywords: further ones of ``figure.legend``.
    """
    for rows in range(1, len(labels) + 1):
        columns = -(-len(labels) // rows)
        legend = figure.legend(handles, labels, loc=loc, ncols=columns, frameon=False, **keywords)
        if columns == 1 or legend.get_window_extent().width <= figure.bbox.width:
            return
        legend.remove()


def short(name: str) -> str:
    """A name that leaves room for its row."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


def in_lines(name: str, inches: float) -> str:
    """A name in up to three lines of so many inches, broken after blanks and underscores.

    >>> in_lines("log_transmission_rate_per_day", 1.5).splitlines()
    ['log_transmission_', 'rate_per_day']
    """
    width = max(6, int(inches / _INCHES_A_LETTER))
    lines = [""]
    for part in re.findall(r"[^ _]*[ _]?", name):
        if lines[-1] and len(lines[-1]) + len(part.rstrip()) > width:
            lines.append("")
        lines[-1] += part
    cut = [f"{line[: width - 1]}…" if len(line.rstrip()) > width else line for line in lines]
    return "\n".join(line.rstrip() for line in cut[:_MOST_LINES]) + "…" * (len(cut) > _MOST_LINES)
