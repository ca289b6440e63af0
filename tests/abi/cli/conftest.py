"""A folder with a user's module and data, and commands whose fits are small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import small_commands

SIMULATOR = """
import torch
from torch.distributions import Independent, Uniform

prior = Independent(Uniform(torch.zeros(2), torch.ones(2)), 1)

def sampler(n):
    return torch.rand(n, 2)

def simulate(theta):
    return theta.repeat(1, 2) + 0.1 * torch.randn(len(theta), 4)

def sharp(num_samples, x):
    return x[:, :2] + 0.01 * torch.randn(num_samples, len(x), 2)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mymodule.py").write_text(SIMULATOR)
    np.savetxt(tmp_path / "observed.csv", [[0.3, 0.7, 0.35, 0.65]], delimiter=",", header="a,b,c,d")
    return tmp_path


@pytest.fixture
def small_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands called in this process begin fits with the constants of ``small_commands``."""
    monkeypatch.setattr(small_commands.command(), "ABIConfig", small_commands.constants)
