"""Posteriors that are wrong by a known amount: are they wrong by exactly that amount?"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from validation import RatioScore, ScoreTest, TrainedColt, TrainedScore, sbc
from validation.perturbations import (
    DIMENSIONS,
    FAILURES,
    NPTBENCH,
    DiffusionTraining,
    Failure,
    FlowTraining,
    Law,
    LinearScore,
    bivariate,
    find_failure,
    load_cifar10,
    nptbench,
    tree,
)

FLAT = [name for name in FAILURES if not name.endswith("_curved")]


def some_strength(failure: Failure) -> float:
    return failure.strengths[len(failure.strengths) // 2]


def expected_log_density(law: Law, other: Law, x: Tensor, n: int = 1_000) -> tuple[float, float]:
    """Mean of log law - log other under the draws of ``law`` at one x, and its standard error."""
    draws = law.sample(n, x, seed=5)
    values = (law.log_prob(draws, x) - other.log_prob(draws, x))[:, 0].double()
    return float(values.mean()), float(values.std()) / n**0.5


@pytest.mark.parametrize("name", NPTBENCH)
def test_densities_integrate_to_one_and_belong_to_the_draws(name: str) -> None:
    failure = nptbench(name, 2, 2)
    task = failure.at(1.0 if name == "blind_prior" else some_strength(failure))
    x = failure.observe(1, 7)
    for law in (task.p, task.q):
        draws = law.sample(4_000, x, seed=3)[:, 0]
        centre, reach = draws.median(dim=0).values, 9 * draws.std(dim=0).clamp(max=20.0)
        axes = [
            torch.linspace(float(-r), float(r), 200) + c for c, r in zip(centre, reach, strict=True)
        ]
        grid = torch.stack(torch.meshgrid(*axes, indexing="ij"), dim=-1).reshape(-1, 1, 2)
        cell = math.prod(float(axis[1] - axis[0]) for axis in axes)
        log_density = law.log_prob(grid, x)[:, 0].double()
        mass = log_density.exp() * cell
        # A t law leaves a little mass outside the grid.
        assert float(mass.sum()) == pytest.approx(1.0, abs=5e-3)
        # The mean log density, by quadrature and over the draws; 4 standard errors.
        values = law.log_prob(draws[:, None], x)[:, 0].double()
        error = 4 * float(values.std()) / len(values) ** 0.5
        expected = float((mass * log_density).sum())
        assert float(values.mean()) == pytest.approx(expected, abs=error + 0.03)


def test_the_trees_density_belongs_to_its_draws() -> None:
    """E_q[p / q] is 1 where q covers p, if both densities and q's draws are right."""
    task = tree().at(1.5)
    for side in (-0.5, 0.5):
        x = torch.tensor([[side]])
        draws = task.q.sample(1_000, x, seed=1)
        ratio = (task.p.log_prob(draws, x) - task.q.log_prob(draws, x)).exp()[:, 0].double()
        error = 4 * float(ratio.std()) / len(ratio) ** 0.5
        assert float(ratio.mean()) == pytest.approx(1.0, abs=error)
        assert (task.q.sample(500, x, seed=2).sum(dim=-1) * side > -0.3).float().mean() > 0.95


@pytest.mark.parametrize("name", FLAT)
def test_strength_zero_is_the_truth_and_more_is_further_from_it(name: str) -> None:
    failure = find_failure(name)
    x = failure.observe(1, 3)
    nothing = failure.at(0.0)
    draws = nothing.p.sample(200, x, seed=4)
    assert torch.equal(nothing.p.log_prob(draws, x), nothing.q.log_prob(draws, x))
    weak, strong = failure.at(failure.strengths[1]), failure.at(failure.strengths[-1])
    divergences = [expected_log_density(task.p, task.q, x) for task in (weak, strong)]
    assert divergences[1][0] > 4 * divergences[1][1]
    if len(failure.strengths) > 2:
        assert divergences[1][0] > divergences[0][0]


@pytest.mark.parametrize("dimensions", DIMENSIONS)
@pytest.mark.parametrize("curved", [False, True])
def test_every_dimension_of_the_paper_draws(dimensions: tuple[int, int], curved: bool) -> None:
    for name in NPTBENCH:
        task = nptbench(name, *dimensions, curved=curved).at(0.3)
        theta, x = task.joint(20, seed=1)
        assert theta.shape == (20, dimensions[1])
        assert x.shape == (20, dimensions[0])
        draws = task.q.sample(3, x, seed=2)
        assert draws.shape == (3, 20, dimensions[1])
        assert torch.isfinite(draws).all()
        assert torch.equal(draws, task.q.sample(3, x, seed=2))
        if not curved:
            assert torch.isfinite(task.q.log_prob(draws, x)).all()


