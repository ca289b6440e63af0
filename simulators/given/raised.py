"""What a user's own code raised, in one line with its place, for errors that name the argument."""

from __future__ import annotations

import traceback
from pathlib import Path

_PACKAGES = Path(__file__).parents[2]
_OURS = tuple(str(_PACKAGES / name) for name in ("abi", "simulators", "validation"))
_LIBRARIES = ("site-packages", "dist-packages", "<frozen", "/python3.")
_LENGTH = 120  # of a user's words; our own say what to do at their end, and are kept whole


def in_one_line(error: BaseException) -> str:
    """The kind and the words of an error, and the line of the user's code that it comes from.

    >>> try:
    ...     {}["rate"]
    ... except KeyError as error:
    ...     print(in_one_line(error))
    KeyError: 'rate' (<doctest simulators.given.raised.in_one_line[0]>, line 2)
    """
    words = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(".")
    if not str(error).startswith("`"):
        words = _cut(words)
    return f"{words}{_place(error)}"


def _cut(words: str) -> str:
    """No more than so many characters, cut between words where there are some."""
    if len(words) <= _LENGTH:
        return words
    whole, _, _ = words[: _LENGTH - 3].rpartition(" ")
    return f"{whole if len(whole) > _LENGTH // 2 else words[: _LENGTH - 4]} ..."


def _place(error: BaseException) -> str:
    """The last line that is neither of this project nor of a library."""
    if isinstance(error, SyntaxError):  # says its own
        return ""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_users(f.filename)]
    if not frames:
        return ""
    name = frames[-1].filename
    return f" ({name if name.startswith('<') else Path(name).name}, line {frames[-1].lineno})"


def _is_users(file: str) -> bool:
    return not file.startswith(_OURS) and not any(part in file for part in _LIBRARIES)
