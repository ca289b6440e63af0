"""Numbers that float32 does not tell apart are named before networks learn from them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import abi

DATE = 2_460_000.0  # float32 steps by a quarter there
CALLS = 200


def times(late: float, rng: np.random.Generator) -> np.ndarray:
    return DATE + late + 0.01 * rng.normal(size=4)


def test_a_prior_of_dates_is_refused_with_what_to_do() -> None:
    def one(date: float, rng: np.random.Generator) -> np.ndarray:
        return date - DATE + 0.01 * rng.normal(size=4)

    with pytest.raises(
        ValueError, match=r"`prior`: column 0 varies by .* difference from a constant"
    ):
        abi.fit({"date": stats.uniform(DATE, 1.0)}, one, np.full(4, 0.5), num_simulations=CALLS)


def test_values_of_x_far_from_zero_are_warned_of() -> None:
    x_o = DATE + np.full(4, 0.5)
    with pytest.warns(UserWarning, match=r"`simulator`: of x, column 0 varies by .* float32"):
        abi.fit(
            {"late": stats.uniform(0.0, 1.0)}, times, x_o,
            num_simulations=CALLS, progress=False, check_fraction=0.0, seed=0,
        )  # fmt: skip


def test_x_that_float32_makes_one_number_are_refused_as_such() -> None:
    def far(s: float, rng: np.random.Generator) -> np.ndarray:
        return 1e12 + 300.0 * (s + rng.normal(size=4))

    with pytest.raises(ValueError, match="more than float32 resolves"):
        abi.fit(
            {"s": stats.norm(0.0, 1.0)}, far, np.full(4, 1e12), num_simulations=CALLS,
            progress=False,
        )  # fmt: skip


def test_an_observation_beyond_float32_is_said_to_be() -> None:
    with pytest.raises(ValueError, match="infinite in float32"):
        abi.fit(
            {"s": stats.norm(0.0, 1.0)}, times, np.full(4, 1e40), num_simulations=CALLS,
            progress=False,
        )  # fmt: skip
