"""Run an experiment and set its results beside what the paper printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from validation import PowerRate, PowerStudy, power
from validation.perturbations import Failure

from ..engine.tables import claim_table, paper_page, table
from .experiment import Experiment, Part, Place, Published
from .orderings import interval, judge

_HEADS = ("test", "strength", "ours", "95% interval", "paper", "CPU s")
Result = tuple[Part, PowerStudy]

_READING = (
    "Judged at every strength above 0: one test is above another where their intervals have nothing"
    " in common. *Differs*: below at some point; *agrees*: nowhere below, and above somewhere where"
    " the paper says above; *open*: neither."
)


def run_part(part: Part, place: Place) -> Result:
    """The part's study, of the cells that are kept and those begun in time."""
    failure = part.failure
    study = power(
        part.tests,
        failure if isinstance(failure, Failure) else failure(place),
        part.strengths,
        num_pairs=part.num_pairs,
        repetitions=part.repetitions,
        num_seeds=part.num_seeds,
        seed=place.seed,
        workers=place.workers,
        folder=place.cells,
        minutes=None if place.end is None else place.seconds_left / 60.0,
        progress=place.progress,
    )
    return part, study


def summary(
    name: str, experiment: Experiment, results: list[Result], quick: bool, seed: int
) -> dict[str, Any]:
    """Everything as JSON has it: rates with intervals, the paper's, and where the two differ."""
    judged = [judge(ordering, results) for ordering in experiment.orderings]
    orderings = [found for found in judged if found["verdict"] != "not measured"]
    differing = [line for part, study in results for line in _disagreements(part, study)]
    differing += [f"{one['says']}: {point}" for one in orderings for point in one["below"]]
    return {
        "format": "abi_benchmark",
        "version": 1,
        "name": name,
        "title": experiment.title,
        "source": experiment.source,
        "setting": experiment.setting,
        "quick": quick,
        "seed": seed,
        "cpu_seconds": round(sum(cell.seconds or 0.0 for _, s in results for cell in s.cells)),
        "parts": [{"label": part.label, **_studied(part, study)} for part, study in results],
        "orderings": orderings,
        "disagreements": differing,
    }


def markdown(values: Mapping[str, Any]) -> str:
    """The tables, one a part; the paper's mean ± two standard errors beside ours."""
    lines: list[str] = []
    for part in values["parts"]:
        lines += [
            f"## {part['label']}",
            "",
            f"{part['failure']}, {part['num_pairs']} pairs, {part['repetitions']} batches for each "
            f"of {part['num_seeds']} seeds.{_unfinished(part)}",
            "",
            *table(_HEADS, map(_row, part["rates"])),
            "",
        ]
    if values["orderings"]:
        lines += ["## Orderings in words", "", _READING, "", *claim_table(values["orderings"]), ""]
    return paper_page(values, lines)


def differs(rate: PowerRate, published: Published) -> bool:
    """Whether our interval and the paper's mean ± two standard errors have nothing in common."""
    low, high = interval(rate)
    reach = 2 * published.standard_error
    return published.mean - reach > high or published.mean + reach < low


def _studied(part: Part, study: PowerStudy) -> dict[str, Any]:
    values = study.to_dict()
    for rate, entry in zip(study.rates(), values["rates"], strict=True):
        found = part.published.get((rate.method, rate.strength))
        entry["interval"] = list(interval(rate))
        entry["paper"] = None if found is None else list(found)
        entry["differs"] = None if found is None or rate.rate is None else differs(rate, found)
    asked = len(part.tests) * len(part.strengths) * part.num_seeds
    return values | {
        "repetitions": part.repetitions,
        "num_seeds": part.num_seeds,
        "cells": {"asked": asked, "worked": len(study.cells)},
    }


def _unfinished(part: Mapping[str, Any]) -> str:
    """How much of the part is there, where that is not all; older files do not say."""
    cells = part.get("cells", {"asked": 0, "worked": 0})
    if cells["worked"] >= cells["asked"]:
        return ""
    return f" Worked so far: {cells['worked']} of {cells['asked']} cells (test, strength, seed)."


def _disagreements(part: Part, study: PowerStudy) -> list[str]:
    lines = []
    for rate in study.rates():
        found = part.published.get((rate.method, rate.strength))
        if found is not None and rate.rate is not None and differs(rate, found):
            low, high = interval(rate)
            lines.append(
                f"{part.label}, {rate.method}, strength {rate.strength:g}: ours {rate.rate:.3f} "
                f"[{low:.3f}, {high:.3f}], paper {found.mean:.3f} ± {found.standard_error:.3f}"
            )
        lines += [f"{part.label}, {rate.method}: {error}" for error in rate.errors]
    return lines


def _row(rate: Mapping[str, Any]) -> list[str]:
    if rate["rate"] is None:
        ours, span = "none", "; ".join(rate["errors"])
    else:
        ours, span = f"{rate['rate']:.3f}", "{:.3f} to {:.3f}".format(*rate["interval"])
    paper = "" if rate["paper"] is None else "{:.3f} ± {:.3f}".format(*rate["paper"])
    paper += " (differs)" if rate["differs"] else ""
    seconds = "" if rate["seconds"] is None else f"{rate['seconds']:.2g}"
    return [rate["method"], f"{rate['strength']:g}", ours, span, paper, seconds]
