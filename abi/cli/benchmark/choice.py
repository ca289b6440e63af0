"""Which of some names the words of an option stand for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def named(known: Iterable[str], words: Sequence[str] | None, option: str) -> list[str]:
    """The names that the words stand for, in their order; all of them where there is no word.

    A word that is a name stands for that one, another for all that hold it.

    Raises:
        ValueError: if no name is left.
    """
    names = list(dict.fromkeys(known))
    if not words:
        return names
    kept = [
        name
        for name in names
        if any(word == name if word in names else word in name for word in words)
    ]
    if not kept:
        raise ValueError(f"`{option}` must be in one of these names: {'; '.join(names)}.")
    return kept
