"""``abi doctor``: is this installation sound? Versions, paths, threads, GPU, disk."""

from __future__ import annotations

from typing import Any

import typer

from ..installation import examine, optional
from .ending import print_json
from .options import Json


def doctor_command(as_json: Json = False) -> None:
    """Look over the installation: versions, where the packages are, threads, GPU, free disk.

    Exit status 1 if something is wrong; each line that says so says what to do.
    """
    found = examine()
    if as_json:
        print_json(found)
    else:
        _print(found)
    raise typer.Exit(1 if found["problems"] else 0)


def _print(found: dict[str, Any]) -> None:
    threads, purposes = found["threads"], optional()
    typer.echo(f"abi-toolkit {found['abi-toolkit']}, Python {found['python']}, {found['platform']}")
    for name, folder in found["packages"].items():
        typer.echo(f"  {name:<14} {folder}")
    for name, number in found["versions"].items():
        typer.echo(f"  {name:<14} {number or 'not installed: ' + purposes.get(name, 'needed')}")
    typer.echo(
        f"threads: {threads['torch']} in torch, {threads['cores']} cores, "
        f"OMP_NUM_THREADS {threads['OMP_NUM_THREADS'] or 'not set'}"
    )
    typer.echo(f"GPU: {', '.join(found['gpus']) or 'none that torch can use'}")
    typer.echo(f"free disk here: {found['free_disk_gib']} GiB")
    for problem in found["problems"]:
        typer.secho(f"problem: {problem}", err=True, fg=typer.colors.RED)
    if not found["problems"]:
        typer.secho("all is well", fg=typer.colors.GREEN)
