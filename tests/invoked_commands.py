"""Commands called in this process: faster, and seen by monkeypatch."""

from __future__ import annotations

from typing import Any

from typer.testing import CliRunner

from abi.cli.app import app
from simulators.random import isolated_rng


def invoke(*words: str) -> Any:
    with isolated_rng(0):  # what a command imports may draw from the global streams
        return CliRunner().invoke(app, words, env={"COLUMNS": "200"})


def refused(*words: str) -> str:
    """The one line with which a command refuses."""
    done = invoke(*words)
    assert isinstance(done.exception, ValueError), done.output
    assert "\n" not in str(done.exception)
    return str(done.exception)
