"""Which experiment, methods and numbers: what an option's words stand for."""

from __future__ import annotations

import math
from collections.abc import Mapping

EXPERIMENTS: Mapping[str, str] = {
    "gaussian": "a Gaussian with a known answer, nine rounds (Appendix C.1)",
    "multimodal": "four modes from four points (Section 4.1, Table 2)",
    "mg1": "a queue (Section 4.2)",
    "cosine": "a wave in noise (Section 4.3)",
    "lotka-volterra": "predators and prey, one event at a time (Section 4.4)",
    "lynx-hare": "real counts of predators and prey (Carpenter 2018)",
    "intractable-prior": "which methods can do without a prior density (Table 1)",
}
"""Name -> what it shows, and the paper's place."""


def chosen(words: str | None, known: list[str]) -> list[str]:
    """The methods asked for, by name, with commas between; all where the option was not given.

    Raises:
        ValueError: if one is not known, or none is named.
    """
    if words is None:
        return known
    asked = [word.strip() for word in words.split(",") if word.strip()]
    wrong = [word for word in asked if word not in known]
    if wrong or not asked:
        raise ValueError(
            f"`--methods` must be among {', '.join(known)}; got {(wrong or [words])[0]!r}."
        )
    return asked


def numbers(words: str | None, option: str, least: int, most: float = math.inf) -> list[int]:
    """Whole numbers with commas between; none where the option was not given.

    Raises:
        ValueError: if they are no whole numbers, or beyond what is allowed.
    """
    if words is None:
        return []
    try:
        found = [int(word) for word in words.split(",")]
    except ValueError:
        raise ValueError(
            f"`{option}` must be whole numbers with commas between; got {words!r}."
        ) from None
    if any(not least <= number <= most for number in found):
        rule = f"at least {least}" if most == math.inf else f"from {least} to {most}"
        raise ValueError(f"`{option}` must be {rule}; got {words!r}.")
    return list(dict.fromkeys(found))
