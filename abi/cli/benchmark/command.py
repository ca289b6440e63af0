"""``abi benchmark``: a table or a figure of the validation papers as a command."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..ending import Json, can_draw, print_json, resumable
from .choice import named

if TYPE_CHECKING:
    from .experiment import Experiment, Part

EXPERIMENTS: Mapping[str, tuple[str, str, str]] = {
    "nptbench": (
        "nptbench",
        "power_curves",
        "power over the strength of six failures (CoLT, Figures 3 and 8 to 13)",
    ),
    "blind-prior": (
        "blind_prior",
        "blind_prior",
        "the prior in the place of the posterior (CoLT, Tables 3 and 4)",
    ),
    "tree": ("tree", "tree_curves", "draws a little beside a thin tree (CoLT, Figures 1 and 6)"),
    "diffusion": (
        "diffusion",
        "diffusion_steps",
        "a diffusion model that stops too early (CoLT, Figures 4 and 7)",
    ),
    "conformal": (
        "conformal",
        "conformal",
        "trained, weak and moved classifiers (conformal C2ST, Figures 1 to 3 and 5 to 11)",
    ),
    "lc2st": (
        "local.run",
        "run_lc2st",
        "local tests of trained flows beside the oracle (L-C2ST, Figures 1 to 6, Tables 1 and 3)",
    ),
}
"""Name -> module, its function of ``quick``, what the experiment shows and the paper's place."""


_IMAGES = (
    "a folder with CIFAR-10's data_batch_*.bin (archive cifar-10-binary.tar.gz) and torchvision's "
    "inception_v3_google-*.pth"
)


def _names(incomplete: str) -> list[str]:
    return [name for name in EXPERIMENTS if name.startswith(incomplete)]


def benchmark_command(
    name: Annotated[
        str,
        typer.Argument(
            help="; ".join(f"{name}: {what}" for name, (_, _, what) in EXPERIMENTS.items()),
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
            help="Only the test of this name, or those whose name holds it; repeat for several."
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
        int | None, typer.Option(min=1, help="Batches a seed, in place of the setting's own.")
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
    end = None if minutes is None else time.monotonic() + 60.0 * minutes
    if name == "lc2st":
        if strength:
            raise ValueError("`--strength` is not an option of lc2st; choose with `--num-train`.")
        from .local.run import run_lc2st

        values, text = run_lc2st(
            quick, part, test, out=out, seed=seed, workers=workers, end=end,
            num_trains=num_train, repetitions=repetitions, num_seeds=num_seeds, progress=progress,
        )  # fmt: skip
        _write(values, text, out / name, as_json)
        return
    if num_train:
        raise ValueError(f"`--num-train` is an option of lc2st, not of {name}.")
    experiment = _load(name)(quick)
    parts = _at(_chosen(experiment, part, test), strength)
    parts = [_resized(one, repetitions, num_seeds) for one in _possible(parts, images)]
    from .experiment import Place
    from .results import markdown, run_part, summary

    place = Place(out / f"{name}_cells", images, progress)
    with resumable():
        worked = [run_part(one, place, seed=seed, workers=workers, end=end) for one in parts]
    results = [(one, study) for one, study in worked if study.cells]
    if not results:
        raise ValueError(f"`--minutes`: {minutes:g} left time for nothing, and no cell is kept.")
    values = summary(name, experiment, results, quick, seed)
    if can_draw():
        from .drawing import draw

        draw(results, experiment.title, out / f"{name}.png")
    _write(values, markdown(values), out / name, as_json)


def _load(name: str) -> Callable[[bool], Experiment]:
    """The function that sets the experiment up; its imports are those of `validation`."""
    if name not in EXPERIMENTS:
        raise ValueError(f"`NAME` must be one of {', '.join(EXPERIMENTS)}; got {name!r}.")
    module, function, _ = EXPERIMENTS[name]
    found: Callable[[bool], Experiment] = getattr(
        import_module(f".{module}", __package__), function
    )
    return found


def _chosen(
    experiment: Experiment, labels: list[str] | None, names: list[str] | None
) -> list[Part]:
    """The parts with one of the labels, each with the tests that have one of the names."""
    wanted = named((part.label for part in experiment.parts), labels, "--part")
    parts = [part for part in experiment.parts if part.label in wanted]
    tests = named((name for part in parts for name in part.tests), names, "--test")
    kept = [
        replace(part, tests={name: test for name, test in part.tests.items() if name in tests})
        for part in parts
    ]
    return [part for part in kept if part.tests]


def _at(parts: list[Part], strengths: list[float] | None) -> list[Part]:
    """The parts that have one of the strengths, with those alone; all where none is named."""
    if not strengths:
        return parts
    kept = [
        replace(part, strengths=tuple(at for at in part.strengths if at in strengths))
        for part in parts
    ]
    if not any(part.strengths for part in kept):
        known = sorted({at for part in parts for at in part.strengths})
        raise ValueError(f"`--strength` must be among {', '.join(f'{at:g}' for at in known)}.")
    return [part for part in kept if part.strengths]


def _possible(parts: list[Part], images: Path | None) -> list[Part]:
    """The parts that can be run; those that need images are left out where none are given."""
    without = [part for part in parts if images is not None or not part.needs_images]
    if not without:
        raise ValueError(f"`--images` must be given for this part: {_IMAGES}.")
    if len(without) < len(parts):
        typer.secho(f"images left out: give --images, {_IMAGES}", err=True)
    return without


def _resized(part: Part, repetitions: int | None, num_seeds: int | None) -> Part:
    return replace(
        part,
        repetitions=part.repetitions if repetitions is None else repetitions,
        num_seeds=part.num_seeds if num_seeds is None else num_seeds,
    )


def _write(values: dict[str, Any], text: str, path: Path, as_json: bool) -> None:
    """Keep the results as NAME.json and NAME.md, and print one of them."""
    path.with_suffix(".json").write_text(json.dumps(values, indent=1) + "\n")
    path.with_suffix(".md").write_text(text)
    if as_json:
        print_json(values)
    else:
        typer.echo(text)
        typer.echo(f"results: {path}.json, .md and .png")
