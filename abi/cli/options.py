"""Options that several commands have, each said once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and nothing else.")]
"""The option that every command has; progress goes to standard error."""

OwnPrior = Annotated[
    str | None,
    typer.Option(help="module:object, such as mymodule:prior; the simulator's own when omitted."),
]
InPlace = Annotated[
    str | None, typer.Option(help="module:object, in place of the one the run names.")
]
"""A simulator or a prior."""


def _number_or_address(given: str | int) -> int | str:
    """A number of processes, or where a dask scheduler listens; a typer error where it is neither.

    >>> _number_or_address("4"), _number_or_address("tcp://10.0.0.1:8786")
    (4, 'tcp://10.0.0.1:8786')
    """
    text = str(given)  # the default is a number
    if "://" in text:
        return text
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise typer.BadParameter(
        f"{text!r} is neither a whole number of at least 1 nor an address such as tcp://host:8786."
    )


Workers = Annotated[
    Any,
    typer.Option(
        parser=_number_or_address,
        metavar="N|ADDRESS",
        help="Processes that simulate at the same time, or a dask scheduler: tcp://host:8786.",
    ),
]
Timeout = Annotated[
    float | None, typer.Option(help="Seconds after which a simulation counts as failed.")
]
"""With the one above, of the commands that simulate."""
Progress = Annotated[bool, typer.Option(help="Show live progress.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit status 1 if the verdict is that the fit fails.")
]
"""The option of the commands that end with a verdict."""


def name_of(known: Mapping[str, str]) -> Any:
    """The argument that names one of several studies: their names -> what each shows."""

    def begun(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    shown = "; ".join(f"{name}: {what}" for name, what in known.items())
    return typer.Argument(help=shown, autocompletion=begun)
