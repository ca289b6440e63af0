"""Make report.html: a fit, its verdict, the exact posterior beside it, and a validation.

The fit is that of ``abi.fit`` without any setting but the budget, 8,000 throws of a ball. (With
4,000 its check passes as well, but the mean of the angle lies 0.8 sd from the exact one, and the
page says so.) With chromium installed, report.png shows the first screen. Run from anywhere:
python examples/report.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from ball import HIGH, LOW, NAMES, NOISE, flight, prior, throw
from torch import Tensor

import abi
import simulators
import validation

HERE = Path(__file__).parent
NUM_SIMULATIONS = 8_000
CELLS = 1_000  # of the grid, along each parameter: six a standard deviation, and more


class KnownThrow:
    """The throw with its exact posterior, which a report draws beside the fit's."""

    prior = prior

    def __call__(self, theta: Tensor) -> Tensor:
        return throw(theta)

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draws (num_samples, 2) by Bayes' rule on a grid: a cell, then a point inside it."""
        steps = (torch.arange(CELLS) + 0.5) / CELLS
        theta = LOW + (HIGH - LOW) * torch.cartesian_prod(steps, steps)
        misfit = ((flight(theta) - x_o) ** 2).sum(dim=1) / (2 * NOISE**2)
        generator = torch.Generator().manual_seed(seed)
        weight = torch.softmax(-misfit.double(), dim=0)
        cell = torch.multinomial(weight, num_samples, replacement=True, generator=generator)
        inside = torch.rand(num_samples, 2, generator=generator) - 0.5
        return theta[cell] + inside * (HIGH - LOW) / CELLS


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
        report = validation.validate_at(*posterior.check_pairs(), x_o, seed=0, controls=True)
        print(report)
        of = {
            "calls": posterior.num_simulations,
            "seed": posterior.seed,
            "config": posterior.config.to_dict(),
        }
        report.save(tests, parameter_names=NAMES, of=of)
        page = HERE / "report.html"
        words = ["report", run.name, tests.name, "--simulator", "report:KnownThrow"]
        words += ["--title", "How was the ball thrown?", "-o", str(page)]
        where = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        subprocess.run(
            [sys.executable, "-m", "abi", *words],
            check=True, cwd=folder, env=os.environ | {"PYTHONPATH": where},
        )  # fmt: skip
    picture(page)


def picture(page: Path) -> None:
    """The first screen as report.png, where there is a browser to take it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        print("no report.png: chromium is not installed")
        return
    words = "--headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1280,720"
    shot = f"--screenshot={page.with_suffix('.png')}"
    subprocess.run([chromium, *words.split(), shot, page.as_uri()], check=True, capture_output=True)


if __name__ == "__main__":
    main()
