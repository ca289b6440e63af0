"""L-C2ST with 100 nulls: our batched network against sbi's LC2ST, in one run on the same data.

Both see the same pairs, the same q draws and the same draws at x_o, standardise their features, and
use two layers of 10 d units with early stopping on the validation accuracy (patience 50). Ours is
timed as it is by default (labels swapped within pairs, one start for all networks) and as sbi draws
its null (labels permuted over all rows, every network from its own start): there the two null
distributions must agree. CPU seconds of one thread, so that other work does not enter.

    python examples/benchmarks/validation_speed.py [N ...]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import MACHINE, save, versions
from scipy.stats import ks_2samp
from validation_gaussians import GaussianFamily

from simulators.random import isolated_rng
from validation import as_posterior, fit_lc2st

RESULT = Path(__file__).with_suffix(".json")
FAMILY = GaussianFamily.of()
NUM_NULLS = 100
NUM_EVAL = 1_000
SEED = 0


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    value = work()
    return value, {
        "cpu_seconds": time.process_time() - cpu,
        "wall_seconds": time.perf_counter() - wall,
    }


def sbi_nulls(
    theta: torch.Tensor,
    x: torch.Tensor,
    theta_q: torch.Tensor,
    x_o: torch.Tensor,
    draws: torch.Tensor,
) -> np.ndarray:
    """Train sbi's observed and null classifiers; null statistics (m, 100) at each x_o."""
    from sbi.diagnostics.lc2st import LC2ST

    test = LC2ST(theta, x, theta_q, seed=SEED, num_trials_null=NUM_NULLS, z_score=True)
    test.train_on_observed_data(verbosity=0)
    test.train_under_null_hypothesis(verbosity=0)
    columns = []
    for i, row in enumerate(x_o):
        null = test.get_statistics_under_null_hypothesis(draws[:, i], row, verbosity=0)
        columns.append(np.asarray(getattr(null, "scores", null)).reshape(NUM_NULLS, -1).mean(1))
    return np.stack(columns)


def our_nulls(q: Any, theta: torch.Tensor, x: torch.Tensor, x_o: torch.Tensor,
              draws: torch.Tensor, **null: Any) -> np.ndarray:  # fmt: skip
    fitted = fit_lc2st(q, theta, x, num_nulls=NUM_NULLS, seed=SEED, **null)
    rows = [fitted.test(row, theta_o=draws[:, i]) for i, row in enumerate(x_o)]
    return np.stack([result.null_statistics.numpy() for result in rows])


def compare(n: int) -> dict[str, Any]:
    theta, x = FAMILY.joint(n, SEED)
    generator = torch.Generator().manual_seed(SEED + 1)
    theta_q = FAMILY.conditional(1, x, generator)
    x_o = FAMILY.observe(3, generator)
    draws = FAMILY.conditional(NUM_EVAL, x_o, generator)
    q = as_posterior((theta, x, theta_q), layout="samples_first")
    with isolated_rng(0):
        theirs, their_time = timed(lambda: sbi_nulls(theta, x, theta_q[0], x_o, draws))
    pairs, pairs_time = timed(lambda: our_nulls(q, theta, x, x_o, draws))
    pooled, pooled_time = timed(
        lambda: our_nulls(q, theta, x, x_o, draws, labels="pooled", start="own")
    )
    agreement = [
        {
            "x_o": x_o[i].tolist(),
            "sbi_median": float(np.median(theirs[i])),
            "ours_median": float(np.median(pooled[i])),
            "sbi_95": float(np.quantile(theirs[i], 0.95)),
            "ours_95": float(np.quantile(pooled[i], 0.95)),
            "ours_default_95": float(np.quantile(pairs[i], 0.95)),
            "ks_two_sample_p": float(ks_2samp(theirs[i], pooled[i]).pvalue),
        }
        for i in range(len(x_o))
    ]
    return {
        "pairs": n,
        "sbi": their_time,
        "ours_default": pairs_time,
        "ours_with_sbi_null": pooled_time,
        "cpu_ratio": their_time["cpu_seconds"] / pairs_time["cpu_seconds"],
        "null_agreement": agreement,
    }


def main() -> None:
    torch.set_num_threads(1)
    with isolated_rng(0):
        import_module("sbi.diagnostics.lc2st")  # before the clock runs
    rows = json.loads(RESULT.read_text())["results"] if RESULT.exists() else []
    for n in [int(word) for word in sys.argv[1:]] or [1_000, 5_000]:
        row = compare(n)
        rows = sorted([r for r in rows if r["pairs"] != n] + [row], key=lambda r: r["pairs"])
        report = {
            "what": "L-C2ST, 100 nulls, 3 + 3 dimensions, 3 observations; targets 4x, stretch 6x",
            "machine": f"{MACHINE}, one thread",
            "seed": SEED,
            "versions": versions("torch", "sbi", "scikit-learn"),
            "results": rows,
        }
        save(__file__, report)
        print(
            f"N = {n}: sbi {row['sbi']['cpu_seconds']:.1f} s, ours "
            f"{row['ours_default']['cpu_seconds']:.1f} s: {row['cpu_ratio']:.1f}x; "
            f"null KS p = {[round(a['ks_two_sample_p'], 3) for a in row['null_agreement']]}",
            flush=True,
        )


if __name__ == "__main__":
    main()
