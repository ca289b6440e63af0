"""How a command ends: exit status, JSON on request, and what to type after Ctrl-C."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Annotated, Any

import typer

EXIT_STATUS: Mapping[int, str] = {
    0: "done; no test rejects, nothing is wrong",
    1: "done, and the answer is no: a test rejects (validate), something is wrong (doctor)",
    2: "a mistake in what was asked; one line says which",
    3: "something broke; the traceback says where",
    130: "interrupted by Ctrl-C; fit, simulate, reproduce and benchmark say how to go on",
}
"""What the exit status of every command means."""

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
"""The option that every command has; progress goes to standard error."""


def print_json(values: Mapping[str, Any]) -> None:
    """Print a result for programs."""
    typer.echo(json.dumps(values, indent=1))


def can_draw() -> bool:
    """Whether matplotlib, an extra, is installed; a line on standard error where it is not."""
    if find_spec("matplotlib") is not None:
        return True
    typer.secho("no pictures: install abi-toolkit[plots]", err=True, fg=typer.colors.YELLOW)
    return False


def check_installed(what: str, *modules: str) -> None:
    """Refuse before the work what needs an extra that is missing.

    Raises:
        ValueError: naming what was asked for and what to install.
    """
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise ValueError(f"`{what}` needs {' and '.join(missing)}: install abi-toolkit[plots].")


def examples(*lines: tuple[str, str]) -> str:
    """The end of a command's help: pairs of what is wanted and what to type."""
    return "\n\n".join(["Examples:", *(f"# {what}\n\n{command}" for what, command in lines)])


def exit_statuses() -> str:
    """The exit statuses as the end of the application's help."""
    return "\n\n".join(
        ["Exit status:", *(f"{code}: {meaning}" for code, meaning in EXIT_STATUS.items())]
    )


@contextmanager
def resumable(flag: str = "") -> Iterator[None]:
    """Work that Ctrl-C leaves in a state to go on from, by the same words and ``flag``."""
    try:
        yield
    except KeyboardInterrupt:
        words = ["abi", *sys.argv[1:]]
        if flag and flag not in words:
            words.append(flag)
        typer.secho(
            f"\nabi: interrupted; what was finished is kept. Go on with:\n{shlex.join(words)}",
            err=True,
            fg=typer.colors.YELLOW,
        )
        raise typer.Exit(130) from None
