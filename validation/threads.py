"""One thread of torch for work whose result must not depend on the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Run code on one thread, then restore the number.

    A sum of floats depends on how many threads share it: on one, a result is the same with any
    number of workers and cores. Small networks are as fast on it.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
