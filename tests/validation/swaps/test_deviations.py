"""How far off at x_o: intervals that hold what is true, and which way each number points."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import candidates
import pytest
import torch
from candidates import NAMES, NUM_DRAWS, THETA_DIM, gaussian, with_draws

from simulators.random import torch_generator
from validation.swaps.candidates import Candidates
from validation.swaps.deviations import Deviation, deviations

TRIES = 40
# Intervals that hold together in 95% of 40 tries: three standard errors of a share below.
LEAST_HELD = 0.95 - 3.0 * math.sqrt(0.95 * 0.05 / TRIES)


def _holds(part: Deviation, bias: float, ratio: float) -> bool:
    held = part.bias_low <= bias <= part.bias_high
    return held and part.sd_ratio_low <= ratio <= part.sd_ratio_high


@pytest.mark.parametrize(
    ("build", "num_pairs"), [(gaussian, 70), (gaussian, 300), (candidates.skew, 300)]
)
def test_intervals_of_an_exact_posterior_hold_no_bias_and_the_true_sd(
    build: Callable[[int, int], Candidates], num_pairs: int
) -> None:
    held = [
        all(
            _holds(part, 0.0, 1.0) for part in deviations(build(num_pairs, seed), NAMES)[:THETA_DIM]
        )
        for seed in range(TRIES)
    ]
    assert sum(held) / TRIES >= LEAST_HELD


def test_a_shifted_and_widened_posterior_is_told_by_how_much() -> None:
    """A mean off by .5 true sds is off by .5 / 1.3 of an sd that is 1.3 times too wide."""
    bias, ratio = 0.5 / 1.3, 1.3
    found = [
        deviations(gaussian(300, seed, bias=0.5, wide=1.3), NAMES)[:THETA_DIM]
        for seed in range(TRIES)
    ]
    held = [all(_holds(part, bias, ratio) for part in parts) for parts in found]
    assert sum(held) / TRIES >= LEAST_HELD
    biases = torch.tensor([part.bias for parts in found for part in parts])
    logs = torch.tensor([part.sd_ratio for parts in found for part in parts]).log()
    # Four standard errors of the mean over tries, and what the sds of so few draws are off by.
    few = 1.0 / NUM_DRAWS
    error = 4.0 * float(biases.std()) / math.sqrt(len(biases))
    assert float(biases.mean()) == pytest.approx(bias, abs=error + few * bias)
    error = 4.0 * float(logs.std()) / math.sqrt(len(logs))
    assert float(logs.mean()) == pytest.approx(math.log(ratio), abs=error + few)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_bias_above_zero_is_an_answer_that_lies_too_high(sign: float) -> None:
    parts = deviations(gaussian(300, 1, bias=(0.6 * sign, 0.0, 0.0)), NAMES)
    assert sign * parts[0].bias > 0.4
    assert parts[0].wrong
    assert sign * (parts[0].bias_low if sign > 0 else parts[0].bias_high) > 0.0
    assert not any(part.wrong for part in parts[1:THETA_DIM])


@pytest.mark.parametrize("wide", [1.5, 1 / 1.5])
def test_a_ratio_above_one_is_an_answer_that_is_too_wide(wide: float) -> None:
    for part in deviations(gaussian(300, 2, wide=wide), NAMES)[:THETA_DIM]:
        assert (part.sd_ratio > 1.0) == (wide > 1.0)
        assert _holds(part, part.bias, wide)
        assert part.wrong


def test_each_parameter_has_its_name_and_the_density_comes_last() -> None:
    some = gaussian(50, 0)
    assert [part.name for part in deviations(some, NAMES)] == [*NAMES, "log density"]
    bare = with_draws(some.truth, torch.randn(20, 50, 3, generator=torch_generator(0)))
    assert [part.name for part in deviations(bare, NAMES)] == [*NAMES]


def test_intervals_narrow_as_pairs_come() -> None:
    few, many = (deviations(gaussian(count, 3), NAMES) for count in (60, 960))
    for one, other in zip(few[:THETA_DIM], many, strict=False):
        # Sixteen times the pairs: a quarter of the width, give or take a half of it.
        assert 1 / 8 < other.half_width / one.half_width < 3 / 8
        # And as foretold.
        assert one.half_width_after(16.0) == pytest.approx(other.half_width, rel=0.5)


def test_flows_that_disagree_widen_the_intervals_of_that_parameter_alone() -> None:
    """Of each flow the mean in q's sds, and the log of its sd over q's."""
    some = gaussian(200, 4)
    agreed = deviations(some, NAMES, torch.zeros(3, 3, 2))
    spread = torch.zeros(3, 3, 2)
    spread[0, 0, 0], spread[1, 0, 0] = -0.5, 0.5
    spread[0, 1, 1], spread[1, 1, 1] = -0.4, 0.4
    apart = deviations(some, NAMES, spread)
    assert apart[0].half_width > agreed[0].half_width + 0.1
    assert apart[0].half_width_after(1e9) > 0.1  # more pairs do not make them agree
    assert agreed[0].half_width_after(1e9) == pytest.approx(0.0, abs=1e-3)
    assert apart[1].half_width == agreed[1].half_width
    assert apart[1].sd_ratio_high > agreed[1].sd_ratio_high + 0.1
    assert apart[1].sd_ratio_low < agreed[1].sd_ratio_low - 0.1
    assert apart[2:] == agreed[2:]
    for one, other in zip(apart, agreed, strict=True):
        assert (one.bias, one.sd_ratio) == (other.bias, other.sd_ratio)


def test_the_order_of_the_pairs_says_nothing_of_the_deviations() -> None:
    some = gaussian(120, 5, bias=0.3)
    order = torch.randperm(120, generator=torch_generator(6))
    parts = zip(deviations(some, NAMES), deviations(some.rows(order), NAMES), strict=True)
    for one, other in parts:
        assert one.bias == pytest.approx(other.bias, abs=1e-4)
        assert one.sd_ratio_high == pytest.approx(other.sd_ratio_high, rel=1e-4)


def test_deviations_do_not_depend_on_units_or_on_where_theta_lies() -> None:
    # A power of two and whole thousandths: nothing is lost to rounding but what the sds are.
    some = gaussian(120, 7, bias=0.3, wide=1.2)
    rows = torch.arange(some.num_pairs)
    others = torch.ones(len(some.theta), 120, dtype=torch.bool)
    others[some.true, rows] = False
    draws = some.theta.transpose(0, 1)[others.T].reshape(120, -1, 3).transpose(0, 1)
    plain = deviations(with_draws(some.truth, draws), NAMES)
    moved = deviations(with_draws(1024.0 * some.truth + 1e3, 1024.0 * draws + 1e3), NAMES)
    for one, other in zip(plain, moved, strict=True):
        assert one.bias == pytest.approx(other.bias, abs=1e-3)
        assert one.sd_ratio == pytest.approx(other.sd_ratio, rel=1e-3)


def test_the_variance_is_not_taken_too_small_where_pairs_are_few() -> None:
    """What a regression of forty pairs on six contexts leaves is a tenth smaller than the noise."""
    found = [deviations(gaussian(40, seed), NAMES)[:THETA_DIM] for seed in range(80)]
    variances = torch.tensor([part.sd_ratio**-2 for parts in found for part in parts])
    error = 4.0 * float(variances.std()) / math.sqrt(len(variances))
    assert float(variances.mean()) == pytest.approx(1.0, abs=error)


def test_a_truth_where_q_has_no_mass_leaves_the_deviation_of_log_q_a_number() -> None:
    right = gaussian(300, 0)
    assert right.log_q is not None
    places = right.true[:5], torch.arange(5)
    cut = replace(right, log_q=right.log_q.index_put(places, torch.tensor(-torch.inf)))
    of_log_q = deviations(cut, NAMES)[-1]
    assert of_log_q.bias_low <= of_log_q.bias <= of_log_q.bias_high
    assert of_log_q.bias > deviations(right, NAMES)[-1].bias
