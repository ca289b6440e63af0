"""SBC, TARP and HPD: exact levels, known blindness, and clear refusals."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from one_look import TASK, exact, exact_law, prior
from torch.distributions import Normal

from simulators import sample_joint
from simulators.random import child_seed, torch_generator
from validation import ValidationResult, hpd, sbc, tarp
from validation.scores.uniformity import holm, ks_uniform, permutation_p, randomised_ranks

METHODS = {"sbc": sbc, "tarp": tarp, "hpd": hpd}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("q", [exact_law, exact])
def test_rank_tests_hold_their_level(name: str, q: Callable[..., object]) -> None:
    p_values = []
    for seed in range(200):
        theta, x = sample_joint(TASK, 30, seed)
        p_values.append(METHODS[name](q, theta, x, num_samples=8, seed=seed).p_value)
    rejected = sum(p <= 0.05 for p in p_values)
    # Binomial(200, 0.05): P(more than 20) = 0.001.
    assert rejected <= 20


@pytest.mark.parametrize("name", ["tarp", "hpd"])
def test_p_values_of_exact_tests_are_uniform(name: str) -> None:
    p_values = []
    for seed in range(200):
        theta, x = sample_joint(TASK, 30, seed)
        p_values.append(METHODS[name](exact, theta, x, num_samples=6, seed=seed).p_value)
    assert ks_uniform(torch.tensor(p_values))[1] > 0.001


@pytest.mark.parametrize("name", METHODS)
def test_an_overconfident_posterior_is_rejected(name: str) -> None:
    theta, x = sample_joint(TASK, 300, 0)
    result = METHODS[name](lambda x: Normal(x / 2, 0.4), theta, x, num_samples=100)
    assert result.reject(0.01)


@pytest.mark.parametrize("name", METHODS)
def test_the_prior_passes_every_rank_test(name: str) -> None:
    # They look at the average over x alone: for that the prior is the right answer.
    theta, x = sample_joint(TASK, 300, 1)
    assert not METHODS[name](prior, theta, x, num_samples=100).reject(0.01)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**31))
def test_ranks_are_uniform_for_any_number_of_draws_and_any_ties(
    num_samples: int, levels: int, seed: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(levels, (num_samples + 1, 400), generator=generator)
    ranks = randomised_ranks(scores[0], scores[1:], seed + 1)
    assert bool(((ranks > 0) & (ranks < 1)).all())
    # 25 examples at 1e-7 each.
    assert ks_uniform(ranks)[1] > 1e-7


def test_permutation_p_value_counts_itself_and_ties() -> None:
    assert permutation_p(2.0, torch.tensor([1.0, 2.0, 3.0])) == pytest.approx(3 / 4)
    assert permutation_p(9.0, torch.zeros(99)) == pytest.approx(0.01)


def test_holm_is_monotone_and_never_below_the_raw_p_value() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_p_value_and_another_seed_another(name: str) -> None:
    theta, x = sample_joint(TASK, 50, 2)
    run = METHODS[name]
    first = run(exact_law, theta, x, num_samples=20, seed=1)
    assert first.p_value == run(exact_law, theta, x, num_samples=20, seed=1).p_value
    assert first.p_value != run(exact_law, theta, x, num_samples=20, seed=2).p_value
    assert first.seed == 1


def test_one_draw_an_observation_is_enough_for_sbc_and_tarp() -> None:
    theta, x = sample_joint(TASK, 50, 3)
    for run in (sbc, tarp):
        assert 0.0 < run(exact_law, theta, x, num_samples=1).p_value <= 1.0


def test_all_ties_give_a_uniform_rank_and_a_valid_p_value() -> None:
    theta, x = torch.zeros(200, 2), torch.zeros(200, 1)
    for run in METHODS.values():
        result = run(lambda num, x: torch.zeros(num, len(x), 2), theta, x, num_samples=10)
        assert result.p_value > 1e-4


BAD = {
    "rows": (lambda t, x: (t[:-1], x), "49 and 50 rows"),
    "nan in x": (lambda t, x: (t, x * torch.tensor([1.0, float("nan")])), "50 of 50 rows"),
    "nan in theta": (lambda t, x: (t / 0.0 * 0.0, x), "`theta` must be finite"),
    "vector": (lambda t, x: (t[:, 0], x), "must be a matrix"),
    "too few": (lambda t, x: (t[:1], x[:1]), "at least 2 pairs"),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("fault", BAD)
def test_bad_pairs_are_refused_with_what_came(name: str, fault: str) -> None:
    spoil, message = BAD[fault]
    theta, x = spoil(*sample_joint(TASK, 50, 4))
    with pytest.raises(ValueError, match=message):
        METHODS[name](exact_law, theta, x, num_samples=5)


@pytest.mark.parametrize("name", METHODS)
def test_a_posterior_that_draws_nan_or_another_dimension_is_refused(name: str) -> None:
    theta, x = sample_joint(TASK, 50, 4)
    with pytest.raises(ValueError, match="at 50 of the observations"):
        METHODS[name](lambda num, x: torch.full((num, len(x), 2), float("nan")), theta, x)
    with pytest.raises(ValueError, match="dimension 2, as `theta` has; its draws have 3"):
        METHODS[name](lambda num, x: torch.zeros(num, len(x), 3), theta, x)
    with pytest.raises(ValueError, match="at least 1; got 0"):
        METHODS[name](exact_law, theta, x, num_samples=0)


def test_constant_columns_do_not_break_coverage() -> None:
    theta, x = sample_joint(TASK, 100, 5)
    theta[:, 1] = 3.0

    def q(num_samples: int, x: torch.Tensor) -> torch.Tensor:
        drawn = exact(num_samples, x)
        drawn[..., 1] = 3.0
        return drawn

    for run in METHODS.values():
        assert run(q, theta, x, num_samples=50).p_value > 1e-4


def test_given_references_must_match_the_pairs() -> None:
    theta, x = sample_joint(TASK, 20, 6)
    with pytest.raises(ValueError, match=r"shape \(20, 2\); got \(3, 2\)"):
        tarp(exact_law, theta, x, references=torch.zeros(3, 2), num_samples=5)


def test_references_that_follow_x_see_the_prior() -> None:
    theta, x = sample_joint(TASK, 300, 7)
    assert tarp(prior, theta, x, references=2 * x, num_samples=100).reject(1e-6)


def test_a_result_is_frozen_and_its_dictionary_is_json() -> None:
    theta, x = sample_joint(TASK, 30, 8)
    result = sbc(exact_law, theta, x, num_samples=10)
    with pytest.raises(TypeError):
        result.details["ranks"] = 0  # type: ignore[index]
    again = json.loads(json.dumps(result.to_dict()))
    assert again["p_value"] == result.p_value
    assert len(again["details"]["ranks"]) == 30


def test_the_level_of_a_test_must_be_a_probability() -> None:
    with pytest.raises(ValueError, match=r"got 5\.0"):
        ValidationResult("sbc", 0.0, 1.0, 0).reject(5.0)


@pytest.mark.parametrize("name", METHODS)
def test_data_drawn_from_the_same_seed_do_not_meet_the_tests_own_stream(name: str) -> None:
    # With shared children of one seed, TARP's reference points were the true parameters.
    for seed in range(3):
        for key in range(4):
            generator = torch_generator(child_seed(seed, key))
            theta = torch.rand(200, 2, generator=generator)
            x = torch.zeros(200, 1)
            q = lambda num, x: torch.rand(num, len(x), 2)  # noqa: E731
            # 36 tests at 1e-5 each.
            assert METHODS[name](q, theta, x, num_samples=20, seed=seed).p_value > 1e-5
