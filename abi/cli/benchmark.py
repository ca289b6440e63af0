"""``abi benchmark``: a table or a figure of the validation papers as a command."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from ..studies.benchmark.choice import EXPERIMENTS, experiment_of
from .ending import can_draw, resumable, write_study
from .options import Json, Progress, name_of

_OF_FITS = {
    "verdict": "`--part` and `--repetitions`",
    "tasks": "`--part`, `--test` (its methods) and `--repetitions` (its observations)",
}
"""Studies of fits in place of tests -> the options that they take."""


def benchmark_command(
    name: Annotated[str, name_of({name: what for name, (_, what) in EXPERIMENTS.items()})],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for NAME.json, .md, .png and the cells.")
    ] = Path("runs/benchmark"),
    quick: Annotated[
        bool,
        typer.Option("--quick/--full", help="Minutes instead of hours: few runs, small sizes."),
    ] = False,
    part: Annotated[
        list[str] | None,
        typer.Option(
            help="Only the part of this name, or all whose name contains it; repeat for several."
        ),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(
            help="Only the test (for tasks: method) of this name, or all whose name contains it; "
            "repeat for several."
        ),
    ] = None,
    strength: Annotated[
        list[float] | None,
        typer.Option(min=0, help="Only these strengths; repeat for several. Not for lc2st."),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(help="Folder with CIFAR-10's binary files and Inception-v3's weights."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    workers: Annotated[int, typer.Option(min=1, help="Processes that work at the same time.")] = 1,
    repetitions: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Batches for each seed (for tasks: observations), instead of the setting's own.",
        ),
    ] = None,
    num_seeds: Annotated[
        int | None, typer.Option(min=1, help="Number of seeds, instead of the setting's own.")
    ] = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0, help="Start nothing new after this many minutes; 0: only make the tables."
        ),
    ] = None,
    num_train: Annotated[
        list[int] | None,
        typer.Option(
            help="For lc2st: only estimates trained on this many pairs; repeat for several."
        ),
    ] = None,
    progress: Progress = True,
    as_json: Json = False,
) -> None:
    """Measure how often tests reject posteriors that are wrong, and compare with the papers.

    Every cell (test, strength, seed) is kept when it is finished. After an interruption, run the
    same command again. A larger setting reuses the cells of a smaller one.
    """
    from ..studies.benchmark.experiment import Place
    from ..studies.benchmark.run import run_tests

    _refuse_unread(name, test, strength, num_train, num_seeds)
    end = None if minutes is None else time.monotonic() + 60.0 * minutes
    place = Place(out / f"{name}_cells", seed, workers, end, progress, images)
    run = experiment_of(name)
    size: dict[str, Any] = {"repetitions": repetitions}
    with resumable():
        if name == "verdict":
            values, text = run(quick, part, place, **size)
        elif name == "tasks":
            values, text = run(quick, part, test, place, **size)
        else:
            words = quick, part, test, place, out if can_draw() else None
            size["num_seeds"] = num_seeds
            if name == "lc2st":
                values, text = run(*words, num_trains=num_train, **size)
            else:
                size |= {"strengths": strength, "minutes": minutes}
                values, text = run_tests(name, *words, **size, say=partial(typer.echo, err=True))
    write_study(out / name, values, text, "" if name in _OF_FITS else ".png", as_json)


def _refuse_unread(
    name: str,
    test: list[str] | None,
    strength: list[float] | None,
    num_train: list[int] | None,
    num_seeds: int | None,
) -> None:
    """Refuse options that the study of this name does not have."""
    if name == "lc2st" and strength:
        raise ValueError("`--strength` is not an option of lc2st; choose with `--num-train`.")
    if name != "lc2st" and num_train:
        raise ValueError(f"`--num-train` is an option of lc2st, not of {name}.")
    if name in _OF_FITS and (strength or num_seeds or (test and name == "verdict")):
        raise ValueError(f"`{name}` takes {_OF_FITS[name]}; leave others out.")
