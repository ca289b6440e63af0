"""What a page can hold: plain frozen records that know nothing of HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

Tone = Literal["rejected", "not-rejected", "untested"]


@dataclass(frozen=True)
class Series:
    """Values that a reader may read off a picture, on an even grid over its horizontal axis."""

    name: str
    values: Sequence[float]
    percent: bool = False


@dataclass(frozen=True)
class Readout:
    """How a position in a picture becomes words: where the axis lies, and what it shows there.

    ``left`` and ``right`` are the ends of the axis as shares of the picture's width; ``low`` and
    ``high`` are its values there. A ``whole`` one counts: 1, 2, 3.
    """

    name: str
    left: float
    right: float
    low: float
    high: float
    series: tuple[Series, ...]
    whole: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under named columns; the first column names the row."""

    kind: ClassVar[str] = "table"
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    sortable: bool = False
    filterable: bool = False
    folded: str = ""
    """When given, the table is folded under this line."""
    legend: tuple[tuple[str, str], ...] = ()
    """(class of the mark, what it stands for)."""


@dataclass(frozen=True)
class Glyph:
    """A picture the size of a word: heights in [0, 1], with a second curve behind them."""

    heights: Sequence[float]
    behind: Sequence[float] | None
    alt: str


@dataclass(frozen=True)
class Written:
    """A number whose digits are chosen already, and the number that it is sorted by."""

    words: str
    order: float


@dataclass(frozen=True)
class Shade:
    """A cell of a heat table: words, smaller words under them, and how dark it is, 0 to 4."""

    words: str
    small: str
    level: int
    order: float = math.inf
    """What the cell is sorted by."""


@dataclass(frozen=True)
class Figure:
    """A picture, what it shows in words and numbers, and the numbers themselves."""

    kind: ClassVar[str] = "figure"
    svg: str
    """Inline SVG made by :func:`.svg.inline_svg`; the only text that enters a page as markup."""
    alt: str
    caption: str
    title: str = ""
    legend: tuple[tuple[str, str], ...] = ()
    """(class of the mark, what it stands for)."""
    readout: Readout | None = None
    numbers: Table | None = None
    wide: bool = False


@dataclass(frozen=True)
class Figures:
    """Pictures side by side, under one legend."""

    kind: ClassVar[str] = "figures"
    figures: tuple[Figure, ...]
    legend: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Choice:
    """A parameter of a pair plot: its name, the range shown, and whether it is shown at first."""

    name: str
    span: str
    chosen: bool


@dataclass(frozen=True)
class Pairs:
    """A triangle of pictures; the reader chooses which parameters it shows."""

    kind: ClassVar[str] = "pairs"
    key: str
    choices: tuple[Choice, ...]
    panels: tuple[tuple[Figure, ...], ...]
    """Row i holds panels (i, 0) ... (i, i)."""
    caption: str
    legend: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str
    note: bool = False


@dataclass(frozen=True)
class Code:
    """Code to copy."""

    kind: ClassVar[str] = "code"
    text: str
    label: str


@dataclass(frozen=True)
class Facts:
    """Names and values."""

    kind: ClassVar[str] = "facts"
    items: tuple[tuple[str, str], ...]
    folded: str = ""
    """When given, the facts are folded under this line."""


Cell = str | float | int | Glyph | Shade | Written | None
Block = Text | Code | Table | Figure | Figures | Pairs | Facts


@dataclass(frozen=True)
class Section:
    """A heading with blocks, and sections under it."""

    key: str
    title: str
    blocks: tuple[Block, ...] = ()
    parts: tuple[Section, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What the evidence allows to say, and what it rests on."""

    tone: Tone
    headline: str
    words: str
    rests_on: tuple[str, ...]
    next_step: Code | None = None


@dataclass(frozen=True)
class Notice:
    """What a reader must know before the verdict."""

    headline: str
    words: str


@dataclass(frozen=True)
class Page:
    """A whole page, summary first."""

    title: str
    subtitle: str
    verdict: Verdict
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    made_by: str
    first: tuple[Figure, ...] = ()
    """What stands beside the verdict on the first screen."""
    notices: tuple[Notice, ...] = ()
    """Above the verdict."""
