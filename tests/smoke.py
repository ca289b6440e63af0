"""What a user does first with an installed abi-toolkit: `make smoke`, outside the checkout."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

MINE = """
import torch

prior = {name: torch.distributions.Uniform(-1.0, 1.0) for name in ("a", "b")}


def simulate(theta):
    return theta + 0.1 * torch.randn_like(theta)
"""


def abi(*words: str, allowed: tuple[int, ...] = (0,)) -> str:
    """The output of a command, which must end with one of the statuses allowed."""
    command = [Path(sys.executable).with_name("abi"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode not in allowed:
        raise SystemExit(f"abi {' '.join(words)}: status {done.returncode}\n{done.stderr}")
    return done.stdout


def main() -> None:
    """Versions, the doctor, a fit with its verdict, a validation and a page of both."""
    Path("mine.py").write_text(MINE)
    Path("x.csv").write_text("0.3,-0.2\n")
    version = abi("--version")
    if str(Path(sys.prefix).resolve()) not in version:
        raise SystemExit(f"the packages are not those that were installed:\n{version}")
    abi("doctor")
    fit = ("--simulator", "mine:simulate", "--prior", "mine:prior", "--observed", "x.csv")
    abi("fit", *fit, "--num-simulations", "500", "--seed", "0", "--out", "run")
    # A test of a right posterior rejects now and then: status 1 is an answer too.
    abi("validate", "run", "-m", "sbc", "--out", "validation.json", allowed=(0, 1))
    said = abi("report", "run", "validation.json", "--out", "page.html", "--json")
    page = Path("page.html").read_text(encoding="utf-8")
    if "</html>" not in page:
        raise SystemExit("the page is not whole")
    print(version.strip(), f"page of {len(page):,} characters", sep="\n")
    print(json.dumps(json.loads(said))[:200])


if __name__ == "__main__":
    main()
