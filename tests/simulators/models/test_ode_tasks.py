"""The epidemic and the predators of the public benchmark: solutions, noise, exact posteriors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from importance_sampling import assert_moments_of_importance_sampling
from scipy import integrate, stats

import simulators
from simulators import SIR, LotkaVolterraODE

NUM = 4_000
LINKED = (1.0, 0.05, 1.0, 0.05)


def solved(theta: np.ndarray, start: list[float], times: np.ndarray) -> np.ndarray:
    """Both populations (2, points) by scipy's method of order eight, on their own scale."""
    alpha, beta, gamma, delta = theta
    path = integrate.solve_ivp(
        lambda _, u: [alpha * u[0] - beta * u[0] * u[1], delta * u[0] * u[1] - gamma * u[1]],
        (0.0, times[-1]), start, t_eval=times, method="DOP853", rtol=1e-11, atol=1e-20,
    )  # fmt: skip
    return np.asarray(path.y)


def test_predators_and_prey_follow_their_equation() -> None:
    task = LotkaVolterraODE()
    theta = simulators.sample_prior(task.prior, 60, 0).double()
    theta[:2] = torch.tensor([[3.0, 0.2, 3.0, 0.2], [0.2, 0.02, 0.2, 0.01]])  # beyond the usual
    found = task.populations(theta).reshape(-1, 2, 10).log().numpy()
    for row, path in zip(theta.numpy(), found, strict=True):
        exact = np.log(np.clip(solved(row, [30.0, 1.0], task.times.double().numpy()), 1e-10, 1e4))
        assert np.abs(path - exact).max() < 1e-4, "a thousandth of the noise"


def test_the_epidemic_follows_its_equation() -> None:
    task = SIR()
    theta = simulators.sample_prior(task.prior, 60, 0).double()
    theta[:2] = torch.tensor([[2.5, 0.06], [0.05, 0.25]])
    found = task.infected(theta).numpy()
    for (beta, gamma), share in zip(theta.numpy(), found, strict=True):
        rates = np.array([0.0, beta, gamma, beta])
        exact = solved(rates, [1.0 - 1e-6, 1e-6], task.times.double().numpy())[1]
        assert share == pytest.approx(exact, rel=1e-5, abs=1e-15)


def test_a_row_has_steps_of_its_own() -> None:
    task = LotkaVolterraODE()
    theta = simulators.sample_prior(task.prior, 50, 1)
    alone = torch.cat([task.populations(row[None]) for row in theta])
    assert torch.equal(task.populations(theta), alone)


def test_populations_have_log_normal_noise_and_counts_are_whole() -> None:
    task, epidemic = LotkaVolterraODE(), SIR()
    theta = task.true_theta.repeat(NUM, 1)
    z = (task(theta, seed=0).double().log() - task.populations(theta[:1]).log()) / 0.1
    assert stats.kstest(z[:, ::3].ravel(), "norm").pvalue > 1e-4
    assert abs(np.corrcoef(z.numpy().T) - np.eye(20)).max() < 5.0 / NUM**0.5
    share = epidemic.infected(epidemic.true_theta[None])[0]
    counts = epidemic(epidemic.true_theta.repeat(NUM, 1), seed=0).double()
    assert torch.equal(counts, counts.round())
    error = (1_000.0 * share * (1.0 - share) / NUM).sqrt() + 1e-3
    assert ((counts.mean(dim=0) - 1_000.0 * share).abs() < 4.5 * error).all()


def test_rates_that_are_no_numbers_or_outrun_every_step_are_not_finite() -> None:
    task = LotkaVolterraODE()
    theta = torch.tensor([[math.inf, *LINKED[1:]], LINKED, [1.0, 0.05, 1.0, 1e30]])
    assert torch.isfinite(task(theta, seed=0)).all(dim=1).tolist() == [False, True, False]
    density = task.log_likelihood(theta.double().numpy(), task.observation)
    assert np.isfinite(density).tolist() == [False, True, False]


# ------------------------------------------------------------------------- exact posteriors


