"""Run an experiment on tests as the words of a command ask for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .choice import IMAGES, at_strengths, chosen, experiment_of, possible, resized
from .experiment import Place
from .results import markdown, run_part, summary


def run_tests(
    name: str,
    quick: bool,
    labels: list[str] | None,
    names: list[str] | None,
    place: Place,
    pictures: Path | None,
    *,
    strengths: list[float] | None,
    repetitions: int | None,
    num_seeds: int | None,
    minutes: float | None,
    say: Callable[[str], None],
) -> tuple[dict[str, Any], str]:
    """Work the chosen parts; results as JSON has them, and as tables. A picture goes to a folder.

    Args:
        name: of the experiment.
        quick: few runs, small sizes.
        labels: of the parts; all when omitted.
        names: of the tests; all when omitted.
        place: where cells are kept, and how they are worked.
        pictures: the folder; None for no picture.
        strengths: of the failures; all when omitted.
        repetitions: batches a seed; the part's own number when omitted.
        num_seeds: the part's own number when omitted.
        minutes: how long the place has, for the error.
        say: takes a line on parts that cannot be run.

    Raises:
        ValueError: if a word stands for nothing, or no cell is finished.
    """
    experiment = experiment_of(name)(quick)
    asked = at_strengths(chosen(experiment, labels, names), strengths)
    parts = [resized(part, repetitions, num_seeds) for part in possible(asked, place.images)]
    if len(parts) < len(asked):
        say(f"images left out: give --images, {IMAGES}")
    worked = [run_part(part, place) for part in parts]
    results = [(part, study) for part, study in worked if study.cells]
    if not results:
        raise ValueError(f"`--minutes`: {minutes:g} left time for nothing, and no cell is kept.")
    values = summary(name, experiment, results, quick, place.seed)
    if pictures is not None:
        from .drawing import draw

        draw(results, experiment.title, pictures / f"{name}.png")
    return values, markdown(values)
