"""What is wrong with a parameter in words, and numbers as a sentence has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .deviations import LOG_DENSITY, Deviation
from .findings import Finding

TESTS: Mapping[str, str] = {
    "sbc": "SBC",
    "tarp": "TARP",
    "hpd": "HPD",
    "colt_identity": "CoLT",
    "c2st": "C2ST",
    "lc2st": "L-C2ST at x_o",
    "score_rank": "score rank",
    "conformal_c2st": "conformal C2ST",
    "rest_of_x": "rest of x",
}
"""The panel's tests as a reader knows them."""


def what_is_wrong(
    details: Mapping[str, Any],
    names: Sequence[str] | None = None,
    x_names: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """What a panel found, in words: at all x by what is clearest, at an x_o by what is largest."""
    if "deviations" not in details:
        return sentences(details.get("findings", ()), names, x_names)
    parts = sorted(details["deviations"], key=lambda part: part.size, reverse=True)
    words = (wrong_words(part) for part in parts if part.name != LOG_DENSITY)
    return tuple(text for text in words if text is not None)


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


def sentences(
    found: Sequence[Finding],
    names: Sequence[str] | None = None,
    x_names: Sequence[str] | None = None,
) -> tuple[str, ...]:
    """Each finding in words, without a full stop.

    >>> sentences([Finding("mean", (1,), None, False, 0.002, 0.31, 0.2, 0.42)])
    ('theta_2 lies too high by 0.20 to 0.42 sds',)
    """
    off = {one.parameters for one in found if one.column is None}
    return tuple(_sentence(one, one.parameters in off, names, x_names) for one in found)


def _sentence(
    one: Finding, off: bool, names: Sequence[str] | None, x_names: Sequence[str] | None
) -> str:
    of = [names[j] if names else f"theta_{j + 1}" for j in one.parameters]
    if one.column is not None:
        on_average = "" if off else "right on average, but "
        return f"{of[0]} is {on_average}{_by_x(one, x_names)}"
    near, far = sorted((abs(one.low), abs(one.high)))
    side = "high" if one.size > 0 else "low"
    other = "low" if one.size > 0 else "high"
    in_words = {
        "mean": lambda: f"{of[0]} lies too {side} by {near:.2f} to {far:.2f} sds",
        "width": lambda: f"{of[0]} is too {_width(one)}",
        "skew": lambda: f"{of[0]}: {_leaning(one)}",
        "tails": lambda: f"{of[0]}: {one.size:.0%} of true values lie outside q's central 90%",
        "dependence": lambda: (
            f"{of[0]} and {of[1]}: q's correlation is too {other} by {near:.2f} to {far:.2f}"
        ),
    }
    half = one.kind == "whole"
    part = "densest half (50%" if half else "densest or its thinnest tenth (20%"
    whole = f"q as a whole: {one.size:.0%} of true values lie in its {part} if right)"
    return in_words.get(one.kind, lambda: whole)()


def _width(one: Finding) -> str:
    """By how much q's sd is off, from the mean square of z."""
    ratios = sorted(1.0 / max(square, 1e-4) ** 0.5 for square in (one.low, one.high))
    if one.size > 1.0:
        return f"narrow by {_percent(max(0.0, 1.0 - ratios[1]), 1.0 - ratios[0])}"
    return f"wide by {_percent(max(0.0, ratios[0] - 1.0), ratios[1] - 1.0)}"


def _leaning(one: Finding) -> str:
    often, seldom = ("above its 90%", "below its 10%") if one.size > 0 else (
        "below its 10%", "above its 90%"
    )  # fmt: skip
    return f"{abs(one.size):.0%} more true values lie {often} quantile than {seldom} one"


def _by_x(one: Finding, x_names: Sequence[str] | None) -> str:
    """Which way, and where in x; of a mean also by how much."""
    column = one.column or 0
    name = x_names[column] if x_names else f"x_{column + 1}"
    direction = f"main direction {column + 1} of x"
    where = f"along {direction}" if one.direction else f"where {name} is large"
    if one.kind == "width by x":
        return f"too {'narrow' if one.size > 0 else 'wide'} {where}"
    side = "high" if one.size > 0 else "low"
    of = "that direction" if one.direction else name
    return f"too {side} {where}: by {abs(one.size):.2f} sd per sd of {of}"


def p_text(p_value: float) -> str:
    """``p = 0.031``.

    >>> p_text(0.0312)
    'p = 0.031'
    """
    return f"p = {p_value:.2g}"


def _percent(low: float, high: float) -> str:
    return f"{100 * low:.0f} to {100 * high:.0f}%"
