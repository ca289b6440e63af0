"""``abi benchmark lc2st``: choose, work, write."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ..choice import named, resized
from ..experiment import Place
from .gains import gain_study
from .judges import JUDGES, PAPER_TESTS
from .one_class import OneClassPart, one_class_study
from .parts import AgreementPart, GainPart, LocalPart, parts
from .results import LocalResults, markdown, summary
from .study import study


def run_lc2st(
    quick: bool, labels: list[str] | None, names: list[str] | None, place: Place,
    pictures: Path | None, *, num_trains: list[int] | None, repetitions: int | None,
    num_seeds: int | None,
) -> tuple[dict[str, Any], str]:  # fmt: skip
    """Work the chosen parts; results as JSON has them, and as tables. Pictures go to a folder."""
    by_label = {part.label: part for part in parts(quick)}
    chosen = [by_label[label] for label in named(by_label, labels, "--part")]
    methods = named(JUDGES, names, "--test")
    local = [_trained(part, num_trains) for part in chosen if isinstance(part, LocalPart)]
    compared = [part for part in local if isinstance(part, AgreementPart)]
    rated = [resized(part, repetitions, num_seeds) for part in local if part not in compared]
    found = LocalResults(quick, place.seed, study(rated, methods, place))
    found.agreements = study(compared, [name for name in methods if name in PAPER_TESTS], place)
    for part in chosen:
        if isinstance(part, GainPart):
            found.gains = gain_study(part, place)
        elif isinstance(part, OneClassPart):
            found.one_class = one_class_study(part, place)
    values = summary(found)
    if pictures is not None:
        _draw(found, values["agreements"], pictures)
    return values, markdown(values)


def _trained(part: LocalPart, num_trains: list[int] | None) -> LocalPart:
    """The part with those of its estimates that are on so many pairs; all where none is named."""
    kept = tuple(n for n in part.num_trains if not num_trains or n in num_trains)
    if not kept:
        known = ", ".join(map(str, part.num_trains))
        raise ValueError(f"`--num-train` must be among {known} for {part.label}.")
    return replace(part, num_trains=kept)


def _draw(found: LocalResults, agreements: list[dict[str, Any]], out: Path) -> None:
    from .drawing import draw_agreements, draw_gain_pairs, draw_gains, draw_one_class, draw_studies

    if begun := [one for one in found.studies if one.cells]:
        draw_studies(begun, out / "lc2st.png")
    if compared := [one for one in agreements if one["correlations"]]:
        draw_agreements(compared, out / "lc2st_agreement.png")
    if found.gains is not None:
        draw_gains(found.gains, out / "lc2st_jansen_rit.png")
        draw_gain_pairs(found.gains, out / "lc2st_jansen_rit_pairs.png")
    if found.one_class is not None:
        draw_one_class(found.one_class["rows"], out / "lc2st_one_class.png")
