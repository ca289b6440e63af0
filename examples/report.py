"""Make report.html: a fit, and the validation of the method behind it, on one page.

Fifty-one fits; one encoder and one flow keep each of them short.

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
SETTINGS = {
    "num_simulations": 1_000,
    "config": abi.ABIConfig(encoder="flat", num_flows=1),
    "parameter_names": NAMES,
    "progress": False,
}


def main() -> None:
    task = simulators.from_function(throw, prior, batched=True, parameter_names=NAMES)
    x_o = task(torch.tensor([[6.0, 0.8]]), seed=1)[0]
    with tempfile.TemporaryDirectory() as folder:
        run, tests = Path(folder) / "ball", Path(folder) / "ball-validation.json"
        abi.fit(prior, throw, x_o, seed=0, run_dir=run, **SETTINGS)
        q = validation.PerObservation(
            lambda x, seed: abi.fit(prior, throw, x, seed=seed, **SETTINGS), progress=True
        )
        theta, x = simulators.sample_joint(task, 50, seed=2)
        report = validation.validate(q, theta, x, ["sbc", "tarp", "hpd"], num_samples=200, seed=0)
        print(report)
        report.save(tests, parameter_names=NAMES)
        out = HERE / "report.html"
        words = ["report", str(run), str(tests), "--title", "Where was it thrown?", "-o", str(out)]
        subprocess.run([sys.executable, "-m", "abi", *words], check=True, cwd=HERE)


if __name__ == "__main__":
    main()
