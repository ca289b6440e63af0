"""Appendix C.1 of Lu & Wong (2025): nine rounds on a Gaussian, the paper's tolerances (Figure 10).

theta ~ N(0, 20), x | theta ~ N(theta, 1), x_o = 6.24; the exact posterior is N(5.94, 0.95). Each
round keeps the theta whose X lies within eps_t of x_o, and proposes from their moments.

Two facts the paper does not state, both in warmup.json. Matching moments turns flat-topped partial
posteriors into Gaussians: with infinitely many draws and R the recursion ends at N(5.957, 0.893),
not at N(5.943, 0.952); 10,000 draws a round hardly tell. And R must be large: a theta three sds out
needs 100,000 calls at eps = 0.001, and dropping such theta narrows every further round (Theorem
2.2): with R = 20,000 the last rounds drop one theta in a hundred, and the variance comes to 0.71.

Run: python examples/paper/warmup.py. Writes warmup.json and warmup.png beside itself.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from scipy.stats import norm

import abi
from abi.generators.mixture import MixtureModel
from abi.studies.reproduce.methods import fit_in_rounds, warmup
from abi.studies.reproduce.reproductions import WARMUP_RETRIES as RETRIES
from abi.studies.reproduce.reproductions import WARMUP_TOLERANCES as TOLERANCES
from simulators import GaussianLinear

FEW_RETRIES = 20_000
X_O = 6.24
CLOSE = 1e-3
REPETITIONS, TRIED = 100, 100_000
HERE = Path(__file__).parent


def fit_rounds(retries: int) -> tuple[abi.ABIPosterior, list[tuple[float, float]]]:
    """The fit, and the moments of the generator after each round."""
    task = GaussianLinear.warmup()
    posterior, states = fit_in_rounds(
        task, task.observation, distance=lambda x: (x[:, 0] - X_O).abs(), **warmup(retries)
    )
    return posterior, [moments(state.model) for state in states]


def moments(model: MixtureModel) -> tuple[float, float]:
    return float(model.means[0, 0]), float(model.factors[0, 0, 0] ** 2)


def recursion_without_noise() -> tuple[float, float]:
    """Mean and variance after the nine rounds of infinitely many draws and retries.

    Retries leave the law of theta as proposed and keep X within the last tolerance; the round then
    keeps theta in proportion to P(|X - x_o| <= eps_t | theta) / P(|X - x_o| <= eps_{t-1} | theta).
    """
    theta = np.linspace(-30.0, 30.0, 60_001)
    mean, variance, before = 0.0, 20.0, np.ones_like(theta)
    for tolerance in TOLERANCES:
        within = norm.cdf(X_O + tolerance - theta) - norm.cdf(X_O - tolerance - theta)
        density = norm.pdf(theta, mean, math.sqrt(variance))
        ratio = np.divide(within, before, out=np.zeros_like(within), where=before > 0.0)
        weights = density * ratio / (density * ratio).sum()
        mean = float(weights @ theta)
        variance, before = float(weights @ (theta - mean) ** 2), within
    return mean, variance


def retention(mean: float, variance: float) -> float:
    """P(|X - x_o| <= 0.001) for theta ~ N(mean, variance), in closed form."""
    law = norm(mean, math.sqrt(variance + 1.0))
    return float(law.cdf(X_O + CLOSE) - law.cdf(X_O - CLOSE))


def repeated_retention(mean: float, variance: float, seed: int) -> tuple[float, float]:
    """Mean and sd over repetitions of the share of X within 0.001 of x_o, theta ~ N(mean, var)."""
    random = np.random.default_rng(seed)
    shares = []
    for _ in range(REPETITIONS):
        theta = random.normal(mean, math.sqrt(variance), TRIED)
        shares.append(np.mean(np.abs(random.normal(theta) - X_O) <= CLOSE))
    return float(np.mean(shares)), float(np.std(shares, ddof=1))


def draw(
    proposals: list[tuple[float, float]],
    exact: tuple[float, float],
    shares: list[tuple[float, float]],
    path: Path,
) -> None:
    """Left: the prior, the generator after each round, the posterior. Right: retention."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=[3, 2])
    grid = np.linspace(-4, 12, 400)
    left.plot(grid, norm.pdf(grid, 0, math.sqrt(20)), color="#999999", label="prior")
    for number, (mean, variance) in enumerate(proposals, start=1):
        shade = 0.2 + 0.8 * number / len(proposals)
        label = "round 1 to 9 (light to dark)" if number == len(proposals) else None
        curve = norm.pdf(grid, mean, math.sqrt(variance))
        left.plot(grid, curve, color="#0072B2", alpha=shade, linewidth=1.2, label=label)
    curve = norm.pdf(grid, exact[0], math.sqrt(exact[1]))
    left.plot(grid, curve, "--", color="black", linewidth=1.8, label="exact posterior")
    left.set_xlabel("theta")
    left.set_yticks([])
    left.legend(frameon=False, fontsize=8, loc="upper left")
    rounds = range(1, len(proposals) + 1)
    means, sds = 1e4 * np.array(shares).T
    right.fill_between(rounds, means - sds, means + sds, color="#0072B2", alpha=0.2, linewidth=0)
    label = f"proposal after the round: {REPETITIONS} times\n{TRIED:,} X, mean and one sd"
    right.plot(rounds, means, "o-", color="#0072B2", label=label)
    closed = [1e4 * retention(*proposal) for proposal in proposals]
    right.plot(rounds, closed, "x", color="#D55E00", label="the same in closed form")
    right.axhline(1e4 * retention(*exact), color="black", linestyle="--", label="exact posterior")
    right.set_xlabel("round")
    right.set_ylabel("of 10,000 X, within 0.001 of x_o")
    right.set_ylim(0, 1.1 * max(means + sds))
    right.legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(path, dpi=150)


