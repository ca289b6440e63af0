"""``abi reproduce``: an experiment of the paper on ABI as a command."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from ..studies.reproduce.choice import EXPERIMENTS
from .ending import can_draw, resumable, write_study
from .options import Json, name_of


def reproduce_command(
    name: Annotated[str, name_of(EXPERIMENTS)],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for NAME.json, .md, pictures and cells.")
    ] = Path("runs/reproduce"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Minutes instead of hours: few calls, one seed.")
    ] = False,
    methods: Annotated[
        str | None,
        typer.Option(
            help="Only these methods, separated by commas: abi,abi_paper,...; all if omitted."
        ),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Seeds of the fits, separated by commas. [0,1,2; quick: 0]")
    ] = None,
    observations: Annotated[
        str, typer.Option(help="0: the paper's; 1 to 20: data simulated at draws of the prior.")
    ] = "0",
    budgets: Annotated[
        str | None,
        typer.Option(help="Simulator calls, separated by commas, instead of the paper's."),
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.0, help="Start no new fit after this many minutes.")
    ] = math.inf,
    progress: Annotated[bool, typer.Option(help="Print the result of each fit.")] = True,
    as_json: Json = False,
) -> None:
    """Fit the paper's models by ABI and its rivals, and compare with the exact posteriors.

    Every cell (observation, method, budget, seed) is kept with its draws when it is finished. After
    an interruption, run the same command again. A larger study reuses the cells of a smaller one.
    Cells of other versions of what their numbers depend on are worked again.
    """
    from ..studies.reproduce.results import markdown, summary
    from ..studies.reproduce.run import run_reproduction

    asked = quick, methods, budgets, observations, seeds, minutes
    with resumable():
        experiment, finished = run_reproduction(
            name,
            out / f"{name}_cells",
            *asked,
            say=lambda line: typer.echo(line, err=True) if progress else None,
        )
    values, text = summary(experiment, finished, quick), markdown(experiment, finished, quick)
    write_study(out / name, values, text, "pictures", as_json)
    if can_draw():
        from ..studies.reproduce.pictures.drawing import draw_all

        draw_all(experiment, finished, out)
