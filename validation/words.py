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


def measured(value: float, spread: float, digits: int = 3) -> str:
    """``value`` as text, in the places in which ``spread`` has ``digits`` significant digits.

    :func:`number` would cut 2024.0012 to 2,024 and lose all that a narrow posterior says.

    >>> measured(2024.0012, 0.0181), measured(2.03e-10, 1.6e-11, 2), measured(-12345.6, 800.0)
    ('2,024.0012', '2.03e−10', '−12,346')
    """
    if not spread or not math.isfinite(spread):
        return number(float(value), 7)
    places = _places(spread, digits)
    rounded = round(float(value), places)
    size = max(abs(rounded), abs(spread))
    if not rounded or (size >= 1e-4 and (size < 1e7 or abs(spread) < 1e3)):
        return f"{rounded or 0.0:,.{max(0, places) if rounded else 0}f}".replace("-", "−")
    exponent = math.floor(math.log10(abs(rounded)))
    mantissa, _, power = f"{rounded:.{max(0, places + exponent)}e}".partition("e")
    return f"{mantissa}e{int(power)}".replace("-", "−")


def _places(spread: float, digits: int) -> int:
    """Decimal places in which ``spread`` has ``digits`` significant digits."""
    return digits - 1 - math.floor(math.log10(abs(spread)))


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
