"""From the records of a page to one HTML file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from ..palette import DARK, LIGHT
from ..words import number
from .blocks import Glyph, Page, Readout, Written
from .svg import FIGURE_ID

_GLYPH = (120, 26)


def render(page: Page) -> str:
    """The page as HTML: style, script and pictures inside, nothing fetched.

    Every word is escaped by the template; pictures made by :func:`.svg.inline_svg` are the only
    text that enters as markup. The content policy names the hash of the one script.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("validation.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    counter = iter(range(1, 1_000_000))
    environment.filters["picture"] = lambda svg: Markup(  # noqa: S704
        svg.replace(FIGURE_ID, f"f{next(counter)}")
    )
    environment.filters["cell"] = number
    environment.filters["tied"] = lambda text: text.replace("p = ", "p\u00a0=\u00a0")
    environment.filters["glyph"] = _glyph_paths
    environment.filters["readout"] = _readout
    environment.globals["numeric"] = _numeric
    environment.globals["unique"] = lambda: f"u{next(counter)}"
    script, style = _asset("page.js"), _asset("page.css")
    return environment.get_template("page.html.j2").render(
        page=page,
        light=LIGHT,
        dark=DARK,
        style=Markup(style),  # noqa: S704 (package data)
        script=Markup(script),  # noqa: S704
        script_hash=_hash(script),
    )


def _numeric(value: object) -> bool:
    """Whether a cell is set flush right."""
    percent = isinstance(value, str) and value.endswith("%")
    return percent or isinstance(value, int | float | Written)


def _asset(name: str) -> str:
    return files("validation.page").joinpath("templates", name).read_text(encoding="utf-8").strip()


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return "sha256-" + base64.b64encode(digest).decode()


def _glyph_paths(glyph: Glyph) -> dict[str, str]:
    """The two curves of a glyph as path data in a box of 120 x 26."""
    width, height = _GLYPH

    def points(heights: Any) -> str:
        last = max(len(heights) - 1, 1)
        return " ".join(
            f"{width * i / last:.1f},{height - 1 - (height - 2) * float(value):.1f}"
            for i, value in enumerate(heights)
        )

    front = points(glyph.heights)
    behind = f"M{points(glyph.behind)}" if glyph.behind is not None else ""
    return {
        "area": f"M0,{height} L{front} L{width},{height}Z",
        "line": f"M{front}",
        "behind": behind,
    }


def _readout(readout: Readout) -> str:
    """What the script needs to turn a position into words, as JSON."""
    return json.dumps(
        {
            "name": readout.name,
            "left": readout.left,
            "right": readout.right,
            "low": readout.low,
            "high": readout.high,
            "whole": readout.whole,
            "series": [
                {
                    "name": one.name,
                    "percent": one.percent,
                    "values": [float(f"{value:.4g}") for value in one.values],
                }
                for one in readout.series
            ],
        },
        separators=(",", ":"),
    )
