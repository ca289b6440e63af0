"""Side by side: the same two jobs with abi-toolkit, sbi, BayesFlow and pyABC.

Job *fit*: from a simulator, a prior and one observation to a posterior and a picture, with 2,000
simulator calls. Job *check*: train an amortised posterior with 2,000 calls and test it with 300
fresh pairs by what the library itself offers (ours tests sbi's). The scripts under ecosystem_jobs
are what a user would write with each library's defaults (but BayesFlow's batches: 128 rows, not 32,
for a quarter of the steps); each runs in an environment of its own. Libraries that are not named
keep the numbers they have:

    python examples/benchmarks/ecosystem.py sbi=ENV/bin/python bayesflow=ENV/bin/python \
        pyabc=ENV/bin/python abi=ENV/bin/python

Writes ecosystem.json beside it: lines, CPU seconds with one thread (imports included), means and
standard deviations beside the exact ones, pictures, and what is missing in each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measure import MACHINE, save

HERE = Path(__file__).parent
JOBS = HERE / "ecosystem_jobs"
PACKAGES = {"abi": "abi-toolkit", "sbi": "sbi", "bayesflow": "bayesflow", "pyabc": "pyabc"}
MISSING = {
    "abi": [
        "an amortised posterior: a fit is for one observation",
        "likelihood or ratio estimation, and MCMC on them",
        "embedding networks for images, unless you give one",
    ],
    "sbi": [
        "a hard budget of simulator calls, failures and timeouts handled by the runner",
        "resuming an interrupted run",
        "one call that runs the tests, adjusts for their number and says what each cannot see",
        "a prior that is only a sampler",
        "files without pickle",
        "a command line",
    ],
    "bayesflow": [
        "p-values: its diagnostics are pictures and metrics",
        "tests at one observation (L-C2ST), tests by classifiers",
        "adaptive rounds around one observation",
        "an exact posterior to compare with",
        "a command line",
    ],
    "pyabc": [
        "any test of calibration",
        "neural estimators in the core; summaries and distance are the user's choice",
        "a density of the posterior",
    ],
}


def exact_posterior() -> dict[str, list[float]]:
    """Mean and sd by quadrature on a grid: the noise is Gaussian, the prior uniform."""
    sys.path.insert(0, str(JOBS))
    from ball import HIGH, LOW, X_O

    speed, angle = (np.linspace(low, high, 3_000) for low, high in zip(LOW, HIGH, strict=True))
    v, a = np.meshgrid(speed, angle, indexing="ij")
    misfit = np.zeros_like(v)
    for k, t in enumerate(np.linspace(0.1, 1.0, 8)):
        misfit += (X_O[k] - v * np.cos(a) * t) ** 2
        misfit += (X_O[8 + k] - (v * np.sin(a) * t - 4.9 * t**2)) ** 2
    weight = np.exp(-(misfit - misfit.min()) / (2 * 0.1**2))
    weight /= weight.sum()
    mean = [float((weight * part).sum()) for part in (v, a)]
    second = [float((weight * part**2).sum()) for part in (v, a)]
    sd = [(s - m**2) ** 0.5 for m, s in zip(mean, second, strict=True)]
    return {"mean": np.round(mean, 3).tolist(), "sd": np.round(sd, 4).tolist()}


def lines_of(script: Path) -> int:
    """Lines that a user types: no blank ones, no comments."""
    lines = (line.strip() for line in script.read_text().splitlines())
    return sum(bool(line) and not line.startswith("#") for line in lines)


def run(job: str, library: str, python: str) -> dict[str, Any] | None:
    """Run one script in a folder of its own; None where the library cannot do the job."""
    script = JOBS / f"{job}_{library}.py"
    if not script.exists():
        return None
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(HERE.parents[1])] if library == "abi" else []
        done = subprocess.run(
            [python, "-W", "ignore", script],
            capture_output=True,
            text=True,
            cwd=folder,
            check=False,
            env=os.environ
            | {"MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)},
        )
        if done.returncode:
            raise RuntimeError(f"{script.name}: {done.stderr[-2_000:]}")
        found: dict[str, Any] = json.loads(
            done.stdout.strip().splitlines()[-1].split("epochs.")[-1]
        )
        found["pictures"] = sorted(str(p.relative_to(folder)) for p in Path(folder).rglob("*.png"))
    return {"lines": lines_of(script), **found}


def main() -> None:
    pythons = dict(word.split("=", 1) for word in sys.argv[1:])
    exact = exact_posterior()
    path = Path(__file__).with_suffix(".json")
    rows = json.loads(path.read_text())["libraries"] if path.exists() else {}
    for library, python in pythons.items():
        code = f"from importlib.metadata import version as v; print(v({PACKAGES[library]!r}))"
        number = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        rows[library] = {
            "version": number.stdout.strip(),
            "fit": run("fit", library, python),
            "check": run("check", library, python),
            "missing": MISSING[library],
        }
        fit = rows[library]["fit"]
        print(library, rows[library]["version"], fit["lines"], "lines", fit["cpu_seconds"], "s",
              fit["mean"], fit["sd"], "| check", rows[library]["check"], flush=True)  # fmt: skip
        write(rows, exact)


def write(rows: dict[str, Any], exact: dict[str, Any]) -> None:
    """What is known so far."""
    report = {
        "what": "the same two jobs with four libraries",
        "simulator_calls": 2_000,
        "seeds": {"observation": 1, "simulations": 2},
        "pairs_for_the_check": 300,
        "machine": f"{MACHINE}, one thread, other work beside it",
        "exact": exact,
        "libraries": rows,
    }
    save(__file__, report)


if __name__ == "__main__":
    main()