def main() -> None:
    task = GaussianLinear.warmup()
    mean, variance = task.posterior_moments(task.observation)
    exact = (float(mean), variance)
    started = time.process_time()
    posterior, proposals = fit_rounds(RETRIES)
    fewer, narrowed = fit_rounds(FEW_RETRIES)
    limit = recursion_without_noise()
    drift = sum(1.0 / record.accepted for record in posterior.rounds)
    shares = [repeated_retention(*proposal, number) for number, proposal in enumerate(proposals)]
    result = {
        "exact": {"mean": exact[0], "variance": exact[1]},
        "after_nine_rounds": {"mean": proposals[-1][0], "variance": proposals[-1][1]},
        "monte_carlo_sd": {
            "mean": math.sqrt(exact[1] * drift),
            "variance": exact[1] * math.sqrt(2 * drift),
        },
        "without_monte_carlo_error": {"mean": limit[0], "variance": limit[1]},
        "few_retries": {
            "max_retries": FEW_RETRIES,
            "mean": narrowed[-1][0],
            "variance": narrowed[-1][1],
            "dropped_fraction": [record.dropped_fraction for record in fewer.rounds],
            "simulator_calls": fewer.num_simulations,
        },
        "retention": {
            "proposals": [retention(*proposal) for proposal in proposals],
            "exact posterior": retention(*exact),
            "repeated_mean_and_sd": shares,
        },
        "moments_by_round": proposals,
        "rounds": [record.to_dict() for record in posterior.rounds],
        "simulator_calls": posterior.num_simulations,
        "cpu_seconds": time.process_time() - started,
        "seed": posterior.seed,
        "versions": {"abi-toolkit": abi.__version__, "torch": torch.__version__},
    }
    (HERE / "warmup.json").write_text(json.dumps(result, indent=2) + "\n")
    draw(proposals, exact, shares, HERE / "warmup.png")
    del result["rounds"], result["moments_by_round"]
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
