"""One self-contained page: what it can hold, how a picture enters it, and how it is written.

A page is data first (:mod:`.blocks`), so that the sections of a validation, made here, and those of
a fit, made by the command line, are laid out by one template. The page loads nothing from anywhere
and says so to the browser in its content policy.
"""

from .blocks import (
    Block,
    Cell,
    Choice,
    Code,
    Facts,
    Figure,
    Figures,
    Glyph,
    Notice,
    Page,
    Pairs,
    Readout,
    Section,
    Series,
    Shade,
    Table,
    Text,
    Tone,
    Verdict,
    Written,
)
from .shell import render

__all__ = [
    "Block",
    "Cell",
    "Choice",
    "Code",
    "Facts",
    "Figure",
    "Figures",
    "Glyph",
    "Notice",
    "Page",
    "Pairs",
    "Readout",
    "Section",
    "Series",
    "Shade",
    "Table",
    "Text",
    "Tone",
    "Verdict",
    "Written",
    "render",
]
