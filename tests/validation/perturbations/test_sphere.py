"""The sphere in 100 dimensions: a flow that is one to one, and the exact score of a moved base."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from scipy import stats

from simulators.random import child_seed, torch_generator
from validation import RatioScore, ScoreTest, power
from validation.perturbations import Failure, FlowTraining, sphere
from validation.perturbations.sphere_law import sphere_draws

SMALL = FlowTraining(num_transforms=4, hidden=(48,), epochs=6, num_pairs=4_000, learning_rate=5e-3)


@pytest.fixture(scope="module")
def failure() -> Failure:
    return sphere(SMALL)


def test_what_the_flow_learns_lies_near_a_sphere_in_three_directions() -> None:
    x = torch.rand(3_000, 2, generator=torch_generator(7))
    theta = sphere_draws(x, 0)
    projection = torch.randn(3, 100, generator=torch_generator(child_seed(0, 1)))
    on_sphere = theta @ torch.linalg.pinv(projection)
    # The noise, 0.1 in every coordinate, is about 0.01 in the three.
    assert torch.allclose(on_sphere.norm(dim=1), torch.ones(3_000), atol=0.08)
    assert torch.allclose(on_sphere[:, 2], (math.pi * x[:, 0]).cos(), atol=0.08)
    left = theta - on_sphere @ projection
    # 97 of 100 directions are noise alone; 5 standard errors of 300,000 squares.
    assert float(left.square().sum() / (3_000 * 97)) == pytest.approx(0.01, rel=0.02)


def test_the_log_density_ratio_is_that_of_two_normal_laws(failure: Failure) -> None:
    """log p - log q is N(50 a^2, 100 a^2) under p and N(-50 a^2, 100 a^2) under q."""
    a = 0.05
    task = failure.at(a)
    x = failure.observe(2_000, 1)
    for law, sign in ((task.p, 1.0), (task.q, -1.0)):
        draws = law.sample(1, x, seed=2)
        ratio = (task.p.log_prob(draws, x) - task.q.log_prob(draws, x))[0].double().numpy()
        law_of_ratio = stats.norm(sign * 50 * a**2, 10 * a)
        assert stats.kstest(ratio, law_of_ratio.cdf).pvalue > 1e-3


def test_draws_are_the_flow_of_their_base(failure: Failure) -> None:
    """The density of draws of p, in expectation minus the entropy, changes by the base alone."""
    task = failure.at(0.0)
    x = failure.observe(50, 3)
    draws = task.p.sample(4, x, seed=4)
    assert draws.shape == (4, 50, 100)
    assert torch.isfinite(task.p.log_prob(draws, x)).all()
    assert torch.equal(draws, task.q.sample(4, x, seed=4))
    assert torch.equal(task.p.log_prob(draws, x), task.q.log_prob(draws, x))
    assert not torch.equal(draws, task.p.sample(4, x, seed=5))


def test_training_brings_the_flow_nearer_to_the_data(failure: Failure) -> None:
    x = failure.observe(500, 8)
    theta = sphere_draws(x, 0)
    start = sphere(FlowTraining(num_transforms=4, hidden=(48,), epochs=0, num_pairs=4_000))
    trained, untrained = (
        float(f.at(0.0).p.log_prob(theta[None], x).mean()) for f in (failure, start)
    )
    assert trained > untrained + 50


def test_the_level_is_kept_power_grows_and_noise_costs_it(failure: Failure) -> None:
    tests = {
        "uniform": RatioScore(ScoreTest("uniform", 10)),
        "multiple": RatioScore(ScoreTest("multiple", num_permutations=99)),
        "c2st": RatioScore(ScoreTest("c2st")),
        "noisy": RatioScore(ScoreTest("c2st"), noise=20.0),
    }
    found = power(tests, failure, [0.0, 0.05], num_pairs=150, repetitions=20, seed=1)
    for name in tests:
        assert found.rate(name, 0.0).rejections <= 5  # P(more) at 0.05 is below 0.001
    for name in ("uniform", "multiple", "c2st"):  # half a standard deviation apart
        assert (found.rate(name, 0.05).rate or 0.0) >= 0.7, name
    assert found.rate("noisy", 0.05).rejections <= 5


def test_the_flow_is_kept_and_found_again(tmp_path: Path) -> None:
    short = FlowTraining(num_transforms=2, hidden=(8,), epochs=1, num_pairs=500)
    x = torch.rand(3, 2, generator=torch_generator(1))
    first = sphere(short, folder=tmp_path).at(0.1).q.sample(2, x)
    (path,) = tmp_path.iterdir()
    written = path.stat().st_mtime_ns
    assert torch.equal(sphere(short, folder=tmp_path).at(0.1).q.sample(2, x), first)
    assert path.stat().st_mtime_ns == written
    assert not torch.equal(sphere(short, seed=1).at(0.1).q.sample(2, x), first)
