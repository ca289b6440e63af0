"""``abi reproduce``: an experiment of the paper on ABI as a command."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .ending import Json, can_draw, print_json, resumable

if TYPE_CHECKING:
    from ..studies.reproduce.cells import Cell
    from ..studies.reproduce.experiment import Experiment

EXPERIMENTS = {
    "gaussian": "a Gaussian with a known answer, nine rounds (Appendix C.1)",
    "multimodal": "four modes from four points (Section 4.1, Table 2)",
    "mg1": "a queue (Section 4.2)",
    "cosine": "a wave in noise (Section 4.3)",
    "lotka-volterra": "predators and prey, one event at a time (Section 4.4)",
    "lynx-hare": "real counts of predators and prey (Carpenter 2018)",
    "intractable-prior": "which methods can do without a prior density (Table 1)",
}
"""Name -> what it shows, and the paper's place."""
_QUICK_SAMPLES, _SAMPLES = 1_000, 2_000
_SEEDS = (0, 1, 2)


def _names(incomplete: str) -> list[str]:
    return [name for name in EXPERIMENTS if name.startswith(incomplete)]


def reproduce_command(
    name: Annotated[
        str,
        typer.Argument(
            help="; ".join(f"{name}: {what}" for name, what in EXPERIMENTS.items()),
            autocompletion=_names,
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for NAME.json, .md, pictures and cells.")
    ] = Path("runs/reproduce"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Minutes in place of hours: few calls, one seed.")
    ] = False,
    methods: Annotated[
        str | None,
        typer.Option(help="Only these, with commas: abi,abi_paper,...; all if omitted."),
    ] = None,
    seeds: Annotated[
        str | None, typer.Option(help="Seeds of the fits, with commas. [0,1,2; quick: 0]")
    ] = None,
    observations: Annotated[
        str, typer.Option(help="0: the paper's; 1 to 20: data at draws of the prior, by seed.")
    ] = "0",
    budgets: Annotated[
        str | None, typer.Option(help="Simulator calls, with commas, in place of the paper's.")
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.0, help="Begin no further fit after so many.")
    ] = math.inf,
    progress: Annotated[bool, typer.Option(help="Say what each fit came to.")] = True,
    as_json: Json = False,
) -> None:
    """Fit the paper's models by ABI and its rivals, and compare with the exact posteriors.

    Every cell (observation, method, budget, seed) is kept with its draws as it is finished; the
    same words go on after an interruption, and a larger study takes up what a smaller one has in
    common with it. Another version of what the numbers depend on makes another cell.
    """
    experiment = _experiment(name, out, quick)
    problem = experiment.problem
    wanted = _chosen(methods, list(experiment.methods))
    from ..studies.reproduce.study import planned

    cells = planned(
        [problem.name],
        lambda model: wanted,
        lambda model: (
            _numbers(budgets, "--budgets", 1) or [problem.quick_budget if quick else problem.budget]
        ),
        _numbers(observations, "--observations", 0, 20),
        _numbers(seeds, "--seeds", 0) or list(_SEEDS[:1] if quick else _SEEDS),
    )
    with resumable():
        finished = experiment.run(
            cells, minutes, lambda line: typer.echo(line, err=True) if progress else None
        )
    if not finished:  # and nothing that was written before is written over
        raise ValueError(f"`--minutes`: {minutes:g} left time for nothing, and no cell is kept.")
    values = _write(experiment, finished, out, quick)
    if as_json:
        print_json(values)
    else:
        typer.echo((out / f"{name}.md").read_text())
        typer.echo(f"results: {out / name}.json, .md and pictures")


def _experiment(name: str, out: Path, quick: bool) -> Experiment:
    from ..studies.reproduce.cells import CellFolder
    from ..studies.reproduce.experiment import Experiment, context
    from ..studies.reproduce.reproductions import reproduction

    problem = reproduction(name)
    num_samples = _QUICK_SAMPLES if quick else _SAMPLES
    return Experiment(problem, CellFolder(out / f"{name}_cells", context(num_samples)), num_samples)


def _write(experiment: Experiment, cells: list[Cell], out: Path, quick: bool) -> dict[str, Any]:
    """NAME.json, NAME.md and the pictures."""
    from ..studies.reproduce.results import markdown, summary

    name = experiment.problem.name
    values = summary(experiment, cells, quick)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(values, indent=1) + "\n")
    (out / f"{name}.md").write_text(markdown(experiment, cells, quick))
    if can_draw():
        from ..studies.reproduce.pictures.drawing import draw_all

        draw_all(experiment, cells, out)
    return values


def _chosen(words: str | None, known: list[str]) -> list[str]:
    """The methods asked for, by name."""
    if words is None:
        return known
    asked = [word.strip() for word in words.split(",") if word.strip()]
    wrong = [word for word in asked if word not in known]
    if wrong or not asked:
        raise ValueError(
            f"`--methods` must be among {', '.join(known)}; got {(wrong or [words])[0]!r}."
        )
    return asked


def _numbers(words: str | None, option: str, least: int, most: float = math.inf) -> list[int]:
    """Whole numbers with commas between; none where the option was not given."""
    if words is None:
        return []
    try:
        found = [int(word) for word in words.split(",")]
    except ValueError:
        raise ValueError(
            f"`{option}` must be whole numbers with commas between; got {words!r}."
        ) from None
    if any(not least <= number <= most for number in found):
        rule = f"at least {least}" if most == math.inf else f"from {least} to {most}"
        raise ValueError(f"`{option}` must be {rule}; got {words!r}.")
    return list(dict.fromkeys(found))
