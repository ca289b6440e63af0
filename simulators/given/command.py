"""A program as a simulator: one run of a command a theta, and numbers read from what it writes."""

from __future__ import annotations

import shlex
import string
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from .function import Form

_SHELL = {"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1", "&>"}
_OWN = ("seed", "output")
_SEEDS = 1 << 31  # what programs take that keep their seed in a C int


@dataclass(frozen=True)
class Command:
    """A command line with a place for each parameter; made by :func:`from_command`.

    It is a function of its parameters by name and of a seed, and runs the program once a call.
    """

    command: str
    reader: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        _check_words(self.command)

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The places of the command, in the order in which they first stand there."""
        found = dict.fromkeys(name for name, _ in _places(self.command))
        return tuple(name for name in found if name not in _OWN)

    @property
    def form(self) -> Form:
        """How it is called: one theta, a number for each place."""
        return Form(takes="numbers", names=self.parameter_names, numpy=True)

    def __call__(self, *, seed: int = 0, **parameters: float) -> Any:
        """Run the command and read what it wrote.

        Raises:
            RuntimeError: if it ends with an exit status other than 0, with the last line it said.
            ValueError: if what it wrote does not consist of numbers.
        """
        values = {"seed": seed % _SEEDS, **parameters}
        suffix = next((spec for name, spec in _places(self.command) if name == "output"), None)
        if suffix is None:
            text = _run(self._words(values))
            return _numbers(text, "its output") if self.reader is None else self.reader(text)
        with TemporaryDirectory() as folder:
            path = Path(folder) / f"output{suffix}"
            _run(self._words(values | {"output": str(path)}))
            if not path.is_file():
                raise RuntimeError("the command wrote no file {output}")
            return _read(path) if self.reader is None else self.reader(path)

    def _words(self, values: dict[str, Any]) -> list[str]:
        """The words of the command line; each was one before its values were put in."""
        return [_filled(word, values) for word in shlex.split(self.command)]


def from_command(command: str, reader: Callable[[Any], Any] | None = None) -> Command:
    """Make a simulator of a program: each simulation is one run of a command.

    Every ``{name}`` in the command is replaced by the value of the parameter of that name, in full
    precision, or in a format you give (``{beta:.3f}``). The command is split into words as a shell
    does it, but no shell runs it; where you need a pipe, start one yourself: ``sh -c 'model {beta}
    | tail -1'``. The program runs in the current folder and reads no standard input.

    Args:
        command: the command line. ``{seed}`` becomes a whole number below 2^31, another in each
            run; ``{output}`` the path of a file that the program writes and that is removed after
            reading (``{output:.csv}`` ends in .csv). Write ``{{`` for a brace.
        reader: function that makes values of what the program wrote: of the path of ``{output}``,
            or, without one, of the text on standard output. When omitted, numbers are read from it,
            separated by blanks, commas or line ends; a file that ends in .npy is read as an array.

    Returns:
        A simulator for :func:`simulators.simulate`, :func:`from_function` and ``abi.fit``; their
        ``timeout`` ends a run that takes too long. A run with an exit status other than 0 failed,
        for the reason in its last line on standard error.

    Raises:
        TypeError: if ``command`` is no text, or ``reader`` no function.
        ValueError: if the command cannot be split, has no place for a parameter, has a place
            without a name, or needs a shell.

    >>> from_command("echo {beta} {seed}")(beta=0.5, seed=7)
    array([0.5, 7. ])
    """
    if not isinstance(command, str):
        raise TypeError(
            "`command` must be one text, as you would type it; got "
            f"{type(command).__name__}. Of words, make one: shlex.join(words)."
        )
    if reader is not None and not callable(reader):
        raise TypeError(
            f"`reader` must be a function of the text or the path; got {type(reader).__name__}. "
            "A prior goes to abi.fit(prior, simulator, x_o)."
        )
    return Command(command, reader)


def _check_words(command: str) -> None:
    try:
        words, places = shlex.split(command), _places(command)
    except ValueError as error:
        raise ValueError(f"`command` {command!r:.80} cannot be split: {error}.") from error
    shell = next((word for word in words if word in _SHELL), None)
    if shell is not None:
        raise ValueError(
            f"`command` runs without a shell, which {shell!r} needs; write "
            f"sh -c {shlex.quote(command)}."
        )
    for name, _ in places:
        if not name.isidentifier():
            raise ValueError(
                f"`command` must name what stands in its places, such as {{beta}}; got {{{name}}}."
            )
    if not words or not {name for name, _ in places} - set(_OWN):
        raise ValueError(
            f"`command` must have a place for each parameter, such as --beta {{beta}}; got "
            f"{command!r:.80}."
        )


def _places(command: str) -> list[tuple[str, str]]:
    """Names and formats of the places."""
    parsed = string.Formatter().parse(command)
    return [(name, spec or "") for _, name, spec, _ in parsed if name is not None]


def _filled(word: str, values: dict[str, Any]) -> str:
    """A word with its values; a number without a format in full precision."""
    parts = []
    for text, name, spec, _ in string.Formatter().parse(word):
        parts.append(text)
        if name == "output":
            parts.append(values[name])
        elif name is not None:
            value = values[name] if name == "seed" else float(values[name])
            parts.append(format(value, spec) if spec else repr(value))
    return "".join(parts)


def _run(words: list[str]) -> str:
    """Run a program to its end and return what it wrote to standard output."""
    done = subprocess.run(  # noqa: S603 - no shell, and values are numbers in words of their own
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        raise RuntimeError(
            f"exit status {done.returncode} of {words[0]}{': ' + said[-1] if said else ''}"
        )
    return done.stdout


def _read(path: Path) -> Any:
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    return _numbers(path.read_text(), "the file {output}")


def _numbers(text: str, where: str) -> Any:
    """The numbers of a text, between blanks, commas and line ends."""
    words = text.replace(",", " ").split()
    try:
        values = np.array([float(word) for word in words])
    except ValueError as error:
        raise ValueError(
            f"{where} does not consist of numbers ({error}); give a `reader`"
        ) from error
    if not words:
        raise ValueError(f"{where} is empty; does the program write its numbers there?")
    return values
