"""One thread of torch and of BLAS for work whose result must not depend on the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Run code on one thread, then restore the numbers.

    A sum of floats depends on how many threads share it: on one, a result is the same with any
    number of workers and cores. Small networks are as fast on it.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)
