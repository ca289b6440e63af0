"""Cells of the study: many small verdicts on exact conditionals, or one fit of a model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from simulators.files.records import read_record, record_path, write_record

from ..experiment import Place

_KIND, _VERSION = "verdict_cell", 1

Asked = Mapping[str, Any]
"""What a cell is asked, in JSON's types; its ``part`` says how it is worked."""
Worked = dict[str, Any]


def stored(asked: Asked, folder: Path) -> Worked | None:
    """The finished cell; None where it is to be worked."""
    return read_record(_path(asked, folder), _KIND, _VERSION)


def work(asked: Asked, how: Callable[[Asked], Worked], folder: Path) -> Worked:
    """Work a cell and keep it; one that raises says so and is worked again next time."""
    start = time.process_time()
    try:
        values = how(asked)
    except Exception as raised:  # whatever one raises, the others go on
        return {**asked, "error": f"{type(raised).__name__}: {' '.join(str(raised).split())}"}
    whole = {**asked, **values, "seconds": round(time.process_time() - start, 2)}
    write_record(_path(asked, folder), _KIND, _VERSION, whole)
    return whole


def cells(
    wanted: Sequence[Asked],
    how: Callable[[Asked], Worked],
    place: Place,
) -> list[Worked]:
    """All that are kept, and as many more as the time allows, in ``place.workers`` processes."""
    from joblib import Parallel, delayed

    kept = [stored(asked, place.cells) for asked in wanted]
    done = [cell for cell in kept if cell is not None]
    waiting = [asked for asked, cell in zip(wanted, kept, strict=True) if cell is None]
    place.cells.mkdir(parents=True, exist_ok=True)
    task, n = delayed(work), place.workers
    calls = (task(asked, how, place.cells) for asked in waiting if place.seconds_left > 0.0)
    for cell in Parallel(n_jobs=n, return_as="generator", pre_dispatch=n)(calls):
        place.say(f"{len(done) + 1}/{len(wanted)}  {_line(cell)}")
        done.append(cell)
    return [cell for cell in done if "error" not in cell]


def _path(asked: Asked, folder: Path) -> Path:
    words = "--".join(str(value) for value in asked.values())
    return record_path(folder, words, json.dumps(dict(asked), sort_keys=True))


def _line(cell: Worked) -> str:
    """A cell for the terminal."""
    shown = {key: value for key, value in cell.items() if isinstance(value, str | int | float)}
    return "  ".join(f"{key} {value}" for key, value in shown.items())
