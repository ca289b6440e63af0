"""Submissions with faults in known rows, and scripts that are killed while they run."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import faulty_simulators as faulty
import torch
from torch import Tensor

from simulators.given.function import Form, FunctionSimulator

ONE_ROW = FunctionSimulator(faulty.one_row, Form())


KINDS = {"one row": ONE_ROW, "many rows": faulty.many_rows, "seeded": faulty.Seeded()}


def submission(num_rows: int, faults: dict[int, int] | None = None) -> Tensor:
    """Rows (fault, row number), faults at the rows given."""
    theta = torch.stack([torch.zeros(num_rows), torch.arange(num_rows).float()], dim=1)
    for row, code in (faults or {}).items():
        theta[row, 0] = code
    return theta


def start_script(statement: str, stderr: int | None = None) -> subprocess.Popen[bytes]:
    """Run a statement in a process of its own."""
    here = Path(__file__).parent
    paths = os.pathsep.join([str(here), str(here.parent)])
    code = (
        f"import torch, faulty_simulators as faulty\nfrom simulators import simulate\n{statement}"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code], stderr=stderr, env=os.environ | {"PYTHONPATH": paths}
    )


def wait_until(condition: object, seconds: float = 60.0) -> None:
    """Wait for a condition, for as long as a slow machine may take."""
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)
