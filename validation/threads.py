"""One thread of torch and of BLAS for work whose result must not depend on the machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch
from threadpoolctl import ThreadpoolController


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Run numpy's, scipy's and numba's products on one thread, then restore the numbers.

    Where many small ones follow each other, threads wait for each other: on two cores 20,000 draws
    of a posterior took 3.2 seconds instead of .3.
    """
    with _blas().limit(limits=1):
        yield


@cache
def _blas() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  # numba's products are its, found once it is loaded

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread() -> Iterator[None]:
    """Run code on one thread, then restore the numbers.

    A sum of floats depends on how many threads share it: on one, a result is the same with any
    number of workers and cores. Small networks are as fast on it.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with one_blas_thread():
            yield
    finally:
        torch.set_num_threads(before)
