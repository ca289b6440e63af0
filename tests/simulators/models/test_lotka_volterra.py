"""Gillespie's algorithm against known laws and against a slow plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

import simulators
from simulators import LotkaVolterra

START_PREY, START_PREDATORS = 50, 100
NUM = 20_000


def paths(task: LotkaVolterra, theta: list[float], num: int, seed: int = 0) -> np.ndarray:
    """(num, 2, 101)."""
    return task(torch.tensor([theta]).repeat(num, 1), seed).reshape(num, 2, -1).numpy()


def slow_path(theta: list[float], stop: bool, generator: np.random.Generator) -> np.ndarray:
    """The textbook loop, one event at a time, with numpy's generator."""
    alpha, beta, gamma, delta = theta
    x, y, t, k = START_PREY, START_PREDATORS, 0.0, 0
    out = np.empty((2, 101))
    while k < 101:
        rates = np.array([alpha * x, beta * x * y, gamma * y, delta * x * y])
        if rates.sum() == 0.0 or (stop and (x == 0 or y == 0)):
            t = math.inf
        else:
            t += generator.exponential(1.0 / rates.sum())
        while k < 101 and t > 0.1 * k:
            out[:, k] = x, y
            k += 1
        if k < 101:
            event = generator.choice(4, p=rates / rates.sum())
            x += (1, -1, 0, 0)[event]
            y += (0, 0, -1, 1)[event]
    return out


def chi_square_p_value(counts: np.ndarray, law: object) -> float:
    """Chi-square of integer draws against a law, cells of small expectation pooled."""
    low, high = (int(value) for value in law.ppf([0.01, 0.99]))  # type: ignore[attr-defined]
    below = law.cdf(np.arange(low, high))  # type: ignore[attr-defined]
    expected = np.diff(np.concatenate([[0.0], below, [1.0]])) * len(counts)
    cells = np.clip(counts.astype(int) - low, 0, high - low)
    observed = np.bincount(cells, minlength=len(expected))
    return float(stats.chisquare(observed, expected).pvalue)


# Fixed seeds; each p-value of a right simulator falls below 1e-4 one time in 10,000.
def test_prey_alone_grow_as_a_yule_process() -> None:
    alpha = 0.3
    prey = paths(LotkaVolterra(), [alpha, 0.0, 0.0, 0.0], NUM)[:, 0]
    for k in (1, 20, 100):
        # X - 50 is negative binomial: failures before 50 successes of chance exp(-alpha t).
        law = stats.nbinom(START_PREY, math.exp(-alpha * 0.1 * k))
        assert chi_square_p_value(prey[:, k] - START_PREY, law) > 1e-4


def test_predators_alone_die_as_a_binomial() -> None:
    gamma = 0.2
    predators = paths(LotkaVolterra(), [0.0, 0.0, gamma, 0.0], NUM)[:, 1]
    for k in (1, 10, 100):
        law = stats.binom(START_PREDATORS, math.exp(-gamma * 0.1 * k))
        assert chi_square_p_value(predators[:, k], law) > 1e-4


def test_a_prey_death_removes_prey_only() -> None:
    beta = 0.002
    both = paths(LotkaVolterra(), [0.0, beta, 0.0, 0.0], NUM)
    assert (both[:, 1] == START_PREDATORS).all()
    for k in (5, 50):
        law = stats.binom(START_PREY, math.exp(-beta * START_PREDATORS * 0.1 * k))
        assert chi_square_p_value(both[:, 0, k], law) > 1e-4


def test_predators_on_constant_prey_follow_their_birth_and_death_mean() -> None:
    gamma, delta = 0.4, 0.01
    both = paths(LotkaVolterra(), [0.0, 0.0, gamma, delta], NUM)
    assert (both[:, 0] == START_PREY).all()
    birth, time = delta * START_PREY, 2.0
    growth = math.exp((birth - gamma) * time)
    mean = START_PREDATORS * growth
    # Variance of a linear birth and death process from 100 ancestors.
    variance = mean * (growth - 1.0) * (birth + gamma) / (birth - gamma)
    z = (both[:, 1, 20].mean() - mean) / math.sqrt(variance / NUM)
    assert abs(z) < 4.5
    assert both[:, 1, 20].var() == pytest.approx(variance, rel=0.05)  # 5 sd of a variance


