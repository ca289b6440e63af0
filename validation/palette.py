"""The look of pages and pictures: colours by the name of their role, light and dark, and axes.

Data colours are Okabe and Ito's, told apart with any colour vision, darkened or lightened to a
contrast of 3 with the page (4.5 where they colour words). Pictures are drawn in the light colours;
:mod:`.page.svg` replaces each by the name of its role, so that one picture serves both.
"""

from __future__ import annotations

from typing import Any

LIGHT = {
    "page": "#fbfaf7",
    "surface": "#fffefd",
    "ink": "#1d2229",
    "muted": "#59616d",
    "line": "#dcdad3",
    "posterior": "#0b6cab",
    "prior": "#868c96",
    "reference": "#11151a",
    "observed": "#b84300",
    "band": "#e3e6ea",
    "bad": "#9c2a0c",
    "good": "#1f6b45",
    "wait": "#7d5700",
    "tint-bad": "#fbece6",
    "tint-good": "#e8f3ec",
    "tint-wait": "#f8f0dd",
    "q2": "#0b6bab",
    "q1": "#6fa5c9",
    "even": "#a3a8b0",
    "p1": "#d98a55",
    "p2": "#b84401",
    "c1": "#0b6caa",
    "c2": "#b84402",
    "c3": "#00805f",
    "c4": "#a04f80",
    "c5": "#7a6500",
    "heat1": "#e3ebf0",
    "heat2": "#c3d8e6",
    "heat3": "#9fc3dc",
    "heat4": "#77abd0",
}
DARK = {
    "page": "#15181c",
    "surface": "#1b1f24",
    "ink": "#e6e8eb",
    "muted": "#a6aeb9",
    "line": "#353b44",
    "posterior": "#5ab5ea",
    "prior": "#8d949f",
    "reference": "#f4f5f7",
    "observed": "#ff9c57",
    "band": "#2c323b",
    "bad": "#ff9a82",
    "good": "#79d2a0",
    "wait": "#eebd57",
    "tint-bad": "#33211c",
    "tint-good": "#1b2c23",
    "tint-wait": "#2f281a",
    "q2": "#5ab5eb",
    "q1": "#3f81a8",
    "even": "#6b727c",
    "p1": "#c07a48",
    "p2": "#ff9c58",
    "c1": "#5ab5e9",
    "c2": "#ff9c56",
    "c3": "#3fc39a",
    "c4": "#dd93bd",
    "c5": "#d9c04f",
    "heat1": "#1f2a33",
    "heat2": "#233a4b",
    "heat3": "#284d67",
    "heat4": "#2d6285",
}

AXES: dict[Any, Any] = {
    "text.parse_math": False,  # a parameter may be called $x$
    "axes.edgecolor": LIGHT["muted"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.useoffset": False,
    "xtick.color": LIGHT["muted"],
    "ytick.color": LIGHT["muted"],
    "lines.solid_capstyle": "round",
}
"""matplotlib's settings that give axes the page's look, in a page and in a notebook."""
