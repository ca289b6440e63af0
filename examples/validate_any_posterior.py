"""One question to five kinds of posterior: may we trust you? Two moons, one table.

An sbi NPE, an sbi NLE posterior (MCMC, one fit an observation), a zuko flow, an sbi SMC-ABC result
(one fit an observation) and plain arrays of samples are validated by the same tests with the same
joint draws. sbi's own run_sbc ranks the NPE as we do.

    python examples/validate_any_posterior.py [--quick]

Writes its table to validate_any_posterior.json beside it.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import Independent, Uniform

from simulators.random import child_seed, isolated_rng, torch_generator
from validation import PerObservation, Report, as_posterior, sbc, validate

QUICK = "--quick" in sys.argv
NUM_SIMULATIONS = 500 if QUICK else 2_000
NUM_PAIRS = 200 if QUICK else 400
NUM_PAIRS_SLOW = 24 if QUICK else 40  # a fit or a chain for each
METHODS = ["sbc", "tarp", "hpd", "c2st", "conformal_c2st", "score_rank"]
SEED = 1
PRIOR = Independent(Uniform(-torch.ones(2), torch.ones(2)), 1)


def two_moons(theta: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Greenberg et al. (2019): a crescent of width 0.01, moved by theta; x (n, 2)."""
    angle = torch.pi * (torch.rand(len(theta), generator=generator) - 0.5)
    radius = 0.1 + 0.01 * torch.randn(len(theta), generator=generator)
    crescent = torch.stack([radius * torch.cos(angle) + 0.25, radius * torch.sin(angle)], dim=1)
    moved = torch.stack([-(theta[:, 0] + theta[:, 1]).abs(), theta[:, 1] - theta[:, 0]], dim=1)
    return crescent + moved / 2**0.5


def exact_posterior(num_samples: int, x: Tensor) -> Tensor:
    """Draws from the true posterior, by importance resampling of the crescent's inverse.

    Given the crescent p, ``x - p`` fixes ``|theta_1 + theta_2|`` and ``theta_2 - theta_1``, and the
    sign is free: theta is uniform given x but for the bounds, which are met by rejection.
    """
    draws = torch.empty(num_samples, len(x), 2)
    todo = torch.ones(num_samples, len(x), dtype=torch.bool)
    observed = x.expand(num_samples, -1, -1)
    for _ in range(10_000):
        n = int(todo.sum())
        if n == 0:
            break
        q = (observed[todo] - two_moons(torch.zeros(n, 2))) * 2**0.5
        sign = torch.where(torch.rand(n) < 0.5, -1.0, 1.0)
        total, difference = sign * q[:, 0], q[:, 1]
        theta = torch.stack([total - difference, total + difference], dim=1) / 2
        # |theta_1 + theta_2| is not negative, so the crescent must lie on x's right.
        good = (q[:, 0] <= 0) & (theta.abs() <= 1).all(dim=1)
        where = todo.nonzero()[good]
        draws[where[:, 0], where[:, 1]] = theta[good]
        todo[where[:, 0], where[:, 1]] = False
    return draws


def joint(n: int, seed: int) -> tuple[Tensor, Tensor]:
    generator = torch_generator(seed)
    theta = 2 * torch.rand(n, 2, generator=generator) - 1
    return theta, two_moons(theta, generator)


def train_npe(theta: Tensor, x: Tensor) -> Any:
    from sbi.inference import NPE

    inference = NPE(PRIOR, density_estimator="nsf", show_progress_bars=False)
    inference.append_simulations(theta, x).train(max_num_epochs=20 if QUICK else 200)
    return inference.build_posterior()


def train_nle(theta: Tensor, x: Tensor) -> Any:
    from sbi.inference import NLE

    inference = NLE(PRIOR, density_estimator="maf", show_progress_bars=False)
    inference.append_simulations(theta, x).train(max_num_epochs=20 if QUICK else 200)
    return inference.build_posterior(
        sample_with="mcmc",
        mcmc_method="slice_np_vectorized",
        mcmc_parameters={"num_chains": 10, "thin": 2, "warmup_steps": 30},
    )


