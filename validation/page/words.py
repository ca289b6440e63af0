"""Numbers and lists as a reader expects them in a sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence


def number(value: object, digits: int = 4) -> str:
    """A number in ``digits`` significant digits, with a true minus and thousands set apart.

    >>> number(0.00123456), number(-12), number(40000), number(2.8e-7), number(None)
    ('0.001235', '−12', '40,000', '2.8e−7', '–')
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if not isinstance(value, float):
        return str(value)
    size = abs(value)
    if size and (size < 1e-4 or size >= 1e7):
        mantissa, _, exponent = f"{value:.{min(digits, 3) - 1}e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        return f"{mantissa}e{int(exponent)}".replace("-", "−")
    places = max(0, digits - 1 - (math.floor(math.log10(size)) if size else 0))
    text = f"{value:,.{places}f}" if value else "0"
    return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "−")


def beside(value: float, spread: float, digits: int = 3) -> float:
    """``value`` rounded to the places in which ``spread`` has ``digits`` significant digits.

    >>> beside(3.14159, 0.0271), beside(-12345.6, 800.0)
    (3.1416, -12346.0)
    """
    if not spread or not math.isfinite(spread):
        return value
    return round(value, digits - 1 - math.floor(math.log10(abs(spread))))


def listing(words: Sequence[str], last: str = "and") -> str:
    """``a, b and c``.

    >>> listing(["a", "b", "c"]), listing(["a"])
    ('a, b and c', 'a')
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def p_words(p_value: float) -> str:
    """``p = 0.031``, or ``p < 0.0001`` where more digits say nothing.

    >>> p_words(0.0312), p_words(2e-9)
    ('p = 0.031', 'p < 0.0001')
    """
    return "p < 0.0001" if p_value < 1e-4 else f"p = {p_value:.2g}"


def plural(count: int, word: str) -> str:
    """``1 test``, ``2 tests``.

    >>> plural(1, "test"), plural(1200, "pair")
    ('1 test', '1,200 pairs')
    """
    return f"{count:,} {word}" + ("" if count == 1 else "s")
