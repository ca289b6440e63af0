"""Compiled binomial counts against scipy's law, at both ends of the chance and in the middle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from simulators.models.ode.kernels import draw_counts

NUM, TRIALS = 100_000, 1_000


def counts_of(chance: float, num: int = NUM) -> np.ndarray:
    out = np.empty((num, 1), dtype=np.float32)
    chances = np.full((num, 1), chance)
    draw_counts(chances, TRIALS, np.uint64(5), np.uint64(0), out)
    return out[:, 0].astype(np.float64)


@pytest.mark.parametrize("chance", [1e-6, 0.0007, 0.02, 0.3, 0.5, 0.91, 0.9995])
def test_counts_have_the_binomial_law(chance: float) -> None:
    law = stats.binom(TRIALS, chance)
    found = np.bincount(counts_of(chance).astype(int), minlength=TRIALS + 1)
    expected = NUM * law.pmf(np.arange(TRIALS + 1))
    many = expected > 20.0
    left, wanted = [*found[many], found[~many].sum()], [*expected[many], expected[~many].sum()]
    # The chi-square law of many cells; the last, of all rare counts, may be nearly empty.
    statistic = sum((a - b) ** 2 / max(b, 1.0) for a, b in zip(left, wanted, strict=True))
    assert stats.chi2(len(left)).sf(statistic) > 1e-4


def test_what_is_certain_is_drawn_and_what_is_no_number_gives_none() -> None:
    assert (counts_of(0.0, 50) == 0.0).all()
    assert (counts_of(1.0, 50) == TRIALS).all()
    assert np.isnan(counts_of(math.nan, 50)).all()
