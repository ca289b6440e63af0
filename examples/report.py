"""Make report.html: a fit, its verdict, and tests at the observation by the same pairs.

python examples/report.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from ball import NAMES, prior, throw

import abi
import simulators
import validation

HERE = Path(__file__).parent
NUM_SIMULATIONS = 4_000


def main() -> None:
    task = simulators.from_function(throw, prior, batched=True, parameter_names=NAMES)
    x_o = task(torch.tensor([[6.0, 0.8]]), seed=1)[0]
    with tempfile.TemporaryDirectory() as folder:
        run, tests = Path(folder) / "ball", Path(folder) / "ball-validation.json"
        posterior = abi.fit(
            prior, throw, x_o, num_simulations=NUM_SIMULATIONS, seed=0, run_dir=run,
            parameter_names=NAMES, progress=False,
        )  # fmt: skip
        print(posterior.verdict)
        pairs = posterior.check_pairs()
        report = validation.validate_at(*pairs, x_o, seed=0, controls=True)
        print(report)
        made_by = {"calls": posterior.num_simulations, "config": posterior.config.to_dict()}
        report.save(tests, parameter_names=NAMES, of=made_by)
        out = HERE / "report.html"
        words = ["report", run.name, tests.name, "--title", "Where was it thrown?", "-o", str(out)]
        subprocess.run([sys.executable, "-m", "abi", *words], check=True, cwd=folder)


if __name__ == "__main__":
    main()
