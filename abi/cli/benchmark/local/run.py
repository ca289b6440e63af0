"""``abi benchmark lc2st``: choose, work, write."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...ending import resumable
from .gains import GainStudy, gain_study
from .judges import JUDGES
from .parts import GainPart, LocalPart, parts
from .results import markdown, summary
from .study import LocalStudy, study


def run_lc2st(
    quick: bool, labels: list[str] | None, names: list[str] | None, *, out: Path, seed: int,
    workers: int, minutes: float | None, repetitions: int | None, num_seeds: int | None,
    progress: bool,
) -> tuple[dict[str, Any], str]:  # fmt: skip
    """Work the chosen parts; results as JSON has them, and as tables. Pictures go to ``out``."""
    by_label = {part.label: part for part in parts(quick)}
    chosen = [by_label[label] for label in _holding(by_label, labels, "part")]
    methods = _holding(JUDGES, names, "test")
    local = [
        replace(
            part,
            repetitions=part.repetitions if repetitions is None else repetitions,
            num_seeds=part.num_seeds if num_seeds is None else num_seeds,
        )
        for part in chosen
        if isinstance(part, LocalPart)
    ]
    folder = out / "lc2st_cells"
    began = time.monotonic()
    with resumable():
        studies = study(
            local, methods, seed=seed, workers=workers, minutes=minutes, folder=folder,
            progress=progress,
        )  # fmt: skip
        gains = None
        for part in chosen:
            if isinstance(part, GainPart):
                in_time = minutes is None or time.monotonic() - began < 60.0 * minutes
                gains = gain_study(part, seed=seed, begin=in_time, folder=folder, progress=progress)
    _pictures(studies, gains, out)
    values = summary(studies, gains, quick, seed)
    return values, markdown(values)


def _holding(known: Iterable[str], words: list[str] | None, option: str) -> list[str]:
    """The names that hold one of the words; all where there is none."""
    kept = [name for name in known if not words or any(word in name for word in words)]
    if not kept:
        raise ValueError(f"`--{option}` must be in one of these names: {'; '.join(known)}.")
    return kept


def _pictures(studies: list[LocalStudy], gains: GainStudy | None, out: Path) -> None:
    """Draw, where matplotlib is installed; it is an extra."""
    try:
        from .drawing import draw_gain_pairs, draw_gains, draw_studies
    except ImportError:
        return
    begun = [one for one in studies if one.cells]
    if begun:
        draw_studies(begun, out / "lc2st.png")
    if gains is not None:
        draw_gains(gains, out / "lc2st_jansen_rit.png")
        draw_gain_pairs(gains, out / "lc2st_jansen_rit_pairs.png")