def test_moments_are_those_of_the_paper() -> None:
    """Appendix C.2: mean W1 x, covariance |W2'x| 0.9^|i-j|; 5 standard errors of 40,000 draws."""
    failure = nptbench("covariance", 3, 3)
    x = failure.observe(1, 2)
    p = failure.at(0.8).p.sample(40_000, x, seed=1)[:, 0].double()
    q = failure.at(0.8).q.sample(40_000, x, seed=2)[:, 0].double()
    correlation = torch.corrcoef(p.T)
    assert float(correlation[0, 1]) == pytest.approx(0.9, abs=0.01)
    assert float(correlation[0, 2]) == pytest.approx(0.81, abs=0.01)
    assert (q.var(dim=0) / p.var(dim=0)).tolist() == pytest.approx([1.8] * 3, rel=0.06)
    error = 5 * float(p.std(dim=0).max()) / 200
    assert p.mean(dim=0).tolist() == pytest.approx(q.mean(dim=0).tolist(), abs=2 * error)


def test_a_curved_law_has_no_density_and_says_why() -> None:
    task = nptbench("t_tails", curved=True).at(0.2)
    theta, x = task.joint(5, seed=1)
    with pytest.raises(NotImplementedError, match="folds"):
        task.q.log_prob(theta[None], x)


def test_the_blind_prior_keeps_the_marginal_and_forgets_x() -> None:
    """SBC cannot see it, for the marginal of theta is right; the draws do not depend on x."""
    task = nptbench("blind_prior").at(1.0)
    theta, x = task.joint(500, seed=1)
    assert sbc(task.q, theta, x, num_samples=100, seed=1).p_value > 0.01
    assert torch.equal(task.q.sample(4, x, seed=3), task.q.sample(4, x + 5, seed=3))


def test_a_turned_boundary_knows_nothing_and_a_moved_one_keeps_the_ranks() -> None:
    theta, x = bivariate().at(0.5).joint(500, seed=1)
    best = LinearScore(0.5)(theta, x)
    moved = LinearScore(0.5, shift=2.0)(theta, x)
    assert torch.equal(best.argsort(), moved.argsort())
    turned = LinearScore(0.5, angle=math.pi / 2)(theta, x)
    assert torch.allclose(turned, -x[:, 0], atol=1e-6)


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match=r"`name`.*'shift'"):
        nptbench("shift")
    with pytest.raises(ValueError, match=r"`family`.*'x'"):
        find_failure("x")
    with pytest.raises(ValueError, match=r"`theta_dim`.*0"):
        nptbench("covariance", 3, 0)
    with pytest.raises(ValueError, match=r"`strength`.*-0.1"):
        nptbench("covariance").at(-0.1)
    with pytest.raises(ValueError, match=r"`strength`.*1.5"):
        nptbench("additional_mode").at(1.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TrainedColt("identty"), r"`embedding` must be one of full, .*'identty'"),
        (lambda: TrainedColt(num_samples=0), r"`num_samples`.*0"),
        (lambda: ScoreTest("unifrom"), r"`kind` must be one of uniform, .*'unifrom'"),
        (lambda: ScoreTest("uniform", 0), r"`num_calibration`.*0"),
        (lambda: RatioScore(ScoreTest("c2st"), -1.0), r"`noise`.*-1\.0"),
        (lambda: RatioScore(ScoreTest("c2st"), math.nan), r"`noise`.*nan"),
        (lambda: TrainedScore(ScoreTest("c2st"), 1.5), r"`weakness`.*1\.5"),
        (lambda: nptbench("covariance", DIMENSIONS[0]), r"`x_dim` must be a whole.*two arguments"),
        (lambda: nptbench("covariance", 3.0), r"`x_dim`.*got 3\.0"),
        (lambda: tree(-1), r"`seed`.*-1"),
        (lambda: FlowTraining(num_pairs=0), r"`num_pairs`.*0"),
        (lambda: FlowTraining(hidden=(0,)), r"`hidden`.*\(0,\)"),
        (lambda: DiffusionTraining(steps=0), r"`steps`.*0"),
        (lambda: DiffusionTraining(learning_rate=-1.0), r"`learning_rate`.*-1\.0"),
        (lambda: load_cifar10("nowhere", 0), r"`most` must be a whole number of at least 1.*got 0"),
        (lambda: load_cifar10("nowhere", -1), r"`most`.*-1"),
    ],
)
def test_mistyped_settings_are_refused_at_once(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
