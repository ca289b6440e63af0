"""How a command ends: exit status, JSON on request, and what to type after Ctrl-C."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

EXIT_STATUS: Mapping[int, str] = {
    0: "done; no test rejects, nothing is wrong",
    1: "done, and the answer is no: a test rejects (validate), the verdict is that the fit fails "
    "(fit and check with --strict), something is wrong (doctor)",
    2: "a mistake in what was asked; one line says which",
    3: "something broke; the traceback says where",
    130: "interrupted by Ctrl-C; fit, simulate, reproduce and benchmark say how to go on, check "
    "leaves the fit as it was",
}
"""What the exit status of every command means."""


def print_json(values: Mapping[str, Any]) -> None:
    """Print a result for programs."""
    typer.echo(json.dumps(values, indent=1))


def warn(text: str) -> None:
    """A line on standard error, of what went another way than might be wished."""
    typer.secho(text, err=True, fg=typer.colors.YELLOW)


def verdict_words(verdict: object, path: Path) -> str:
    """A verdict as a terminal has it: what it advises is a command on the fit at ``path``."""
    from ..verdict.judge import MORE_CALLS  # which brings torch

    at = shlex.quote(str(path))
    text = str(verdict).replace(
        f"posterior.check({MORE_CALLS})", f"`abi check {at} --num-simulations {MORE_CALLS}`"
    )
    if path.is_dir():  # no rounds can follow a lone file
        further = f"`abi fit --continue {at} --num-simulations 5000`"
        text = text.replace("posterior.refine()", further)
    return text


def can_draw() -> bool:
    """Whether matplotlib, an extra, is installed; a line on standard error where it is not."""
    if find_spec("matplotlib") is not None:
        return True
    warn("no pictures: install abi-toolkit[plots]")
    return False


def examples(lines: str) -> str:
    """The end of a command's help: what is wanted and what to type, line by line."""
    return "\n\n".join(["Examples:", *lines.strip().splitlines()])


def exit_statuses() -> str:
    """The exit statuses as the end of the application's help."""
    return "\n\n".join(
        ["Exit status:", *(f"{code}: {meaning}" for code, meaning in EXIT_STATUS.items())]
    )


def write_study(
    path: Path, values: dict[str, Any], text: str, pictures: str, as_json: bool
) -> None:
    """Keep a study's results as NAME.json and NAME.md, and print one of them."""
    from ..studies.engine.tables import write_results

    write_results(path, values, text)
    if as_json:
        print_json(values)
    else:
        also = f" and {pictures}" if pictures else ""
        typer.echo(f"{text}\nresults: {path}.json, .md{also}")


@contextmanager
def resumable(flag: str = "") -> Iterator[None]:
    """Work that Ctrl-C leaves in a state to go on from, by the same words and ``flag``."""
    try:
        yield
    except KeyboardInterrupt:
        words = ["abi", *sys.argv[1:]]
        if flag and flag not in words:
            words.append(flag)
        warn(f"\nabi: interrupted; what was finished is kept. Go on with:\n{shlex.join(words)}")
        raise typer.Exit(130) from None
