"""Commands called in this process: faster, and seen by monkeypatch."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from abi.cli.app import app
from simulators.random import isolated_rng


def invoke(*words: str) -> Any:
    with isolated_rng(0):  # what a command imports may draw from the global streams
        return CliRunner().invoke(app, words, env={"COLUMNS": "200"})
