"""Three fits, two validations and a report with fixed seeds, as digests to compare two commits by.

    python examples/benchmarks/same_results.py > before.json    # at one commit
    python examples/benchmarks/same_results.py > after.json     # at the other, on the same machine
    diff before.json after.json

A change that only moves code leaves both files the same. About half a minute of one core.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import abi
import validation
from simulators import MG1, GaussianLinear, TwoMoons, sample_joint


def digest(data: bytes) -> str:
    """The first half of its SHA-256."""
    return hashlib.sha256(data).hexdigest()[:32]


def fitted(task: Any, num_simulations: int, **constants: Any) -> list[Any]:
    """Draws and densities of a fit of two rounds."""
    posterior = abi.fit(
        task.prior, task, task.observation, num_simulations=num_simulations, num_rounds=2, seed=0,
        config=abi.ABIConfig(**constants), progress=False,
    )  # fmt: skip
    theta = posterior.sample((500,), seed=1)
    density = posterior.log_prob(theta)
    return [digest(part.numpy().tobytes()) for part in (theta, density)]


def reported() -> list[str]:
    """Draws and page of a run on the command line, the page without its times and place."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, "-m", "abi"]
        fit = ["fit", "--simulator", "simulators:GaussianLinear", "--num-simulations", "600"]
        run, page = Path(folder, "run"), Path(folder, "page.html")
        subprocess.run(
            [*words, *fit, "--rounds", "1", "--seed", "0", "--out", run],
            check=True, capture_output=True,
        )  # fmt: skip
        subprocess.run([*words, "report", run, "--out", page], check=True, capture_output=True)
        # Times stand in cells of numbers and in minutes; a model may be imported from elsewhere.
        changing = r"<(dd|td)[^>]*>[\d.]+</\1>|[\d.]+ (minutes|hours)|from simulators\S* import"
        text = re.sub(changing, "", page.read_text())
        samples = (run / "samples.csv").read_bytes()
        return [digest(samples), digest(text.replace(folder, "").encode())]


def main() -> None:
    """Print all of it as JSON."""
    torch.set_num_threads(1)
    task = GaussianLinear(2, 1.0, 1.0)
    theta, x = sample_joint(task, 120, seed=3)

    def q(x: torch.Tensor) -> torch.distributions.Normal:
        return torch.distributions.Normal(x / 2, 0.6)

    tests = ["sbc", "tarp", "hpd", "c2st", "conformal_c2st"]
    local = validation.lc2st(q, theta, x, task.observation, seed=0, num_nulls=20)
    results = [*validation.validate(q, theta, x, tests, seed=0).results, local]
    found = {
        "two moons": fitted(TwoMoons(), 600),
        "queue": fitted(MG1(), 500, encoder="sorted"),
        "mixture": fitted(task, 800, generator="mixture", adjustment="quantile"),
        "tests": {result.method: [result.statistic, result.p_value] for result in results},
        "report": reported(),
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
