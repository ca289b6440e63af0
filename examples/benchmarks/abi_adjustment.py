"""What the last step of ABI is worth: the published form and two corrections, against exact draws.

Each fit is at equal simulator calls, retries included. Distances are 1-Wasserstein (exact, POT)
between 2,000 draws of the fit and of the exact posterior, parameters divided by the exact sds; the
floor is that between two exact samples. Observations: the model's default, and one simulated.

    python examples/benchmarks/abi_adjustment.py
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import ot
import torch
from torch import Tensor

import abi
from simulators import MG1, MultimodalGaussian, sample_prior

RESULT = Path(__file__).with_suffix(".json")
CASES = [(MG1(), 40_000, 4), (MultimodalGaussian(), 20_000, 2)]
CONFIGS = {
    "published (none)": abi.ABIConfig.paper(),
    "ours, none": abi.ABIConfig(adjustment="none"),
    "ours, quantile (default)": abi.ABIConfig(),
    "ours, conditional": abi.ABIConfig(adjustment="conditional"),
}
DRAWS = 2_000


def wasserstein(a: Tensor, b: Tensor) -> float:
    cost = torch.cdist(a[:DRAWS].double(), b[:DRAWS].double()).numpy()
    return float(ot.emd2([], [], cost, numItermax=1_000_000))


def measure(task: Any, x_o: Tensor, calls: int, rounds: int, name: str) -> dict[str, Any]:
    exact = task.reference_posterior(x_o, 4_000, seed=0)
    sd = exact.std(dim=0)
    started = time.process_time()
    posterior = abi.fit(
        task.prior,
        task,
        x_o,
        num_simulations=calls,
        num_rounds=rounds,
        seed=0,
        config=CONFIGS[name],
        progress=False,
    )
    seconds = time.process_time() - started
    draws = posterior.sample((4_000,))
    return {
        "model": type(task).__name__,
        "config": name,
        "simulator_calls": posterior.num_simulations,
        "normalised_w1": wasserstein(draws / sd, exact / sd),
        "floor": wasserstein(task.reference_posterior(x_o, DRAWS, seed=1) / sd, exact / sd),
        "mean_error_in_sds": ((draws.mean(dim=0) - exact.mean(dim=0)) / sd).tolist(),
        "sd_ratio": (draws.std(dim=0) / sd).tolist(),
        "dropped_fraction": [record.dropped_fraction for record in posterior.rounds],
        "cpu_seconds": seconds,
    }


def main() -> None:
    torch.set_num_threads(1)
    rows = []
    for task, calls, rounds in CASES:
        simulated = task(sample_prior(task.prior, 1, seed=101), seed=201)[0]
        for number, x_o in enumerate((task.observation, simulated)):
            for name in CONFIGS:
                row = measure(task, x_o, calls, rounds, name) | {"observation": number}
                rows.append(row)
                print(
                    f"{row['model']:<20} {number} {name:<26} nW1 {row['normalised_w1']:.2f} "
                    f"(floor {row['floor']:.2f})  {row['cpu_seconds']:.0f} s",
                    flush=True,
                )
                RESULT.write_text(json.dumps(report(rows), indent=1) + "\n")


def report(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "what": "ABI against exact posteriors, by what is done with the last round's draws",
        "seed": 0,
        "machine": "2 shared x86-64 cores, one thread",
        "versions": {"abi-toolkit": abi.__version__, "torch": torch.__version__},
        "results": rows,
    }


if __name__ == "__main__":
    main()
