"""Commands as a user types them: in a process of their own, or in this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from abi.cli.app import app
from simulators.random import isolated_rng

ROOT = Path(__file__).parents[1]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "abi", *words],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=300,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def invoke(*words: str) -> Any:
    """A command in this process: faster, and seen by monkeypatch."""
    with isolated_rng(0):  # what a command imports may draw from the global streams
        return CliRunner().invoke(app, words, env={"COLUMNS": "200"})


def refused(*words: str) -> str:
    """The one line with which a command refuses."""
    done = invoke(*words)
    assert isinstance(done.exception, ValueError), done.output
    assert "\n" not in str(done.exception)
    return str(done.exception)
