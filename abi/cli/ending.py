"""How a command ends: exit status, JSON on request, and what to type after Ctrl-C."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stdout
from contextvars import ContextVar
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

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
_OUTPUT, _ERRORS = 1, 2  # descriptors

_results: ContextVar[IO[str] | None] = ContextVar("results", default=None)
"""Where results for programs go while standard output is kept for them."""


def print_json(values: Mapping[str, Any]) -> None:
    """Print a result for programs."""
    typer.echo(json.dumps(values, indent=1), file=_results.get())


@contextmanager
def result_alone() -> Iterator[None]:
    """Keep standard output for :func:`print_json`: what simulators print goes to standard error.

    So does what programs and worker processes that they run in print, which begin in here.
    """
    with ExitStack() as undo:
        results = undo.enter_context(_output_kept())
        undo.enter_context(redirect_stdout(sys.stderr))
        token = _results.set(results)
        undo.callback(_results.reset, token)
        yield


@contextmanager
def _output_kept() -> Iterator[IO[str]]:
    """Standard output as it was, while the process's own descriptor of it leads to the errors."""
    before = sys.stdout
    before.flush()
    try:
        is_own = before.fileno() == _OUTPUT
    except (OSError, ValueError):  # a program that calls the command holds another
        is_own = False
    if not is_own:
        yield before
        return
    kept = os.dup(_OUTPUT)
    os.dup2(_ERRORS, _OUTPUT)
    try:
        with open(kept, "w", encoding=before.encoding, closefd=False) as results:
            yield results
    finally:
        os.dup2(kept, _OUTPUT)
        os.close(kept)


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
