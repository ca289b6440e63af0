"""Twenty observations: one fit for all of them beside a fit of each, by calls, time, accuracy.

    python examples/benchmarks/many_observations.py    ten minutes; writes .json and .md here

Two moons, x drawn from the prior predictive. ``abi.fit_many`` answers all twenty within the calls
of four separate fits. The first five are also fitted one by one, as one would by hand: five
separate fits are what twenty together may cost. Accuracy is that of a classifier (C2ST, 2,000 draws
a side; 0.5 is perfect) and the bias of the worse mean in exact sds, at those five and at all.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import mean
from typing import Any

import torch
from torch import Tensor

import abi
from abi.metrics import c2st
from abi.studies.engine.tables import table, write_results
from simulators import TwoMoons, sample_joint

HERE = Path(__file__)
OBSERVATIONS, SEPARATE = 20, 5
TOGETHER, EACH = 16_000, 4_000
DRAWS, SEED = 2_000, 77


def judged(posterior: abi.ABIPosterior, x_o: Tensor) -> dict[str, float]:
    """How far an answer is from the exact posterior."""
    exact = TwoMoons().reference_posterior(x_o, DRAWS)
    draws = posterior.sample((DRAWS,))
    off = (draws.mean(dim=0) - exact.mean(dim=0)).abs() / exact.std(dim=0)
    return {"c2st": c2st(draws, exact), "bias": float(off.max())}


def main() -> None:
    """Fit, judge, and write."""
    torch.set_num_threads(1)
    task = TwoMoons()
    _, x = sample_joint(task, OBSERVATIONS, seed=SEED)
    started = time.process_time()
    together = abi.fit_many(task.prior, task, x, num_simulations=TOGETHER, progress=False)
    seconds = time.process_time() - started
    all_of_them = [judged(posterior, row) for posterior, row in zip(together, x, strict=True)]
    alone, spent = [], 0.0
    for row in x[:SEPARATE]:
        started = time.process_time()
        posterior = abi.fit(task.prior, task, row, num_simulations=EACH, progress=False)
        spent += time.process_time() - started
        alone.append(judged(posterior, row))
    rows: list[dict[str, Any]] = [
        {"way": f"abi.fit_many, all {OBSERVATIONS}", "calls": TOGETHER, "cpu": seconds,
         "judged": all_of_them},
        {"way": f"of these, the first {SEPARATE}", "calls": None, "cpu": None,
         "judged": all_of_them[:SEPARATE]},
        {"way": f"abi.fit, the first {SEPARATE} one by one", "calls": SEPARATE * EACH,
         "cpu": spent, "judged": alone},
    ]  # fmt: skip
    written = []
    for row in rows:
        accuracies = [part["c2st"] for part in row["judged"]]
        calls = "" if row["calls"] is None else f"{row['calls']:,}"
        cost = "" if row["cpu"] is None else f"{row['cpu']:.0f}"
        bias = mean(part["bias"] for part in row["judged"])
        far = f"{mean(accuracies):.3f}", f"{max(accuracies):.3f}", f"{bias:.2f}"
        written.append([row["way"], calls, cost, *far])
    heads = "way", "calls", "CPU s", "C2ST, mean", "worst", "bias in sds, mean"
    text = "\n".join(table(heads, written)) + "\n"
    write_results(HERE, {"seed": SEED, "rows": rows}, text)


if __name__ == "__main__":
    main()
