"""The real-data example: its data, its solver, its noise and its prior."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from scipy import integrate, stats

import simulators

# The posterior means of Carpenter (2018): alpha, beta, gamma, delta, start, noise.
PUBLISHED = (0.55, 0.028, 0.80, 0.024, 34.0, 5.9, 0.25, 0.25)


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = Path(__file__).parents[3] / "examples" / "lynx_hare_model.py"
    spec = importlib.util.spec_from_file_location("lynx_hare_model", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_counts_are_those_of_twenty_one_years(example: ModuleType) -> None:
    assert len(example.HARES) == len(example.LYNX) == len(example.YEARS) == 21
    assert sum(example.HARES) == pytest.approx(715.7)
    assert sum(example.LYNX) == pytest.approx(423.5)
    assert example.observation.shape == (42,)
    assert example.YEARS[int(np.argmax(example.LYNX))] == 1904


def test_the_solver_agrees_with_an_adaptive_one(example: ModuleType) -> None:
    prior = simulators.sample_prior(example.model.prior, 20, 0)
    theta = torch.cat([torch.tensor([PUBLISHED]), prior])
    found = example.populations(theta).numpy()
    for row, path in zip(theta.double().numpy(), found, strict=True):
        alpha, beta, gamma, delta = row[:4]
        exact = integrate.solve_ivp(
            lambda t, s, a=alpha, b=beta, g=gamma, d=delta: (
                [a - b * np.exp(s[1]), d * np.exp(s[0]) - g]
            ),
            (0.0, 20.0), np.log(row[4:6]), t_eval=np.arange(21), rtol=1e-9, atol=1e-9,
        )  # fmt: skip
        assert np.abs(path - exact.y).max() < 0.02, "a tenth of the smallest noise that matters"


def test_counts_are_log_normal_around_the_populations(example: ModuleType) -> None:
    theta = torch.tensor([PUBLISHED]).repeat(4_000, 1)
    theta[:, 7] = 0.5
    x = example.model(theta, seed=0).reshape(4_000, 2, 21)
    z = (x - example.populations(theta[:1]))[:, :, ::5] / torch.tensor([0.25, 0.5])[:, None]
    assert stats.kstest(z[:, 0].double().ravel(), "norm").pvalue > 1e-4
    assert stats.kstest(z[:, 1].double().ravel(), "norm").pvalue > 1e-4


def test_the_published_parameters_explain_the_counts(example: ModuleType) -> None:
    path = example.populations(torch.tensor([PUBLISHED])).reshape(-1)
    residual = (example.observation - path) / 0.25
    assert residual.abs().max() < 4.0
    assert (residual**2).mean() < 2.0


def test_the_model_runs_through_the_runner_and_its_prior_is_positive(example: ModuleType) -> None:
    theta = simulators.sample_prior(example.model.prior, 200, 0)
    assert (theta > 0).all()
    run = simulators.simulate(example.model, theta, seed=1)
    assert run.x.shape[1] == 42
    assert len(run.failures) <= 2
    assert example.model.parameter_names == example.PARAMETERS
    rates = simulators.sample_prior(example.model.prior, 20_000, 1)[:, [0, 2]].double().ravel()
    assert stats.kstest(rates, stats.truncnorm(-2.0, np.inf, 1.0, 0.5).cdf).pvalue > 1e-4


def test_the_prior_has_the_density_of_its_draws(example: ModuleType) -> None:
    prior = example.model.prior
    theta = simulators.sample_prior(prior, 50, 2)
    laws = [stats.truncnorm(-m / s, np.inf, m, s) for m, s in [(1, 0.5), (0.05, 0.05)] * 2]
    laws += [stats.lognorm(1.0, scale=np.exp(c)) for c in (np.log(10), np.log(10), -1, -1)]
    exact = sum(law.logpdf(theta[:, j].double().numpy()) for j, law in enumerate(laws))
    assert prior.log_prob(theta).numpy() == pytest.approx(exact, abs=2e-4)
    theta[0, 3] = -0.1
    assert prior.log_prob(theta)[0] == -np.inf


def test_the_exact_posterior_is_the_published_one() -> None:
    """Means as Carpenter (2018) rounds them; 300 draws know a mean to 0.06 sd."""
    task = simulators.LynxHare(steps_per_year=8)
    draws = task.reference_posterior(task.observation, 300, seed=0)
    error = (draws.mean(dim=0) - torch.tensor(PUBLISHED)) / draws.std(dim=0)
    assert (error.abs() < 0.3).all(), error


def test_rates_beyond_the_solver_are_failures_with_a_reason() -> None:
    task = simulators.LynxHare(steps_per_year=1)
    theta = torch.tensor([[9.0, 9.0, 9.0, 9.0, 900.0, 900.0, 0.1, 0.1]])
    x = task(theta, seed=0)
    assert not torch.isfinite(x).all()
    assert "outrun 1 steps a year" in (task.failure_reason(theta[0], x[0]) or "")
    assert task.log_likelihood(theta.double().numpy(), task.observation)[0] == -np.inf
    with pytest.raises(
        ValueError, match="`steps_per_year` must be a whole number of at least 1; got 0"
    ):
        simulators.LynxHare(steps_per_year=0)
