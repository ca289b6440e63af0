"""Results must not depend on how many cores there are."""

from __future__ import annotations

import torch
from threadpoolctl import threadpool_info, threadpool_limits

from validation.threads import one_thread


def _blas() -> set[int]:
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


def test_torch_and_blas_have_one_thread_and_then_as_many_as_before() -> None:
    before = torch.get_num_threads()
    with threadpool_limits(2, user_api="blas"):
        own = _blas()
        with one_thread():
            assert torch.get_num_threads() == 1
            assert _blas() == {1}
        assert torch.get_num_threads() == before
        assert _blas() == own