@pytest.mark.parametrize("stop", [True, False])
@pytest.mark.parametrize("theta", [[0.5, 0.02, 0.5, 0.01], [0.9, 0.08, 1.5, 0.06]])
def test_paths_have_the_law_of_the_plain_loop(theta: list[float], stop: bool) -> None:
    generator = np.random.default_rng(4)
    slow = np.stack([slow_path(theta, stop, generator) for _ in range(150)])
    fast = paths(LotkaVolterra(stop_at_extinction=stop), theta, 4_000)
    for k in (3, 10, 30, 100):
        for species in (0, 1):
            assert stats.ks_2samp(slow[:, species, k], fast[:, species, k]).pvalue > 1e-4


def test_the_papers_rule_holds_the_last_state_and_the_option_goes_on() -> None:
    theta = simulators.sample_prior(LotkaVolterra().prior, 300, 0)
    held = LotkaVolterra()(theta, 1).reshape(300, 2, 101)
    extinct = (held == 0).any(dim=1)  # (300, 101): at that time a species is gone
    assert extinct[:, -1].float().mean() > 0.8
    change = (held[:, :, 1:] != held[:, :, :-1]).any(dim=1)
    assert not (change & extinct[:, :-1]).any(), "nothing moves once a species is gone"

    going_on = LotkaVolterra(stop_at_extinction=False)(theta, 1).reshape(300, 2, 101)
    before = ~extinct[:, None].expand_as(held)
    assert torch.equal(going_on[before], held[before]), "the same path until then"
    no_predators = going_on[:, 1, :-1] == 0
    growth = going_on[:, 0, 1:] - going_on[:, 0, :-1]
    assert (growth[no_predators] >= 0).all()
    assert (growth[no_predators & (going_on[:, 0, :-1] > 0)] > 0).any()


def test_more_events_than_the_cap_is_a_failure_with_that_reason() -> None:
    theta = LotkaVolterra().true_theta.repeat(200, 1)
    events = LotkaVolterra().num_events(theta, 3)
    cap = int(events.median())
    task = LotkaVolterra(max_events=cap)
    x = task(theta, 3)
    failed = ~torch.isfinite(x).all(dim=1)
    assert torch.equal(failed, events > cap)
    assert torch.equal(x[~failed], LotkaVolterra()(theta, 3)[~failed])
    reason = task.failure_reason(theta[failed][0], x[failed][0])
    assert reason is not None
    assert str(cap) in reason
    assert task.failure_reason(theta[0], x[~failed][0]) is None
    run = simulators.simulate(task, theta, seed=3, max_failure_fraction=1.0)
    assert [failure.index for failure in run.failures] == failed.nonzero()[:, 0].tolist()


def test_impossible_rates_are_failures_of_their_own_rows_with_that_reason() -> None:
    task = LotkaVolterra()
    theta = task.true_theta.repeat(4, 1)
    theta[1, 2], theta[2, 0] = -0.5, math.inf
    x = task(theta, 0)
    assert torch.isfinite(x).all(dim=1).tolist() == [True, False, False, True]
    assert "not negative; got [0.5" in (task.failure_reason(theta[1], x[1]) or "")


def test_a_path_starts_at_the_start_and_is_recorded_at_a_tenth() -> None:
    task = LotkaVolterra()
    x = task(simulators.sample_prior(task.prior, 50, 0), 0).reshape(50, 2, 101)
    assert (x[:, 0, 0] == START_PREY).all()
    assert (x[:, 1, 0] == START_PREDATORS).all()
    assert (x >= 0).all()
    assert torch.equal(x, x.round())
    assert task.times[[0, 1, 100]].tolist() == pytest.approx([0.0, 0.1, 10.0])
