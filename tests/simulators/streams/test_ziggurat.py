"""The compiled draws against the laws they claim, in the bulk and in the tail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy import stats

from simulators.streams.xoshiro import next_word, row_normals, row_uniforms, seed_stream
from simulators.streams.ziggurat import draw_exponential, draw_normal, draw_word, open_stream

NUM = 2_000_000


def filled_by(draw: Any) -> Any:
    """A compiled loop of (seed, num) over one of the draws."""

    @njit
    def fill(seed: int, num: int) -> np.ndarray:
        out = np.empty(num)
        stream = open_stream(np.uint64(seed), np.uint64(0))
        for i in range(num):
            out[i], stream = draw(stream)
        return out

    return fill


exponentials, normals = filled_by(draw_exponential), filled_by(draw_normal)


@njit
def words_of_both_forms(seed: int, num: int) -> np.ndarray:
    out = np.empty((2, num), np.uint64)
    state = np.empty(4, np.uint64)
    seed_stream(state, np.uint64(seed), np.uint64(3))
    stream = open_stream(np.uint64(seed), np.uint64(3))
    for i in range(num):
        out[0, i] = next_word(state)
        out[1, i], stream = draw_word(stream)
    return out


def test_a_stream_in_registers_is_the_stream_in_memory() -> None:
    in_memory, in_registers = words_of_both_forms(5, 1_000)
    assert (in_memory == in_registers).all()


# Two million draws with a fixed seed: a right sampler fails a bound of p > 1e-4 one time in 10,000.
@pytest.mark.parametrize(
    ("draws", "law"), [(exponentials, stats.expon()), (normals, stats.norm())], ids=["exp", "norm"]
)
def test_draws_follow_their_law_in_bulk_layers_and_tail(draws: object, law: object) -> None:
    x = draws(1, NUM)  # type: ignore[operator]
    assert stats.kstest(x, law.cdf).pvalue > 1e-4  # type: ignore[attr-defined]
    # Equal-probability cells see the edges of layers; cells by height see the tail.
    u = law.cdf(x)  # type: ignore[attr-defined]
    counts = np.bincount((u * 2_000).astype(int).clip(max=1_999), minlength=2_000)
    assert stats.chisquare(counts).pvalue > 1e-4
    rare = law.isf(np.array([1e-1, 1e-2, 1e-3, 1e-4, 1e-5]))  # type: ignore[attr-defined]
    for threshold, chance in zip(rare, [1e-1, 1e-2, 1e-3, 1e-4, 1e-5], strict=True):
        assert stats.binomtest(int((x > threshold).sum()), NUM, chance).pvalue > 1e-4


def test_successive_normals_are_uncorrelated_and_symmetric() -> None:
    x = normals(2, NUM)
    # Correlations of independent draws have standard deviation 1 / sqrt(NUM).
    for lag in (1, 2, 3):
        for left, right in ((x, x), (x**2, x**2), (np.sign(x), np.abs(x))):
            assert abs(np.corrcoef(left[:-lag], right[lag:])[0, 1]) < 4.5 / NUM**0.5
    assert stats.binomtest(int((x > 0).sum()), NUM).pvalue > 1e-4
    assert abs(np.corrcoef(np.sign(x), np.abs(x))[0, 1]) < 4.5 / NUM**0.5


def test_rows_of_uniforms_and_normals_are_independent_of_each_other() -> None:
    uniforms, gaussians = row_uniforms(1, 400_000, 2), row_normals(1, 400_000, 2)
    assert stats.kstest(uniforms.ravel(), "uniform").pvalue > 1e-4
    assert stats.kstest(gaussians.ravel(), "norm").pvalue > 1e-4
    for rows in (uniforms, gaussians):
        assert abs(np.corrcoef(rows[:-1, 0], rows[1:, 0])[0, 1]) < 4.5 / 400_000**0.5
        assert abs(np.corrcoef(rows[:, 0], rows[:, 1])[0, 1]) < 4.5 / 400_000**0.5