def sir_grid(x_o: torch.Tensor, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, ...]:
    """Log rates on a grid and the posterior there, from scipy's binomial and log-normal laws."""
    axes = [np.linspace(low[j], high[j], 241) for j in (0, 1)]
    z = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    share = SIR().infected(torch.from_numpy(np.exp(z))).numpy()
    value = stats.binom.logpmf(x_o.numpy(), 1_000, share).sum(axis=1)
    for j, (median, sd) in enumerate([(0.4, 0.5), (0.125, 0.2)]):
        value = value + stats.norm.logpdf(z[:, j], math.log(median), sd)
    mass = np.exp(value - value.max()).reshape(241, 241)
    return axes[0], axes[1], mass / mass.sum()


SEEN = {
    "an epidemic": (0.0, 0.0, 10.0, 318.0, 143.0, 22.0, 4.0, 0.0, 0.0, 0.0),
    "nobody": (0.0,) * 10,
    "one person": (0.0,) * 9 + (1.0,),
    "at its start": (0.0,) * 8 + (2.0, 70.0),
}


@pytest.mark.parametrize("x_o", SEEN.values(), ids=SEEN.keys())
def test_the_epidemics_reference_is_the_posterior_of_a_grid(x_o: tuple[float, ...]) -> None:
    observation = torch.tensor(x_o)
    draws = SIR().reference_posterior(observation, NUM, seed=0).double().log().numpy()
    margin = 0.3 * draws.std(axis=0)
    *axes, mass = sir_grid(observation, draws.min(axis=0) - margin, draws.max(axis=0) + margin)
    for j, axis in enumerate(axes):
        cumulative = mass.sum(axis=1 - j).cumsum()
        middles = axis + 0.5 * (axis[1] - axis[0])  # up to where a cell's mass is counted
        law = np.interp(np.sort(draws[:, j]), middles, cumulative)
        distance = np.abs(law - (np.arange(NUM) + 0.5) / NUM).max()
        # Kolmogorov: P(D > 2.3 / sqrt(n)) = 5e-5; the grid's own error is a few thousandths.
        assert distance < 2.3 / NUM**0.5 + 4e-3


def test_the_predators_reference_has_the_moments_of_importance_sampling() -> None:
    task = LotkaVolterraODE()
    centre, sd = np.log(task.true_theta.double().numpy()), 0.5
    draws = task.reference_posterior(task.observation, NUM, seed=0).double().log().numpy()

    def log_posterior(log_theta: np.ndarray) -> np.ndarray:
        prior = -0.5 * (((log_theta - centre) / sd) ** 2).sum(axis=1)
        return task.log_likelihood(np.exp(log_theta), task.observation) + prior

    assert_moments_of_importance_sampling(draws, log_posterior, 30_000, least_size=5_000.0)


@pytest.mark.parametrize("task", [SIR(), LotkaVolterraODE()], ids=["SIR", "LotkaVolterraODE"])
def test_two_runs_agree_as_chains_that_have_mixed(task: simulators.Task) -> None:
    _, x = simulators.sample_joint(task, 1, seed=8)
    chains = torch.stack([task.reference_posterior(x[0], NUM, seed=s) for s in (1, 2)]).double()
    within, between = chains.var(dim=1).mean(dim=0), chains.mean(dim=1).var(dim=0)
    # R-hat of two runs of n independent draws: 1 + O(1 / n).
    assert ((1.0 - 1.0 / NUM + between / within).sqrt() < 1.0 + 10.0 / NUM).all()
    for j in range(task.theta_dim):
        assert stats.ks_2samp(chains[0, :, j], chains[1, :, j]).pvalue > 1e-4


@pytest.mark.parametrize(
    ("task", "value", "message"),
    [
        (SIR(), -1.0, r"`x_o` must hold counts.*from -1 to"),
        (SIR(), 1_001.0, "`x_o` must hold counts.*to 1001"),
        (SIR(), 0.5, "`x_o` must hold counts, whole numbers"),
        (LotkaVolterraODE(), 0.0, "`x_o` must hold positive values; its minimum is 0"),
    ],
)
def test_what_no_simulation_gives_is_refused(
    task: simulators.Task, value: float, message: str
) -> None:
    x_o = task.observation.clone()
    x_o[0] = value
    with pytest.raises(ValueError, match=message):
        task.reference_posterior(x_o, 10)
