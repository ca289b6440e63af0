"""Our rates and the paper's statements side by side, as JSON and as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import pstdev
from typing import Any

from ...engine.tables import claim_table, paper_page, table
from .agreement import agreement, agreement_disagreements, agreement_lines
from .claims import CLAIMS
from .gains import SHOWN, GainStudy
from .judges import observations
from .one_class import one_class_lines
from .study import LocalStudy

_TITLE = "Is the estimate right at this observation?"
_SOURCE = (
    "Linhart, Gramfort & Rodrigues (2023), Figures 1 to 6 (curves, no numbers in print), Tables 1"
    " and 3"
)
_SETTING = (
    "NPE of sbi (neural spline flow) tested as it is, not cut off at the prior's bounds; the truth"
    " is the exact posterior of the task, where the paper has long chains. Type I error: q itself"
    " plays the truth. C2ST and L-C2ST have the paper's classifier; ours start from shared weights"
    " and swap null labels within pairs, and *published null* is Algorithm 1 as printed. Local HPD"
    " is one network with an output for each level. p-values count the observed statistic among"
    " the nulls. An observation is tested alone, as in the paper: nothing is adjusted."
)
_HEADS = (
    "truth", "N_cal", "N_train", "test", "statistic", "rejected", "95% interval", "runs", "CPU s",
)  # fmt: skip
_READING = (
    "*Differs*: our intervals rule it out. *Agrees*: they are apart that way (orderings), or leave"
    " no more than 0.2 for the contrary (alike, level). *Open*: too few runs to say."
)


@dataclass
class LocalResults:
    """All that was asked for and has been worked."""

    quick: bool
    seed: int
    studies: list[LocalStudy] = field(default_factory=list)
    agreements: list[LocalStudy] = field(default_factory=list)
    gains: GainStudy | None = None
    one_class: dict[str, Any] | None = None


def summary(found: LocalResults) -> dict[str, Any]:
    """Everything as JSON has it."""
    parts = [_part(study) for study in found.studies]
    agreements = [agreement(study) for study in found.agreements]
    worked = [*found.studies, *found.agreements]
    differing = [
        f"{part['label']}: {claim['says']} ({claim['where']}). Ours: {claim['ours']}"
        for part in parts
        for claim in part["claims"]
        if claim["verdict"] == "differs"
    ]
    differing += [line for one in agreements for line in agreement_disagreements(one)]
    return {
        "format": "abi_benchmark",
        "version": 1,
        "name": "lc2st",
        "title": _TITLE,
        "source": _SOURCE,
        "setting": _SETTING,
        "quick": found.quick,
        "seed": found.seed,
        "cpu_seconds": round(sum(c.seconds or 0.0 for study in worked for c in study.cells)),
        "parts": parts,
        "agreements": agreements,
        "jansen_rit": None if found.gains is None else found.gains.values,
        "one_class": found.one_class,
        "disagreements": differing + [line for study in worked for line in study.errors],
    }


def markdown(values: Mapping[str, Any]) -> str:
    """The tables of every part, and what the paper says beside what we see."""
    lines: list[str] = []
    for part in values["parts"]:
        lines += _part_lines(part)
    for one in values["agreements"]:
        lines += agreement_lines(one)
    if values["jansen_rit"] is not None:
        lines += _gain_lines(values["jansen_rit"])
    if values["one_class"] is not None:
        lines += one_class_lines(values["one_class"])
    return paper_page(values, lines)


def _part(study: LocalStudy) -> dict[str, Any]:
    part = study.part
    claims = [
        {"says": claim.says, "where": claim.where, **claim.judge(study)._asdict()}
        for claim in CLAIMS.get(part.label, ())
    ]
    settings = {key: value for key, value in asdict(part).items() if key not in ("label", "task")}
    return {
        "label": part.label,
        "settings": settings,
        "x_o": observations(part.task, part.sizes.num_x_o).tolist(),
        "cells": {"worked": len(study.cells), "asked": study.num_asked},
        "rates": [asdict(rate) for rate in study.rates()],
        "claims": claims,
    }


def _part_lines(part: Mapping[str, Any]) -> list[str]:
    sizes, cells = part["settings"]["sizes"], part["cells"]
    rows = (
        [
            "q (type I)" if rate["exact"] else "exact",
            *(rate[key] for key in ("num_cal", "num_train", "method")),
            f"{rate['statistic']:.2g} ({pstdev(rate['statistics']):.1g})",
            f"{rate['rate']:.3f} ({pstdev(rate['rates']):.2f})",
            "{:.3f} to {:.3f}".format(*rate["interval"]),
            rate["runs"],
            f"{rate['seconds']:.2g}",
        ]
        for rate in part["rates"]
    )
    return [
        f"## {part['label']}",
        "",
        f"{sizes['num_x_o']} observations, {sizes['num_nulls']} nulls, patience "
        f"{sizes['patience']}, "
        f"{cells['worked']} of {cells['asked']} cells worked. *Rejected*: mean over runs and "
        "observations; in brackets, standard deviation over the observations.",
        "",
        *table(_HEADS, rows),
        "",
        _READING,
        "",
        *claim_table(part["claims"]),
        "",
    ]


def _gain_lines(values: Mapping[str, Any]) -> list[str]:
    settings, shape = values["settings"], values["u_shape"]
    offset = ", ".join(f"{name} {value:+.2f}" for name, value in values["offset"].items())
    checks = ", ".join(f"{name} p = {p:.2g}" for name, p in values["global"].items())
    rows = (
        [
            f"{row['gain']:g}", f"{row['statistic']:.2g}", f"{row['null_median']:.2g}",
            f"{row['null_low']:.2g} to {row['null_high']:.2g}", f"{row['p_value']:.2g}",
        ]
        for row in values["gains"]
    )  # fmt: skip
    return [
        f"## {values['label']}",
        "",
        f"Masked autoregressive flow of {settings['num_transforms']} layers on "
        f"{settings['num_train']:,} pairs, {settings['num_cal']:,} calibration pairs, "
        f"{settings['num_samples']:,} base draws; x is the log spectrum, 33 values. Globally: "
        f"{checks}.",
        "",
        *table(("g_o (dB)", "statistic", "null, median", "null, 95%", "p"), rows),
        "",
        f"The paper: a U-shape, higher away from 0 and at the borders. Ours: mean statistic "
        f"{shape['borders']:.2g} for |g| of 15 and more, {shape['centre']:.2g} for 5 and less, "
        f"ratio {shape['ratio']:.2g}.",
        "",
        f"At g_o = {SHOWN:g}, mean of q less the truth in standard deviations: {offset}. The "
        "paper reads positive bias for mu and sigma, negative for g.",
        "",
    ]
