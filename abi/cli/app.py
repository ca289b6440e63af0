"""The application: every command is registered here, and errors become one line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .fit import fit_command
from .report.command import report_command
from .simulate import simulate_command
from .validate import validate_command

app = typer.Typer(
    name="abi",
    help="Adaptive Bayesian inference for simulators, and tests of the posteriors it gives.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("fit")(fit_command)
app.command("report")(report_command)
app.command("simulate")(simulate_command)
app.command("validate")(validate_command)


def main() -> None:
    """Run the command line; a user's mistake ends with one line and exit status 2."""
    try:
        app()
    except (ValueError, TypeError, NotImplementedError, FileExistsError) as error:
        typer.secho(f"abi: {error}", err=True, fg=typer.colors.RED)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.secho("abi: interrupted", err=True, fg=typer.colors.RED)
        sys.exit(130)


def _print_version(asked: bool) -> None:
    """Version and paths: the import names are generic, and others ship packages of that name."""
    if not asked:
        return
    import abi
    import simulators
    import validation

    typer.echo(f"abi-toolkit {abi.__version__}")
    parents = set()
    for package in (abi, simulators, validation):
        folder = Path(str(package.__file__)).parent
        parents.add(folder.parent)
        typer.echo(f"  {package.__name__}: {folder}")
    if len(parents) > 1:
        typer.secho(
            "warning: the packages do not share one parent folder; another distribution shadows "
            "one of them. Install abi-toolkit in a fresh environment.",
            err=True,
            fg=typer.colors.YELLOW,
        )
    raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and where the packages are.",
        ),
    ] = False,
) -> None:
    pass
