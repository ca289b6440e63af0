"""Who notices the blind prior? Table 3 of the CoLT paper at dimensions (3, 3), one column.

q(theta | x) is the marginal of theta for every x. Each repetition is one whole call of the test on
its own pairs, training included (the paper trains three times and judges 200 batches with each).

    python examples/benchmarks/validation_power.py [repetitions] [repetitions of full CoLT]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from measure import rejections
from validation_gaussians import GaussianFamily

from validation import METHODS

RESULT = Path(__file__).with_suffix(".json")
FAMILY = GaussianFamily.of()
PAIRS = 200
LARGER = {"c2st, 300 pairs": ("c2st", 300)}  # half of the pairs train the classifier
PAPER = {"colt_identity": 1.0, "colt": 0.975, "c2st": 1.0, "sbc": 0.052, "tarp": 0.053}


def p_value(test: Callable[..., Any], q: Callable[..., torch.Tensor], r: int, pairs: int) -> float:
    theta, x = FAMILY.joint(pairs, 50_000 + r)
    return float(test(q, theta, x, seed=r).p_value)


def main() -> None:
    torch.set_num_threads(1)
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    slow = int(sys.argv[2]) if len(sys.argv) > 2 else 30
    results: dict[str, Any] = {}
    names = (
        "sbc",
        "tarp",
        "c2st",
        *LARGER,
        "conformal_c2st",
        "score_rank",
        "colt_identity",
        "colt",
    )
    for name in names:
        method, pairs = LARGER.get(name, (name, PAIRS))
        start = time.process_time()
        p_values: list[float] = []
        for r in range(slow if name == "colt" else repetitions):
            p_values.append(p_value(METHODS[method], FAMILY.blind, r, pairs))
            results[name] = rejections(p_values) | {
                "paper": PAPER.get(method),
                "cpu_seconds_a_call": (time.process_time() - start) / len(p_values),
            }
            write(results)
        print(name, results[name], flush=True)


def write(results: dict[str, Any]) -> None:
    report = {
        "what": "rejection rate at 0.05 of the blind prior, (3, 3) Gaussian family",
        "pairs": PAIRS,
        "settings": "defaults of every method",
        "seeds": "repetition r: pairs from seed 50,000 + r, test with seed r",
        "machine": "2 shared x86-64 cores, one thread",
        "versions": {"torch": torch.__version__},
        "results": results,
    }
    RESULT.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
