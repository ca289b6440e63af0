"""A verdict in words: what is wrong with a parameter, and numbers as a sentence has them."""

from __future__ import annotations

from collections.abc import Mapping

from .accuracy import Deviation

TESTS: Mapping[str, str] = {
    "sbc": "SBC",
    "tarp": "TARP",
    "hpd": "HPD",
    "colt_identity": "CoLT",
    "lc2st": "L-C2ST at x_o",
    "score_rank": "score rank",
    "conformal_c2st": "conformal C2ST",
}
"""The panel's tests as a reader knows them."""
CONTROLS: Mapping[str, str] = {
    "prior": "the prior in its place",
    "wide": "the answer 1.5 times too wide",
}
"""Answers that are wrong on purpose."""


def wrong_words(part: Deviation) -> str | None:
    """What is wrong with one parameter, where an interval says that something is.

    >>> wrong_words(Deviation("a", 0.0, -0.1, 0.1, 0.7, 0.6, 0.8))
    'a is too narrow by 20 to 40%'
    """
    if part.sd_ratio_high < 1.0:
        ends = 1.0 - part.sd_ratio_high, 1.0 - part.sd_ratio_low
        return f"{part.name} is too narrow by {_percent(*ends)}"
    if part.sd_ratio_low > 1.0:
        ends = part.sd_ratio_low - 1.0, part.sd_ratio_high - 1.0
        return f"{part.name} is too wide by {_percent(*ends)}"
    if not part.bias_low <= 0.0 <= part.bias_high:
        side = "high" if part.bias > 0 else "low"
        near, far = sorted((abs(part.bias_low), abs(part.bias_high)))
        return f"{part.name} lies too {side} by {near:.1f} to {far:.1f} sds"
    return None


def p_text(p_value: float) -> str:
    """``p = 0.031``.

    >>> p_text(0.0312)
    'p = 0.031'
    """
    return f"p = {p_value:.2g}"


def _percent(low: float, high: float) -> str:
    return f"{100 * low:.0f} to {100 * high:.0f}%"
