"""``abi reproduce``: an experiment of the paper on ABI as a command."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from .ending import Json, can_draw, resumable, write_study

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
    from ..studies.engine.cells import CellFolder
    from ..studies.engine.study import planned
    from ..studies.reproduce.experiment import Experiment, context
    from ..studies.reproduce.reproductions import reproduction

    problem = reproduction(name)
    num_samples = _QUICK_SAMPLES if quick else _SAMPLES
    folder = CellFolder(out / f"{name}_cells", context(num_samples))
    experiment = Experiment(problem, folder, num_samples)
    wanted = _chosen(methods, list(experiment.methods))
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
    from ..studies.reproduce.results import markdown, summary

    values, text = summary(experiment, finished, quick), markdown(experiment, finished, quick)
    write_study(out / name, values, text, "pictures", as_json)
    if can_draw():
        from ..studies.reproduce.pictures.drawing import draw_all

        draw_all(experiment, finished, out)


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
