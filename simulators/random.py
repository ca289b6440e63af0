"""Seeds: ints outside, generators inside, and the global random state left as found."""

from __future__ import annotations

import operator
import random as python_random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import torch

_INT63 = (1 << 63) - 1
_END = 1 << 64


def fresh_seed() -> int:
    """A seed from the operating system's entropy, to be recorded by whoever uses it."""
    return int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) & _INT63


def as_seed(seed: int) -> int:
    """Return ``seed`` as an int, or say what is wrong with it."""
    return as_count(seed, "seed")


def as_count(value: Any, name: str, least: int = 0) -> int:
    """Return a whole number of any kind as an int, which files can hold.

    Raises:
        ValueError: if it is none, be it a float or a bool that equals one, or below ``least``.
    """
    try:
        count = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = None
    if count is None or count < least:
        kind = f", a {type(value).__name__}" if count is None else ""
        raise ValueError(
            f"`{name}` must be a whole number of at least {least}; got {value!r:.60}{kind}."
            f"{_meant(value, least) if count is None else ''}"
        )
    return count


def _meant(value: Any, least: int) -> str:
    """What to write for a number such as 1e3 or "1000"."""
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        return ""
    whole = not isinstance(value, bool) and number.is_integer() and number >= least
    return f" Write {int(number)}." if whole else ""


def stream_seed(seed: int | None) -> int:
    """The seed of a simulator's streams, below 2^64: the one given, or a fresh one."""
    value = fresh_seed() if seed is None else as_seed(seed)
    if value >= _END:
        raise ValueError(f"`seed` must lie in [0, 2^64); got {value}.")
    return value


def child_seed(seed: int, *keys: int) -> int:
    """The seed of a part of the work, a function of ``(seed, *keys)`` alone.

    Children with different keys are independent streams (numpy's ``SeedSequence`` hash).

    >>> child_seed(0, 1) == child_seed(0, 1), child_seed(0, 1) == child_seed(0, 2)
    (True, False)
    """
    sequence = np.random.SeedSequence(entropy=as_seed(seed), spawn_key=keys)
    return int(sequence.generate_state(1, np.uint64)[0]) & _INT63


def torch_generator(seed: int) -> torch.Generator:
    """A CPU generator of torch at ``seed``."""
    return torch.Generator().manual_seed(seed)


@contextmanager
def isolated_rng(seed: int) -> Iterator[None]:
    """Run code that only knows the global streams at ``seed``, then restore all of them.

    Covers ``random``, numpy's legacy global state, and torch on the CPU and, where one is in
    use, on the GPU.
    """
    python_state = python_random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002 - the global stream is what is guarded
    torch_state = torch.get_rng_state()
    cuda_states = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    try:
        python_random.seed(seed)
        np.random.seed(seed % (1 << 32))  # noqa: NPY002
        _seed_torch(seed)
        yield
    finally:
        python_random.setstate(python_state)
        np.random.set_state(numpy_state)  # noqa: NPY002
        torch.set_rng_state(torch_state)
        if cuda_states is not None:
            torch.cuda.set_rng_state_all(cuda_states)


def _seed_torch(seed: int) -> None:
    """Seed every global stream of torch; where the CPU's is the only one, a thousand times faster.

    ``torch.manual_seed`` leaves a stack trace with each device that might be used later.
    """
    if _has_devices():
        torch.manual_seed(seed)
    else:
        torch.default_generator.manual_seed(seed)


@cache
def _has_devices() -> bool:
    """Whether there is a device with a global stream of its own; asked without waking it."""
    others = torch.backends.mps.is_available() or torch.xpu.is_available()
    return others or torch.cuda.device_count() > 0


def some_rows(most: int, *rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The same rows of each (n, ...), or as many of them by chance; more would tell no more."""
    if len(rows[0]) <= most:
        return rows
    some = torch.randperm(len(rows[0]), generator=torch_generator(0))[:most]
    return tuple(each[some] for each in rows)
