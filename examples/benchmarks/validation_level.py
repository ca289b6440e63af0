"""Rejection rate of every test under a true null: 500 independent repetitions, q exact.

Each repetition draws its own N = 200 pairs from the (3, 3) Gaussian family and its own q draws.
Settings are small so that thousands of runs fit into an hour; validity does not depend on how well
a network is trained, which is why short training is an honest setting here. Resumable: results are
written every 20 repetitions, and a second run goes on where the first stopped.

CoLT with the identity has 4,000 repetitions: with theta in another frame 500 rejected 0.074,
outside a 95% interval, as one of 16 may; all 4,000 are kept.

    python examples/benchmarks/validation_level.py [repetitions] [method ...]
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measure import MACHINE, versions
from scipy.stats import kstest
from validation_gaussians import GaussianFamily

import validation
from validation import METHODS, ColtTraining, Training
from validation.laboratory.rates import clopper_pearson

RESULT = Path(__file__).with_suffix(".json")
FAMILY = GaussianFamily.of()
PAIRS = 200
ALPHA = 0.05
NETWORK = Training(hidden=(32, 32), max_epochs=40, patience=10)
LOCAL = Training(hidden=(30, 30), max_epochs=30, patience=10, stop_on="accuracy")
BALLS = ColtTraining(hidden=(64, 64), epochs=100, learning_rate=1e-3, anchors_per_epoch=100)

TESTS: dict[str, partial[Any]] = {
    "sbc": partial(METHODS["sbc"], num_samples=100),
    "tarp": partial(METHODS["tarp"], num_samples=100),
    "hpd": partial(METHODS["hpd"], num_samples=100),
    "c2st": partial(METHODS["c2st"], training=NETWORK),
    "c2st, statistic mse": partial(
        METHODS["c2st"], training=NETWORK, statistic="mse", num_nulls=39
    ),
    "conformal_c2st, fresh calibration": partial(
        METHODS["conformal_c2st"], training=NETWORK, fresh=FAMILY.joint
    ),
    "conformal_c2st, resampled calibration": partial(
        METHODS["conformal_c2st"], training=NETWORK, num_permutations=199
    ),
    "conformal_multiple": partial(
        METHODS["conformal_multiple"], training=NETWORK, num_permutations=199
    ),
    "discriminative_calibration": partial(
        METHODS["discriminative_calibration"], training=NETWORK, num_permutations=199
    ),
    "discriminative_calibration, null labels": partial(
        METHODS["discriminative_calibration"], training=NETWORK, num_permutations=199, null="labels"
    ),
    "score_rank": partial(METHODS["score_rank"], training=NETWORK),
    "colt_identity": partial(METHODS["colt_identity"], training=BALLS, num_samples=100),
    "colt": partial(METHODS["colt"], training=BALLS, num_samples=100),
    "lc2st, 5 held-out x_o": partial(METHODS["lc2st"], training=LOCAL, num_nulls=39, num_x_o=5),
    "lc2st, 5 held-out x_o, pooled labels": partial(
        METHODS["lc2st"], training=LOCAL, num_nulls=39, num_x_o=5, labels="pooled"
    ),
    "local_hpd, 5 held-out x_o": partial(
        METHODS["local_hpd"], training=LOCAL, num_nulls=39, num_x_o=5, num_samples=100
    ),
}


def summary(p_values: list[float]) -> dict[str, Any]:
    rejected = sum(p <= ALPHA for p in p_values)
    low, high = clopper_pearson(rejected, len(p_values))
    return {
        "repetitions": len(p_values),
        "rejection_rate": rejected / len(p_values),
        "interval_95": [low, high],
        "holds_level": low <= ALPHA,
        "ks_uniform_p": float(kstest(p_values, "uniform").pvalue),
    }


def write(p_values: dict[str, list[float]], seconds: float) -> None:
    report = {
        "what": "rejection rate at 0.05 with q exact, (3, 3) Gaussian family",
        "pairs": PAIRS,
        "seeds": "repetition r: pairs from seed 10,000 + r, test with seed r",
        "note": "colt_identity: 4,000 repetitions, for 500 with theta in another frame gave 0.074",
        "settings": {
            "classifier": str(NETWORK),
            "local classifiers": str(LOCAL),
            "colt": str(BALLS),
            "tests": {
                name: {
                    key: value
                    for key, value in test.keywords.items()
                    if key not in ("training", "fresh")
                }
                for name, test in TESTS.items()
            },
        },
        "machine": f"{MACHINE}, one thread",
        "versions": versions("torch", "numpy", "scipy"),
        "seconds_of_last_run": round(seconds),
        "summary": {name: summary(values) for name, values in p_values.items() if values},
        "p_values": {name: [float(f"{p:.6g}") for p in v] for name, v in p_values.items()},
    }
    part = RESULT.with_suffix(".part")
    part.write_text(json.dumps(report, indent=1) + "\n")
    part.replace(RESULT)


def main() -> None:
    torch.set_num_threads(1)
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    names = sys.argv[2:] or list(TESTS)
    known = json.loads(RESULT.read_text())["p_values"] if RESULT.exists() else {}
    p_values = {name: known.get(name, []) for name in TESTS}
    start = time.time()
    while any(len(p_values[name]) < repetitions for name in names):
        # All tests advance together, so that an interrupted run has about as many of each.
        goal = min(repetitions, min(len(p_values[name]) for name in names) + 20)
        for name in names:
            for r in range(len(p_values[name]), goal):
                theta, x = FAMILY.joint(PAIRS, 10_000 + r)
                result: validation.ValidationResult = TESTS[name](
                    FAMILY.conditional, theta, x, seed=r
                )
                p_values[name].append(result.p_value)
        write(p_values, time.time() - start)
        print(f"{goal} of {repetitions}, {time.time() - start:.0f} s", flush=True)
    for name, row in json.loads(RESULT.read_text())["summary"].items():
        low, high = row["interval_95"]
        print(f"{name:<42} {row['rejection_rate']:.3f}  [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
