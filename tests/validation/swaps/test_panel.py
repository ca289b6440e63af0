"""One exact p-value over a panel: its level, its power, and how it is put together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import candidates
import pytest
import torch
from candidates import gaussian

from simulators.random import torch_generator
from validation.swaps.candidates import Candidates, swaps
from validation.swaps.panel import combined, panel

SEEDS = 120
# A level of .05 in 120 tries: .05 and three standard errors of a share.
MOST_REJECTED = 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / SEEDS)
SWAPS = 99  # p <= .05 is 5 of 100: the level is exact


@pytest.mark.parametrize("build", [gaussian, candidates.skew, candidates.whole_numbers])
def test_an_exact_posterior_is_rejected_at_the_level(
    build: Callable[[int, int], Candidates],
) -> None:
    p_values = torch.tensor(
        [panel(build(60, seed), seed, num_swaps=SWAPS).p_value for seed in range(SEEDS)]
    )
    assert float((p_values <= 0.05).double().mean()) <= MOST_REJECTED
    # Uniform p-values: a mean of 1/2 with a standard error of (12 n)^-1/2, and hardly a repeat.
    assert float(p_values.mean()) == pytest.approx(0.5, abs=4.0 / math.sqrt(12 * SEEDS))
    assert len(p_values.unique()) > SEEDS / 2


@pytest.mark.parametrize(
    "wrong", [{"wide": 1.5}, {"bias": (0.5, 0.0, 0.0)}, {"bias": (0.0, 0.0, -0.5)}], ids=str
)
def test_sds_half_too_wide_and_one_mean_half_an_sd_off_are_rejected(
    wrong: dict[str, float],
) -> None:
    for seed in range(10):
        assert panel(gaussian(200, seed, **wrong), seed).p_value <= 0.05


def test_a_wrong_posterior_is_right_where_its_own_draw_is_taken_for_the_truth() -> None:
    tries = 20
    wrong = [gaussian(60, seed, bias=2.0) for seed in range(tries)]
    # They stand in random order: the next one is any of q's draws.
    swapped = [replace(some, true=(some.true + 1) % len(some.theta)) for some in wrong]
    for before, after in zip(wrong, swapped, strict=True):
        assert torch.equal(after.theta, before.theta)
        assert not bool((after.true == before.true).any())
    assert all(panel(some, 0, num_swaps=SWAPS).p_value <= 0.05 for some in wrong)
    rejected = sum(panel(some, 0, num_swaps=SWAPS).p_value <= 0.05 for some in swapped)
    assert rejected / tries <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / tries)


def test_every_swap_takes_one_candidate_a_pair_and_the_first_is_the_truth() -> None:
    some = gaussian(40, 0)
    chosen = swaps(some, 300, 1)
    assert chosen.shape == (301, 40)
    assert torch.equal(chosen[0], some.true)
    count = len(some.theta)
    share = torch.bincount(chosen[1:].flatten(), minlength=count).double() / chosen[1:].numel()
    error = math.sqrt(1.0 / count / chosen[1:].numel())
    assert float((share - 1.0 / count).abs().max()) < 4.5 * error  # the largest of 31


def test_statistics_that_are_all_the_same_have_the_p_value_of_one() -> None:
    statistic = torch.randn(1, 500, generator=torch_generator(0))
    for place in (0, 17, 499):  # the largest and the smallest of all too
        shown = statistic.clone()
        shown[0, 0] = statistic[0].sort(descending=True).values[place]
        each, together, _ = combined(shown.repeat(7, 1), torch.ones(7))
        assert together == pytest.approx(float(each[0]))
        assert bool((each == each[0]).all())


def test_p_values_are_shares_of_the_swaps_and_never_nothing() -> None:
    generator = torch_generator(1)
    statistics = torch.randn(3, 100, generator=generator)
    statistics[:, 0] = 100.0
    each, together, _ = combined(statistics, torch.ones(3))
    assert together == pytest.approx(1 / 100)
    torch.testing.assert_close(each, torch.full((3,), 1 / 100, dtype=torch.float64))
    statistics[:, 0] = -100.0
    each, together, _ = combined(statistics, torch.ones(3))
    torch.testing.assert_close(each, torch.ones(3, dtype=torch.float64))
    assert together == 1.0
    found = panel(gaussian(30, 0), 0, num_swaps=99)
    for p_value in (found.p_value, *found.p_values.values()):
        assert p_value >= 1 / 100 - 1e-6
        assert p_value * 100 == pytest.approx(round(p_value * 100), abs=1e-4)


def test_a_statistic_counts_by_its_order_alone() -> None:
    statistics = torch.randn(4, 300, generator=torch_generator(2)).double()
    weights = torch.tensor([1.0, 1.0, 0.3, 0.3])
    told = torch.stack([statistics[0].exp(), statistics[1] ** 3, *(1e3 * statistics[2:] - 5.0)])
    each, together, _ = combined(statistics, weights)
    each_told, together_told, _ = combined(told, weights)
    assert torch.equal(each, each_told)
    assert together == together_told


def test_a_test_that_sees_nothing_takes_nothing_from_one_that_does() -> None:
    statistics = torch.randn(4, 500, generator=torch_generator(4))
    statistics[0, 0], statistics[1:, 0] = 100.0, -100.0  # p-values of 1 / 500 and of 1
    each, together, _ = combined(statistics, torch.ones(4))
    assert each.tolist() == [1 / 500, 1.0, 1.0, 1.0]
    assert together <= 0.03  # four tests, of which one is as sure as it can be


def test_ties_count_against_the_observed() -> None:
    each, together, _ = combined(torch.ones(2, 50), torch.ones(2))
    assert each.tolist() == [1.0, 1.0]
    assert together == 1.0


def test_the_combined_p_value_of_independent_statistics_is_uniform() -> None:
    tries, count = 400, 100
    statistics = torch.randn(tries, 3, count, generator=torch_generator(3))
    p_values = torch.tensor([combined(some, torch.ones(3))[1] for some in statistics])
    for level in (0.05, 0.2, 0.5):
        error = math.sqrt(level * (1.0 - level) / tries)
        share = float((p_values <= level + 1e-9).double().mean())
        assert share == pytest.approx(level, abs=3.5 * error)


def test_the_same_seed_gives_the_same_panel_and_another_one_another() -> None:
    some = gaussian(50, 0)
    first, again, other = (panel(some, seed, num_swaps=SWAPS) for seed in (5, 5, 6))
    assert (first.p_value, dict(first.p_values)) == (again.p_value, dict(again.p_values))
    assert dict(first.p_values) != dict(other.p_values)


def test_the_order_of_the_pairs_says_nothing() -> None:
    """Other swaps are drawn for each pair, so p-values agree up to their Monte Carlo error."""
    some = gaussian(60, 3, bias=(0.25, 0.0, 0.0))
    order = torch.randperm(60, generator=torch_generator(4))
    first, other = panel(some, 0), panel(some.rows(order), 0)
    for name in ("sbc", "hpd"):  # nothing in these is drawn but the swaps
        p = first.p_values[name]
        error = math.sqrt(2.0 * max(p * (1.0 - p), 0.01) / 499)
        assert other.p_values[name] == pytest.approx(p, abs=4.0 * error)
