"""Seeds of the tests' own randomness, apart from the streams a user may have drawn data from.

Data are often drawn at the seed that is passed to a test later, through the very same
``child_seed(seed, k)``. Were the test's streams children of that kind, its random reference points
could be the user's parameters, draw for draw. A key of our own keeps the families apart.
"""

from __future__ import annotations

from simulators.random import child_seed

_OURS = 0x76616C6964617465


def part_seed(seed: int, *keys: int) -> int:
    """The seed of a part of a test, a function of ``(seed, *keys)`` alone."""
    return child_seed(seed, _OURS, *keys)
