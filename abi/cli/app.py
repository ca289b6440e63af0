"""The application: every command is registered here, and errors become one line."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Annotated, Any

import typer

from ..files.versions import __version__
from ..installation import SHADOWED, package_folders, shadowed
from .benchmark import benchmark_command
from .check import check_command
from .compare import compare_command
from .doctor import doctor_command
from .ending import examples, exit_statuses, result_alone, warn
from .fit import fit_command
from .report import report_command
from .reproduce import reproduce_command
from .simulate import simulate_command
from .validate import validate_command


def _whole(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose result as JSON stands alone, and whose ``EOFError`` is an error.

    Typer takes one for Ctrl-D, and ends with 1.
    """

    @wraps(command)
    def run(*words: Any, **options: Any) -> None:
        try:
            with result_alone() if options.get("as_json") else nullcontext():
                command(*words, **options)
        except EOFError as error:
            raise RuntimeError(f"EOFError: {error}") from error

    return run


app = typer.Typer(
    name="abi",
    help="Adaptive Bayesian inference for simulators, and tests of the posteriors it gives.",
    epilog=exit_statuses(),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
_EXAMPLES: dict[Callable[..., None], str] = {
    fit_command: """
# a queue that comes with the package
abi fit --simulator simulators:MG1 --out queue
# your own functions, in mymodule.py
abi fit --simulator mymodule:simulate --prior mymodule:prior --observed x.csv --out mine
# continue after Ctrl-C: the same command with --resume
abi fit ... --out mine --resume
# 5,000 more calls for a run that has ended
abi fit --continue mine --num-simulations 5000
# stop once no mean is off by more than 0.2 sds; exit status 1 if the answer fails
abi fit --simulator simulators:MG1 --out queue --stop-when 0.2 --strict
# numbers for a program
abi fit --simulator simulators:MG1 --out queue --json""",
    simulate_command: """
# 100,000 simulations on 4 cores, none longer than a minute
abi simulate --simulator mymodule:simulate --prior mymodule:prior \
--num-simulations 100000 --workers 4 --timeout 60 --out store
# then fit from them
abi fit ... --simulations store --out mine""",
    check_command: """
# 600 more pairs for the verdict of a finished run
abi check runs/mine
# a saved posterior, which does not name its simulator; exit status 1 if it fails
abi check posterior.safetensors --simulator mymodule:simulate --prior mymodule:prior --strict""",
    compare_command: """
# two simulators in mymodule.py, one with a prior of its own
abi compare --model growing=mymodule:growing --model still=mymodule:still \
--prior growing=mymodule:prior --observed x.csv --out comparison.safetensors""",
    validate_command: """
# a fit, on the pairs behind its verdict
abi validate runs/mine --controls --out validation.json
# an sbi posterior in mymodule.py, on a store of abi simulate
abi validate --posterior mymodule:posterior --data store
# draws made before, with a plot of each test
abi validate --samples draws.npz --layout samples_first --plots pictures""",
    report_command: """
# one page from a finished run
abi report runs/mine
# the fit and its validation on one page
abi report runs/mine validation.json --out mine.html
# name simulator and prior if the run was started from Python objects
abi report runs/mine --simulator mymodule:simulate --prior mymodule:prior
# the verdict for a program
abi report runs/mine validation.json --json""",
    reproduce_command: """
# Table 1 of the ABI paper, tested, in minutes
abi reproduce intractable-prior --quick
# the queue in full, by three methods, stopping after an hour
abi reproduce mg1 --methods abi,snpe,snle --minutes 60 --out runs/full
# the distance from the exact posterior, for three random data sets
abi reproduce multimodal --methods abi --observations 1,2,3 --seeds 0""",
    benchmark_command: """
# Tables 3 and 4 of the CoLT paper in minutes, small dimensions
abi benchmark blind-prior --quick
# in full, on 4 cores
abi benchmark blind-prior --workers 4 --out runs/full
# one part
abi benchmark conformal --part covariance,weak""",
    doctor_command: """
# before you report a bug
abi doctor
# for a program
abi doctor --json > doctor.json""",
}
"""Every command, in the order of the help, and what to type: lines of what for, and of words."""
for _command, _examples in _EXAMPLES.items():
    _name = _command.__name__.removesuffix("_command")
    app.command(_name, epilog=examples(_examples))(_whole(_command))


def _say(message: Warning | str, *_where: Any, **_how: Any) -> None:
    """A warning without the place in the code that gave it."""
    warn(f"abi: {message}")


def main() -> None:
    """Run the command line; a user's mistake ends with one line and exit status 2."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _say
            app()
    except (ValueError, TypeError, NotImplementedError, OSError) as error:
        typer.secho(f"abi: {error}", err=True, fg=typer.colors.RED)
        sys.exit(2)
    except Exception:  # Python's own status for it is 1, which here is an answer
        traceback.print_exc()
        sys.exit(3)


def _print_version(asked: bool) -> None:
    """Version and paths: the import names are generic, and others ship packages of that name."""
    if not asked:
        return
    packages = package_folders()
    typer.echo(f"abi-toolkit {__version__}")
    for name, folder in packages.items():
        typer.echo(f"  {name}: {folder}")
    if shadowed(packages):
        warn(f"warning: {SHADOWED}")
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
