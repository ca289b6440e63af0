"""Figure 6, Tables 1 and 3 of the L-C2ST paper: each x_o's statistic beside the oracle's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.tables import table
from .judges import FLOW, HPD, LOCAL, ORACLE
from .parts import LocalPart
from .study import LocalRate, LocalStudy

_PAPER_SIZES = (100, 10_000)
"""Observations and N_cal of Table 3."""
_TABLE_3: Mapping[str, Mapping[int, tuple[float, float]]] = {
    "slcp": {100: (1e-4, 0.12), 1_000: (1e-3, 0.03), 10_000: (0.31, 0.82), 100_000: (0.21, 0.40)},
    "two-moons": {
        100: (1e-27, 1e-9), 1_000: (1e-3, 0.19), 10_000: (1e-16, 1e-11), 100_000: (0.052, 1e-5),
    },
    "gaussian-mixture": {
        100: (1e-8, 1e-12), 1_000: (1e-7, 0.01), 10_000: (0.006, 0.35), 100_000: (1e-14, 0.006),
    },
    "gaussian-linear-uniform": {
        100: (1e-13, 1e-12), 1_000: (0.07, 1e-9), 10_000: (0.42, 0.002), 100_000: (0.68, 0.87),
    },
    "bernoulli-glm": {
        100: (1e-8, 1e-5), 1_000: (1e-10, 1e-4), 10_000: (0.67, 0.18), 100_000: (0.39, 0.31),
    },
    "bernoulli-glm-raw": {
        100: (0.03, 0.37), 1_000: (1e-8, 1e-4), 10_000: (1e-4, 0.04), 100_000: (0.92, 0.06),
    },
}  # fmt: skip
"""Task -> N_train -> p-values of Pearson's test, of L-C2ST and of its flow form."""
_TABLE_1 = {
    ORACLE: {100: 16.36, 1_000: 18.03, 10_000: 23.3, 100_000: 15.33},
    LOCAL: {100: 27.62, 1_000: 34.06, 10_000: 17.9, 100_000: 3.65},
    FLOW: {100: 43.99, 1_000: 25.01, 10_000: 18.56, 100_000: 7.62},
    HPD: {100: 956.91, 1_000: 938.21, 10_000: 682.92, 100_000: 530.45},
}
"""Test -> N_train -> seconds for one statistic of SLCP at N_cal = 10,000."""


def agreement(study: LocalStudy) -> dict[str, Any]:
    """Correlations with the oracle's statistic and times, as JSON has them."""
    part = study.part
    rates = {
        (method, rate.num_train): rate
        for method in study.methods
        for rate in study.over_train(method)
    }
    rows = [
        _correlation(part.estimates, rates[ORACLE, train], rates[method, train], number)
        for train in part.num_trains
        for number, method in enumerate((LOCAL, FLOW))
        if (ORACLE, train) in rates and (method, train) in rates
    ]
    as_printed = (part.sizes.num_x_o, part.num_cals[-1]) == _PAPER_SIZES
    timed = [_time(rate, part) for rate in rates.values()]
    for row in rows:
        row["differs"] = as_printed and row["paper"] is not None and _apart(row)
    return {
        "label": part.label,
        "num_x_o": part.sizes.num_x_o,
        "num_cal": part.num_cals[-1],
        "cells": {"worked": len(study.cells), "asked": study.num_asked},
        "correlations": rows,
        "seconds": timed,
    }


def _correlation(task: str, oracle: LocalRate, rate: LocalRate, number: int) -> dict[str, Any]:
    """Pearson's r of one test with the oracle, its 95% interval by Fisher's transform, its p."""
    from scipy.stats import pearsonr

    result = pearsonr(oracle.statistics, rate.statistics)
    low, high = result.confidence_interval(0.95)
    pairs = list(zip(oracle.statistics, rate.statistics, strict=True))
    printed = _TABLE_3.get(task, {}).get(rate.num_train)
    return {
        "num_train": rate.num_train,
        "test": rate.method,
        "r": float(result.statistic),
        "interval": [float(low), float(high)],
        "p_value": float(result.pvalue),
        "paper": None if printed is None else printed[number],
        "below": sum(second < first for first, second in pairs) / len(pairs),
        "statistics": [list(column) for column in zip(*pairs, strict=True)],
    }


def _apart(row: Mapping[str, Any], alpha: float = 0.05) -> bool:
    """Whether the paper sees a correlation and we do not, or the other way about."""
    ours = row["p_value"] <= alpha and row["r"] > 0
    return bool(ours != (row["paper"] <= alpha))


def _time(rate: LocalRate, part: LocalPart) -> dict[str, Any]:
    """CPU seconds of one statistic; the oracle trains for every observation anew."""
    asked = part.sizes.num_x_o if rate.method == ORACLE else 1
    as_printed = part.estimates == "slcp" and part.num_cals[-1] == _PAPER_SIZES[1]
    return {
        "test": rate.method,
        "num_train": rate.num_train,
        "seconds": rate.seconds / asked,
        "paper": _TABLE_1[rate.method].get(rate.num_train) if as_printed else None,
    }


def agreement_lines(values: Mapping[str, Any]) -> list[str]:
    """The two tables of one task."""
    correlations = (
        [
            row["num_train"], row["test"], f"{row['r']:.2f}",
            "{:.2f} to {:.2f}".format(*row["interval"]), f"{row['p_value']:.2g}",
            _printed(row, ".2g") + (" (differs)" if row["differs"] else ""), f"{row['below']:.2f}",
        ]
        for row in values["correlations"]
    )  # fmt: skip
    times = (
        [row["test"], row["num_train"], f"{row['seconds']:.2g}", _printed(row, "g")]
        for row in values["seconds"]
    )
    heads = ("N_train", "test", "r with the oracle", "95% interval", "p", "paper, p", "below")
    return [
        f"## {values['label']}",
        "",
        f"{values['num_x_o']} observations, N_cal = {values['num_cal']:,}, "
        f"{values['cells']['worked']} of {values['cells']['asked']} cells worked. *Below*: share of"
        " observations where the statistic is less than the oracle's. p: no correlation, Pearson's"
        " test; the paper's with N_cal = 10,000 and 100 observations.",
        "",
        *table(heads, correlations),
        "",
        "CPU seconds of a statistic and of one null beside it: the oracle at one observation, the"
        " others at all, for which they train once.",
        "",
        *table(("test", "N_train", "CPU s", "paper, s"), times),
        "",
    ]


def _printed(row: Mapping[str, Any], form: str) -> str:
    return "" if row["paper"] is None else f"{row['paper']:{form}}"


def agreement_disagreements(values: Mapping[str, Any]) -> list[str]:
    """The correlations that the paper sees and we do not, or the other way about."""
    return [
        f"{values['label']}, {row['test']}, N_train = {row['num_train']:,}: correlation with the "
        f"oracle {row['r']:.2f}, p = {row['p_value']:.2g}, paper p = {row['paper']:.2g}"
        for row in values["correlations"]
        if row["differs"]
    ]
