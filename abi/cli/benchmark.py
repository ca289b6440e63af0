"""``abi benchmark``: a table or a figure of the validation papers as a command."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ..studies.benchmark.choice import (
    EXPERIMENTS,
    IMAGES,
    at_strengths,
    chosen,
    experiment_of,
    possible,
    resized,
)
from .ending import Json, can_draw, resumable, write_study

_OF_FITS = {
    "verdict": "`--part` and `--repetitions`",
    "tasks": "`--part`, `--test` (its methods) and `--repetitions` (its observations)",
}
"""Studies of fits in place of tests -> the options that they take."""


def _names(incomplete: str) -> list[str]:
    return [name for name in EXPERIMENTS if name.startswith(incomplete)]


def benchmark_command(
    name: Annotated[
        str,
        typer.Argument(
            help="; ".join(f"{name}: {what}" for name, (_, what) in EXPERIMENTS.items()),
            autocompletion=_names,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for NAME.json, .md, .png and the cells.")
    ] = Path("runs/benchmark"),
    quick: Annotated[
        bool,
        typer.Option("--quick/--full", help="Minutes in place of hours: few runs, small sizes."),
    ] = False,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="Only the part of this label, or those whose label holds it; repeat for several."
        ),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(
            help="Only the test (of tasks: the method) of this name, or those whose name holds it; "
            "repeat for several."
        ),
    ] = None,
    strength: Annotated[
        list[float] | None,
        typer.Option(min=0, help="Only these strengths; repeat for several. Not of lc2st."),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(help="Folder with CIFAR-10's binary files and Inception-v3's weights."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of everything random.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    repetitions: Annotated[
        int | None,
        typer.Option(
            min=1, help="Batches a seed (of tasks: observations), in place of the setting's own."
        ),
    ] = None,
    num_seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds, in place of the setting's own.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(min=0, help="Begin nothing after so many; 0: tables of what there is."),
    ] = None,
    num_train: Annotated[
        list[int] | None,
        typer.Option(help="Of lc2st: only estimates on so many pairs; repeat for several."),
    ] = None,
    progress: Annotated[bool, typer.Option(help="Show live progress.")] = True,
    as_json: Json = False,
) -> None:
    """Measure how often tests reject posteriors that are wrong, and compare with the papers.

    Every cell (test, strength, seed) is kept as it is finished; the same words go on after an
    interruption, and a larger setting takes up what a smaller one has in common with it.
    """
    from ..studies.benchmark.experiment import Place

    end = None if minutes is None else time.monotonic() + 60.0 * minutes
    place = Place(out / f"{name}_cells", seed, workers, end, progress, images)
    if name == "lc2st":
        if strength:
            raise ValueError("`--strength` is not an option of lc2st; choose with `--num-train`.")
        from ..studies.benchmark.local.run import run_lc2st

        with resumable():
            values, text = run_lc2st(
                quick, part, test, place, out if can_draw() else None,
                num_trains=num_train, repetitions=repetitions, num_seeds=num_seeds,
            )  # fmt: skip
        write_study(out / name, values, text, ".png", as_json)
        return
    if num_train:
        raise ValueError(f"`--num-train` is an option of lc2st, not of {name}.")
    if name in _OF_FITS:
        if strength or num_seeds or (test and name == "verdict"):
            raise ValueError(f"`{name}` takes {_OF_FITS[name]}; leave others out.")
        words = (quick, part, place) if name == "verdict" else (quick, part, test, place)
        with resumable():
            values, text = experiment_of(name)(*words, repetitions=repetitions)
        write_study(out / name, values, text, "", as_json)
        return
    experiment = experiment_of(name)(quick)
    asked = at_strengths(chosen(experiment, part, test), strength)
    parts = [resized(one, repetitions, num_seeds) for one in possible(asked, images)]
    if len(parts) < len(asked):
        typer.secho(f"images left out: give --images, {IMAGES}", err=True)
    from ..studies.benchmark.results import markdown, run_part, summary

    with resumable():
        worked = [run_part(one, place) for one in parts]
    results = [(one, study) for one, study in worked if study.cells]
    if not results:
        raise ValueError(f"`--minutes`: {minutes:g} left time for nothing, and no cell is kept.")
    values = summary(name, experiment, results, quick, seed)
    if can_draw():
        from ..studies.benchmark.drawing import draw

        draw(results, experiment.title, out / f"{name}.png")
    write_study(out / name, values, markdown(values), ".png", as_json)
