"""Coverage of ABI's credible intervals over 200 draws of a conjugate prior.

Each repetition draws theta from the prior and x_o from the simulator, fits with defaults, and asks
whether the central 50, 80 and 95% interval of each parameter holds theta. Coverage is over
repetitions and parameters; the interval beside it is Clopper and Pearson's for the repetitions of
one parameter, the exact posterior's own coverage on the same draws stands next to it, and the fit's
mean and sd are compared with the exact ones.

    python examples/benchmarks/abi_coverage.py --workers 2

A repetition takes 15 s of a core; those done are kept in abi_coverage.json and not run again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from joblib import Parallel, delayed
from measure import MACHINE, versions
from scipy.stats import binomtest
from torch import Tensor

import abi
from simulators import GaussianLinear, sample_prior
from simulators.random import child_seed

RESULT = Path(__file__).with_suffix(".json")
TASK = GaussianLinear(3, 1.0, 0.5)
SEED, CALLS, DRAWS = 2025, 1_000, 4_000
LEVELS = (0.5, 0.8, 0.95)


def repetition(number: int) -> dict[str, Any]:
    """One theta, one fit: the rank of theta among draws, by parameter, and errors of moments."""
    torch.set_num_threads(1)
    theta = sample_prior(TASK.prior, 1, seed=child_seed(SEED, number, 0))
    x_o = TASK(theta, seed=child_seed(SEED, number, 1))[0]
    started = time.process_time()
    posterior = abi.fit(
        TASK.prior,
        TASK,
        x_o,
        num_simulations=CALLS,
        seed=child_seed(SEED, number, 2),
        progress=False,
    )
    seconds = time.process_time() - started
    draws = posterior.sample((DRAWS,), seed=0)
    exact = TASK.reference_posterior(x_o, DRAWS, seed=child_seed(SEED, number, 3))
    sd = exact.std(dim=0)
    return {
        "number": number,
        "level": _level(draws, theta[0]),
        "exact_level": _level(exact, theta[0]),
        "mean_error_in_sds": _rounded((draws.mean(dim=0) - exact.mean(dim=0)) / sd),
        "sd_ratio": _rounded(draws.std(dim=0) / sd),
        "cpu_seconds": round(seconds, 1),
    }


def _level(draws: Tensor, theta: Tensor) -> list[float]:
    """Of each parameter: the smallest central interval of the draws that holds theta."""
    return _rounded((2.0 * (draws < theta).double().mean(dim=0) - 1.0).abs())


def _rounded(values: Tensor) -> list[float]:
    return [round(value, 4) for value in values.tolist()]


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Coverage at each level, and how far the moments are off."""
    table = {}
    for level in LEVELS:
        expected = binomtest(round(level * len(rows)), len(rows), level).proportion_ci()
        table[f"{level:.0%}"] = {
            "abi": _coverage(rows, "level", level),
            "exact": _coverage(rows, "exact_level", level),
            "by_parameter": [
                _coverage(rows, "level", level, parameter) for parameter in range(TASK.theta_dim)
            ],
            "binomial_95%": [round(expected.low, 3), round(expected.high, 3)],
        }
    errors = torch.tensor([row["mean_error_in_sds"] for row in rows])
    ratios = torch.tensor([row["sd_ratio"] for row in rows])
    return {
        "repetitions": len(rows),
        "coverage": table,
        "mean_error_in_sds": {"mean": float(errors.mean()), "sd": float(errors.std())},
        "sd_ratio": {"mean": float(ratios.mean()), "sd": float(ratios.std())},
        "cpu_seconds_a_fit": sum(row["cpu_seconds"] for row in rows) / len(rows),
    }


def _coverage(
    rows: list[dict[str, Any]], name: str, level: float, parameter: int | None = None
) -> float:
    inside = torch.tensor([row[name] for row in rows]) <= level
    return float((inside if parameter is None else inside[:, parameter]).double().mean())


def write(rows: list[dict[str, Any]]) -> None:
    """Keep what is there, summary first."""
    head = {
        "what": f"Coverage of abi.fit with defaults at {CALLS:,} calls on {TASK!r}",
        "machine": MACHINE,
        "versions": versions("torch", "abi-toolkit"),
        "seed": SEED,
        **summary(rows),
    }
    lines = ",\n".join(json.dumps(row) for row in sorted(rows, key=lambda row: row["number"]))
    RESULT.write_text(json.dumps(head, indent=1)[:-2] + ',\n "rows": [\n' + lines + "\n]}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin none after")
    arguments = parser.parse_args()
    rows = json.loads(RESULT.read_text())["rows"] if RESULT.exists() else []
    done = {row["number"] for row in rows}
    stop = time.monotonic() + 60.0 * arguments.minutes
    left = (n for n in range(arguments.repetitions) if n not in done and time.monotonic() < stop)
    runs = Parallel(arguments.workers, return_as="generator_unordered")
    for row in runs(delayed(repetition)(number) for number in left):
        rows.append(row)
        write(rows)
        print(f"{len(rows)} of {arguments.repetitions}", flush=True)
    print(json.dumps(summary(rows), indent=1))


if __name__ == "__main__":
    main()