def train_zuko(theta: Tensor, x: Tensor) -> Any:
    import zuko

    flow = zuko.flows.NSF(2, 2, transforms=4, hidden_features=(64, 64))
    optimiser = torch.optim.Adam(flow.parameters(), lr=2e-3)
    for _ in range(20 if QUICK else 150):
        for rows in torch.randperm(len(theta)).split(200):
            optimiser.zero_grad()
            (-flow(x[rows]).log_prob(theta[rows]).mean()).backward()
            optimiser.step()
    return flow.requires_grad_(False)


def smc_abc(x_o: Tensor) -> Any:
    """One SMC-ABC run of sbi: it answers for this observation only."""
    from sbi.inference import SMCABC

    run = SMCABC(two_moons, PRIOR, show_progress_bars=False)
    return run(
        x_o[None],
        num_particles=200,
        num_initial_pop=400,
        num_simulations=2_000,
        epsilon_decay=0.5,
    )


def sbi_ranks_agree(posterior: Any, theta: Tensor, x: Tensor) -> float:
    """Correlation of sbi's ranks with ours; they differ by the posterior draws alone."""
    from sbi.diagnostics import run_sbc

    with isolated_rng(SEED):
        theirs, _ = run_sbc(theta, x, posterior, num_posterior_samples=500, show_progress_bar=False)
    ours = sbc(posterior, theta, x, num_samples=500, seed=SEED).details["counts"]
    return float(np.corrcoef(theirs.numpy().ravel(), ours.numpy().ravel())[0, 1])


def run(name: str, q: Any, theta: Tensor, x: Tensor) -> dict[str, Any]:
    start = time.time()
    report: Report = validate(q, theta, x, METHODS, num_samples=100, seed=SEED)
    seconds = time.time() - start
    cells = "".join(
        f"{result.p_value:>15.2g}{'*' if adjusted <= 0.05 else ' '}"
        for result, adjusted in zip(report.results, report.adjusted, strict=True)
    )
    print(f"{name:<26}{len(theta):>6}{cells}{seconds:>8.0f}", flush=True)
    return {"posterior": name, "pairs": len(theta), "seconds": round(seconds, 1)} | {
        "rejected": list(report.rejected),
        "p_values": {result.method: result.p_value for result in report.results},
    }


def main() -> None:
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    with isolated_rng(0):
        import sbi
        import zuko
    train = joint(NUM_SIMULATIONS, child_seed(SEED, 0))
    theta, x = joint(NUM_PAIRS, child_seed(SEED, 1))
    few = theta[:NUM_PAIRS_SLOW], x[:NUM_PAIRS_SLOW]
    # sbi writes its training logs where it runs.
    with isolated_rng(SEED), tempfile.TemporaryDirectory() as logs, contextlib.chdir(logs):
        npe, nle, flow = train_npe(*train), train_nle(*train), train_zuko(*train)
        arrays = exact_posterior(200, x), exact_posterior(200, x) * 1.15
    layout = "samples_first"
    print(f"{'posterior':<26}{'pairs':>6}" + "".join(f"{m:>16}" for m in METHODS) + " seconds")
    rows = [
        run("sbi NPE", npe, theta, x),
        run("zuko flow", flow, theta, x),
        run("arrays, exact", as_posterior((theta, x, arrays[0]), layout=layout), theta, x),
        run("arrays, 15% too wide", as_posterior((theta, x, arrays[1]), layout=layout), theta, x),
        run("sbi NLE, MCMC", nle, *few),
        run("sbi SMC-ABC, per x_o", PerObservation(smc_abc), *few),
    ]
    correlation = sbi_ranks_agree(npe, theta, x)
    print("* rejected at 0.05 over all tests of the row (Holm)")
    print(f"sbi's run_sbc ranks of the NPE agree with ours: correlation {correlation:.4f}")
    report = {
        "what": "two moons, one table for five kinds of posterior",
        "num_simulations": NUM_SIMULATIONS,
        "seed": SEED,
        "quick": QUICK,
        "versions": {
            "torch": torch.__version__,
            "sbi": sbi.__version__,
            "zuko": getattr(zuko, "__version__", ""),
        },
        "machine": "2 shared x86-64 cores, one thread",
        "rows": rows,
        "sbc_rank_correlation_with_sbi": correlation,
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
