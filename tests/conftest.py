"""Shared guards: no test may leave the global random state changed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from hypothesis import settings

# Fixtures of a room are no doctests.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]

# The same examples on every machine, however busy it is.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.load_profile("steady")


def _global_state() -> tuple[object, ...]:
    numpy_state = np.random.get_state()
    return (
        random.getstate(),
        numpy_state[1].tobytes(),  # type: ignore[index]
        numpy_state[2],  # type: ignore[index]
        torch.get_rng_state().numpy().tobytes(),
    )


@pytest.fixture(autouse=True)
def global_random_state_is_untouched(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail the test that moves a global random stream: users rely on theirs."""
    before = _global_state()
    yield
    if "moves_global_rng" not in request.keywords:
        assert _global_state() == before, "the test, or the code it runs, moved a global RNG"


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Tests run side by side, one thread each; results do not depend on the machine's cores."""
    torch.set_num_threads(1)
