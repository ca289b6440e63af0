"""From a matplotlib figure to inline SVG: small, without ids that clash, in the page's colours."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np

from ..palette import AXES, LIGHT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE_ID = "figure-id"
"""Stands in ids for the number that the page gives to the picture."""
_SVG = "http://www.w3.org/2000/svg"
_LINK = "{http://www.w3.org/1999/xlink}href"
_NUMBER = re.compile(r"-?\d+\.\d+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
_ROLES = {colour: name for name, colour in LIGHT.items()}
_DEFAULTS = {"stroke-linejoin", "font-family", "stroke-miterlimit", "font-weight", "font-style"}
_STYLE = AXES | {
    "svg.fonttype": "none",  # words stay words, in the page's font
    "font.size": 11.0,
    "axes.unicode_minus": True,
    "xtick.labelsize": 10.0,
    "ytick.labelsize": 10.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "path.simplify_threshold": 0.3,
}


@contextmanager
def canvas(width: int, height: int, bare: bool = False) -> Iterator[tuple[Figure, Axes]]:
    """A figure of width x height CSS pixels with one axes, in the page's style.

    A ``bare`` one has no room for ticks and labels: the axes are the picture.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(_STYLE):
        figure = Figure(figsize=(width / 72, height / 72), dpi=72)
        if bare:
            yield figure, figure.add_axes((0.01, 0.01, 0.98, 0.98))
            return
        figure.set_layout_engine("constrained")
        figure.get_layout_engine().set(w_pad=3 / 72, h_pad=3 / 72)  # type: ignore[union-attr,call-arg]
        yield figure, figure.add_subplot()


def inline_svg(figure: Figure) -> str:
    """The figure as an ``<svg>`` element; the page adds its role and its words."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(buffer.getvalue())  # noqa: S314 (made in the line above)
    _drop(root, {f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"})
    _rename_ids(root)
    for element in root.iter():
        _shorten(element)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("aria-hidden", "true")
    root.set("focusable", "false")
    for element in root.iter():
        element.tag = element.tag.split("}")[-1]
        if _LINK in element.attrib:
            element.set("href", element.attrib.pop(_LINK))
    return _unwrapped(ElementTree.tostring(root, encoding="unicode"))


def axis_shares(figure: Figure, axes: Axes) -> tuple[float, float]:
    """Where the horizontal axis begins and ends, as shares of the picture's width."""
    figure.draw_without_rendering()
    box = axes.get_position()
    return round(float(box.x0), 4), round(float(box.x1), 4)


def dots(axes: Axes, x: Any, y: Any, colour: str, size: float = 2.5, opacity: float = 0.7) -> None:
    """Points as one path of zero-length strokes with round ends: some ten bytes a point."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    points = np.repeat(np.stack([np.asarray(x), np.asarray(y)], axis=1), 2, axis=0)
    if len(points):
        codes = np.tile([Path.MOVETO, Path.LINETO], len(points) // 2)
        path = Path(points, codes)
        path.should_simplify = False  # which would drop strokes of no length
        axes.add_patch(
            PathPatch(
                path,
                fill=False,
                edgecolor=colour,
                linewidth=size,
                capstyle="round",
                alpha=opacity,
                zorder=3.0,  # above lines
            )
        )


def _drop(root: ElementTree.Element, tags: set[str]) -> None:
    for parent in root.iter():
        for child in list(parent):
            empty = child.tag == f"{{{_SVG}}}defs" and not len(child)
            if child.tag in tags or empty:
                parent.remove(child)


def _rename_ids(root: ElementTree.Element) -> None:
    """Keep the ids that something refers to, under names that no other picture uses."""
    used: dict[str, str] = {}
    for element in root.iter():
        for name in [*_REFERENCE.findall(" ".join(element.attrib.values()))]:
            used.setdefault(name, f"{FIGURE_ID}-{len(used)}")
        if _LINK in element.attrib:
            used.setdefault(element.attrib[_LINK][1:], f"{FIGURE_ID}-{len(used)}")
    for element in root.iter():
        if element.get("id") is not None:
            name = element.attrib.pop("id")
            if name in used:
                element.set("id", used[name])
        for key, value in element.attrib.items():
            if key == _LINK:
                element.set(key, f"#{used[value[1:]]}")
            else:
                element.set(key, _REFERENCE.sub(lambda m: f"url(#{used[m[1]]})", value))


def _shorten(element: ElementTree.Element) -> None:
    for key, value in list(element.attrib.items()):
        if key in ("d", "points"):
            element.set(key, " ".join(_rounded(value, 1).split()))
        elif key in ("transform", "x", "y", "width", "height"):
            element.set(key, _rounded(value, 2))
        elif key == "style":
            style = _styled(value)
            if style:
                element.set("style", style)
            else:
                del element.attrib["style"]


def _rounded(text: str, places: int) -> str:
    return _NUMBER.sub(lambda m: f"{float(m[0]):.{places}f}".rstrip("0").rstrip("."), text)


def _styled(text: str) -> str:
    """A style in the page's colours, without what the page's style sheet decides."""
    kept = []
    for part in text.split(";"):
        name, _, value = (piece.strip() for piece in part.partition(":"))
        if name == "font":
            name, value = "font-size", value.split()[0]
        if not name or name in _DEFAULTS:
            continue
        role = _ROLES.get(value)
        kept.append(f"{name}:{f'var(--{role})' if role else _rounded(value, 2)}")
    return ";".join(kept)


def _unwrapped(text: str) -> str:
    """Without the white space and the empty groups between elements."""
    text = re.sub(r">\s+<", "><", text)
    for _ in range(3):
        text = re.sub(r"<g>((?:<(?:path|use|text)\b[^<>]*/>)*)</g>", r"\1", text)
    return text
