"""The contract that every task keeps: shapes, seeds, rows, observation, reference, errors."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch

import simulators

TASKS = {
    "MG1": simulators.MG1(),
    "MG1 truncated": simulators.MG1(prior_kind="truncated"),
    "MultimodalGaussian": simulators.MultimodalGaussian(),
    "GaussianLinear": simulators.GaussianLinear(),
    "GaussianLinear warm-up": simulators.GaussianLinear.warmup(),
    "GaussianLinearUniform": simulators.GaussianLinearUniform(),
    "GaussianMixture": simulators.GaussianMixture(),
    "TwoMoons": simulators.TwoMoons(),
    "BernoulliGLM": simulators.BernoulliGLM(),
    "BernoulliGLM raw": simulators.BernoulliGLM("raw"),
    "Cosine": simulators.Cosine(),
    "LotkaVolterra": simulators.LotkaVolterra(),
    "LotkaVolterra going on": simulators.LotkaVolterra(stop_at_extinction=False),
    "LotkaVolterraODE": simulators.LotkaVolterraODE(),
    "SIR": simulators.SIR(),
    "SLCPDistractors": simulators.SLCPDistractors(),
    "LynxHare, coarse steps": simulators.LynxHare(steps_per_year=8),
    "JansenRit": simulators.JansenRit(),
    "JansenRit spectrum": simulators.JansenRit("spectrum"),
}
WITHOUT_REFERENCE = {name for name in TASKS if name.split()[0] in ("LotkaVolterra", "JansenRit")}
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())
with_reference = pytest.mark.parametrize(
    "task",
    [task for name, task in TASKS.items() if name not in WITHOUT_REFERENCE],
    ids=[name for name in TASKS if name not in WITHOUT_REFERENCE],
)


def prior_draws(task: simulators.Task, num: int, seed: int = 0) -> torch.Tensor:
    return simulators.sample_prior(task.prior, num, seed)


@every_task
def test_a_task_keeps_the_protocol(task: simulators.Task) -> None:
    assert isinstance(task, simulators.Task)
    assert isinstance(task, simulators.SeededSimulator)
    assert isinstance(task.prior, simulators.Prior)
    assert len(task.parameter_names) == task.theta_dim
    assert len(set(task.parameter_names)) == task.theta_dim
    assert hash(task) == hash(task), "a frozen dataclass can be a key"


@every_task
def test_simulations_are_finite_float32_rows(task: simulators.Task) -> None:
    theta = prior_draws(task, 13)
    x = task(theta, seed=1)
    assert theta.shape == (13, task.theta_dim)
    assert x.shape == (13, task.x_dim)
    assert x.dtype == torch.float32
    assert torch.isfinite(x).all()
    assert task(theta[:0], seed=1).shape == (0, task.x_dim)


@every_task
def test_the_same_seed_gives_the_same_rows_and_another_does_not(task: simulators.Task) -> None:
    theta = prior_draws(task, 5)
    assert torch.equal(task(theta, seed=7), task(theta, seed=7))
    assert not torch.equal(task(theta, seed=7), task(theta, seed=8))
    assert not torch.equal(task(theta), task(theta)), "without a seed each call is fresh"


@every_task
def test_a_row_depends_on_seed_and_row_alone(task: simulators.Task) -> None:
    theta = prior_draws(task, 37)
    whole = task(theta, seed=3)
    for cuts in ([0, 1, 9, 36, 37], list(range(38))):
        parts = [task(theta[start:end], seed=3, first_row=start) for start, end in pairwise(cuts)]
        assert torch.equal(torch.cat(parts), whole)
    same = task(theta[:1].repeat(4, 1), seed=3)
    assert len(torch.unique(same, dim=0)) == 4, "rows of one theta have noise of their own"


@every_task
def test_theta_may_be_double_or_strided(task: simulators.Task) -> None:
    theta = prior_draws(task, 6)
    strided = torch.stack([theta, theta], dim=2)[:, :, 1]
    assert torch.equal(task(strided.double(), seed=2), task(theta, seed=2))


@every_task
def test_a_parameter_that_is_not_a_number_never_gives_a_finite_simulation(
    task: simulators.Task,
) -> None:
    theta = prior_draws(task, 3)
    theta[1, 0] = math.nan
    finite = torch.isfinite(task(theta, seed=1)).all(dim=1)
    assert finite.tolist() == [True, False, True]


@every_task
def test_theta_of_the_wrong_shape_is_refused_with_both_shapes(task: simulators.Task) -> None:
    for wrong in (torch.zeros(task.theta_dim), torch.zeros(2, task.theta_dim + 1)):
        with pytest.raises(ValueError, match=rf"\(n, {task.theta_dim}\).*got") as error:
            task(wrong)
        assert str(tuple(wrong.shape)) in str(error.value)


@every_task
def test_the_prior_stays_in_its_support_and_repeats_itself(task: simulators.Task) -> None:
    theta = prior_draws(task, 500)
    assert task.prior.support.check(theta).all()  # type: ignore[attr-defined]
    assert torch.isfinite(task.prior.log_prob(theta)).all()  # type: ignore[attr-defined]
    assert torch.equal(theta, prior_draws(task, 500))
    assert not torch.equal(theta, prior_draws(task, 500, seed=1))


@every_task
def test_the_default_observation_is_fixed_and_its_theta_plausible(task: simulators.Task) -> None:
    x_o = task.observation
    assert x_o.shape == (task.x_dim,)
    assert x_o.dtype == torch.float32
    assert torch.isfinite(x_o).all()
    assert torch.equal(x_o, task.observation)
    if isinstance(task, simulators.LynxHare):
        return  # real counts: nobody knows
    true_theta = task.true_theta  # type: ignore[attr-defined]
    assert true_theta.shape == (task.theta_dim,)
    assert task.prior.support.check(true_theta).all()  # type: ignore[attr-defined]


def test_joint_draws_are_asked_for_by_n_and_refuse_what_is_none() -> None:
    task = simulators.GaussianLinear(2, 1.0, 1.0)
    theta, x = simulators.sample_joint(task, n=3, seed=1)
    assert theta.shape == x.shape == (3, 2)
    with pytest.raises(ValueError, match=r"`n` must .*got -1"):
        simulators.sample_joint(task, -1)


@with_reference
def test_the_reference_repeats_itself_and_stays_in_the_support(task: simulators.Task) -> None:
    _, x = simulators.sample_joint(task, 1, seed=5)
    samples = task.reference_posterior(x[0], 100, seed=1)
    assert samples.shape == (100, task.theta_dim)
    assert samples.dtype == torch.float32
    assert task.prior.support.check(samples).all()  # type: ignore[attr-defined]
    assert torch.equal(samples, task.reference_posterior(x, 100, seed=1)), "(1, p) is (p,)"
    assert not torch.equal(samples, task.reference_posterior(x[0], 100, seed=2))
    assert len(torch.unique(samples, dim=0)) > 95


@with_reference
def test_an_observation_of_the_wrong_shape_or_with_holes_is_refused(task: simulators.Task) -> None:
    with pytest.raises(ValueError, match=f"`x_o`.*simulations of {task.x_dim}"):
        task.reference_posterior(torch.zeros(task.x_dim + 1), 10)
    holed = task.observation.clone()
    holed[0] = math.nan
    with pytest.raises(ValueError, match=f"1 of its {task.x_dim} values"):
        task.reference_posterior(holed, 10)


@pytest.mark.parametrize("name", sorted(WITHOUT_REFERENCE))
def test_a_task_without_an_exact_posterior_says_why(name: str) -> None:
    task = TASKS[name]
    with pytest.raises(NotImplementedError, match=r"no exact posterior: .*hidden|histories"):
        task.reference_posterior(task.observation, 10)


@every_task
def test_simulate_agrees_with_the_task_called_directly(task: simulators.Task) -> None:
    theta = prior_draws(task, 40)
    run = simulators.simulate(task, theta, seed=11)
    assert torch.equal(run.x, task(theta, seed=11))
    assert not run.failures


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: simulators.LotkaVolterra(max_events=0), "max_events.*got 0"),
        (lambda: simulators.Cosine(0), "num_steps.*got 0"),
        (lambda: simulators.JansenRit("power"), "summary.*got 'power'"),  # type: ignore[arg-type]
        (lambda: simulators.BernoulliGLM("sum"), "summary.*got 'sum'"),  # type: ignore[arg-type]
        (lambda: simulators.GaussianLinearUniform(0), "theta_dim.*got 0"),
        (lambda: simulators.GaussianLinearUniform(2, -1.0), "noise_variance.*got -1.0"),
    ],
)
def test_an_impossible_option_is_refused_by_name(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]
