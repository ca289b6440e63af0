"""One table two ways: as aligned text for ``print``, as HTML for a notebook."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from itertools import zip_longest

_NUMBER = re.compile(r"[<>≤≥ ]*[-+]?\.?\d[\d,.]*(e[-+]?\d+)?%?( ?\*)?|[-+]?(nan|inf)")
_GAP = "  "
# Notebooks are light or dark: lines are grey, and all else is left to them.
_LINE = "border-bottom:1px solid rgba(128,128,128,.35)"


def text_table(rows: Sequence[Sequence[str]], header: Sequence[str] | None = None) -> str:
    """Rows in aligned columns, without a newline at the end; columns of numbers to the right.

    Args:
        rows: the cells of each row. A short row leaves its last cells empty; white space in a cell
            counts as one blank, so that a row is a line.
        header: names of the columns, or none.

    >>> print(text_table([["sbc", "0.0912"], ["tarp", "0.3"]], ["test", "statistic"]))
    test  statistic
    sbc      0.0912
    tarp        0.3
    """
    body, names, right = _cells(rows, header)
    lines = [names, *body] if names else body
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        _GAP.join(
            cell.rjust(width) if to_the_right else cell.ljust(width)
            for cell, width, to_the_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def html_table(
    rows: Sequence[Sequence[str]], header: Sequence[str] | None = None, caption: str = ""
) -> str:
    """The same rows as one ``<table>`` that needs no style sheet; every text is escaped.

    Args:
        rows: as of :func:`text_table`; the first cell names its row.
        header: names of the columns, or none.
        caption: stands above; empty for none.
    """
    body, names, right = _cells(rows, header)
    parts = ['<table style="border-collapse:collapse">']
    if caption:
        parts.append(
            '<caption style="caption-side:top;text-align:left;font-weight:bold;color:inherit">'
            f"{escape(caption)}</caption>"
        )
    if names:
        parts.append(f"<thead>{_row(names, right, 'col')}</thead>")
    parts.append(f"<tbody>{''.join(_row(line, right, 'row') for line in body)}</tbody></table>")
    return "".join(parts)


def _row(line: Sequence[str], right: Sequence[bool], scope: str) -> str:
    """One ``<tr>``: all its cells are headings of columns, or the first is the row's."""
    cells = []
    for place, (cell, to_the_right) in enumerate(zip(line, right, strict=True)):
        names_something = scope == "col" or place == 0
        opening = f'th scope="{scope}"' if names_something else "td"
        side = "right" if to_the_right else "left"
        cells.append(
            f'<{opening} style="text-align:{side};vertical-align:top;{_LINE}">{escape(cell)}'
            f"</{'th' if names_something else 'td'}>"
        )
    return f"<tr>{''.join(cells)}</tr>"


def _cells(
    rows: Sequence[Sequence[str]], header: Sequence[str] | None
) -> tuple[list[list[str]], list[str], list[bool]]:
    """The body and the names as full rows of one length, and which columns stand to the right."""
    lines = [[" ".join(str(cell).split()) for cell in line] for line in (header or (), *rows)]
    columns = list(zip_longest(*lines, fillvalue=""))
    right = [_is_of_numbers(column[1:]) for column in columns]
    names, *body = map(list, zip(*columns, strict=True)) if columns else [[]]
    return body, names if header else [], right


def _is_of_numbers(column: Sequence[str]) -> bool:
    """Whether all that is written in a column are numbers, and at least one is."""
    written = [cell for cell in column if cell not in ("", "-")]
    return bool(written) and all(_NUMBER.fullmatch(cell) for cell in written)
