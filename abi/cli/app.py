"""The application: every command is registered here, and errors become one line."""

from __future__ import annotations

import sys

import typer

from .simulate import simulate_command

app = typer.Typer(
    name="abi",
    help="Adaptive Bayesian inference for simulators, and tests of the posteriors it gives.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("simulate")(simulate_command)


@app.callback()
def commands() -> None:
    """Adaptive Bayesian inference for simulators, and tests of the posteriors it gives."""


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
