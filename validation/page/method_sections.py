"""The section of each test: what it found, what chance would give, what it could not see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..swaps.words import TESTS
from ..words import number, p_words
from .blocks import Block, Facts, Figure, Figures, Section, Table, Text
from .local_pictures import PAIR_LEGEND, ball_figure, coloured_pairs, coverage_figure, pp_figure
from .rank_pictures import ks_law, null_figure, rank_figure

TITLES = {
    "panel": "Panel of tests with one p-value",
    "sbc": "Simulation-based calibration",
    "tarp": "Coverage of random regions (TARP)",
    "hpd": "Highest-density coverage",
    "c2st": "Classifier two-sample test",
    "c2st_mse": "Classifier two-sample test (MSE)",
    "conformal_c2st": "Conformal C2ST, uniform",
    "conformal_multiple": "Conformal C2ST, multiple",
    "discriminative_calibration": "Discriminative calibration",
    "score_rank": "Score ranks",
    "colt_identity": "Conditional localization (CoLT ID)",
    "colt": "Conditional localization (CoLT)",
    "lc2st": "Local classifier test (L-C2ST)",
    "lc2st_nf": "Local classifier test for flows (L-C2ST-NF)",
    "local_hpd": "Local highest-density coverage",
}
CONTROL_COLUMNS = {"prior": "p of the pairs' prior", "wide": "p if 1.5 times wider"}
"""Posteriors that are wrong on purpose, as columns."""
_KS = ("sbc", "tarp", "hpd", "colt", "colt_identity")
"""Tests whose statistic is a Kolmogorov-Smirnov distance of independent uniform ranks."""
_FACTS = {
    "num_train": "pairs that trained",
    "num_test": "pairs that tested",
    "num_samples": "draws a pair",
    "p_value_kind": "p-value",
    "calibration": "calibration",
    "density": "density",
    "form": "form",
    "null": "null",
}


def summary_table(data: Mapping[str, Any]) -> Table:
    """One row a test, as ``print(report)`` shows them."""
    tried = data.get("controls") or {}
    columns = [CONTROL_COLUMNS.get(name, name) for name in tried]
    rows = tuple(
        (
            TITLES.get(row["method"], row["method"]),
            float(row["statistic"]),
            float(f"{row['p_value']:.2g}"),
            float(f"{row['p_value_adjusted']:.2g}"),
            "rejects" if row["rejected"] else "does not reject",
            *(_two_digits(p_values.get(row["method"])) for p_values in tried.values()),
            row["sees"],
            row["blind_to"],
        )
        for row in data["results"]
    )
    caption = (
        f"All tests at level {data['alpha']:g}; adjusted p-values allow for their number (Holm)"
    )
    caption += ". Beside the verdict, p-values of posteriors wrong on purpose" if tried else ""
    return Table(
        caption,
        ("test", "statistic", "p", "adjusted p", "verdict", *columns, "sees", "cannot see"),
        rows,
        sortable=True,
    )


def _two_digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.2g}")


def method_section(row: Mapping[str, Any], names: Sequence[str], alpha: float, key: str) -> Section:
    """One test with its pictures."""
    verdict = "rejects" if row["rejected"] else "does not reject"
    text = (
        f"Statistic {number(float(row['statistic']))}, {p_words(row['p_value'])}{_adjusted(row)}: "
        f"{verdict}. It sees {row['sees']}. It cannot see {row['blind_to']}."
    )
    blocks: list[Block] = [Text(text), *_of_the_panel(row)]
    figures = _figures(row, names, alpha)
    if figures:
        blocks.append(Figures(tuple(figures)))
    draws = row.get("evidence", {}).get("draws")
    if draws is not None:
        pairs = tuple(coloured_pairs(draws, names))
        blocks.append(Text("Draws of the posterior at x_o, coloured by what the classifier says:"))
        blocks.append(Figures(pairs, legend=PAIR_LEGEND))
    blocks.append(Facts(_facts(row)))
    return Section(key, TITLES.get(row["method"], row["method"]), tuple(blocks))


def _adjusted(row: Mapping[str, Any]) -> str:
    """The p-value that allows for the number of tests, where it is another."""
    same = row["p_value_adjusted"] == row["p_value"]
    return "" if same else f" ({p_words(row['p_value_adjusted'])} adjusted for the number of tests)"


def _of_the_panel(row: Mapping[str, Any]) -> list[Block]:
    """Each test of the panel alone."""
    p_values = row.get("details", {}).get("p_values")
    if row["method"] != "panel" or not isinstance(p_values, Mapping):
        return []
    rows = tuple((TESTS.get(name, name), _two_digits(p)) for name, p in p_values.items())
    return [Table("Each test of the panel alone, not adjusted", ("test", "p"), rows)]


def _figures(row: Mapping[str, Any], names: Sequence[str], alpha: float) -> list[Figure]:
    evidence = row.get("evidence", {})
    figures = []
    if "ranks" in evidence:
        curves = len(evidence["ranks"]["gaps"])
        of_parameters = curves == len(names) and row["method"] in ("sbc", "panel")
        labels = list(names) if of_parameters else ["observed"]
        if len(labels) == curves:
            figures.append(rank_figure(row["method"], evidence["ranks"], labels, alpha))
    if "pp" in evidence:
        figures.append(pp_figure(evidence["pp"]))
    if "ball" in evidence:
        figures.append(ball_figure(evidence["ball"], names))
    if "coverage" in evidence:
        figures.append(coverage_figure(evidence["coverage"]))
    null = _null_picture(row)
    return [*figures, null] if null is not None else figures


def _null_picture(row: Mapping[str, Any]) -> Figure | None:
    """The null distribution: simulated or permuted values, or the law that is known."""
    statistic, method = float(row["statistic"]), row["method"]
    ranks = row.get("evidence", {}).get("ranks")
    if row.get("null_statistics"):
        values = np.array(row["null_statistics"], dtype=float)
        return null_figure(
            statistic, values, None, f"{len(values)} statistics of data with no difference to find"
        )
    if method in _KS and ranks is not None:
        curves, num = len(ranks["gaps"]), int(ranks["num_ranks"])
        words = f"the Kolmogorov–Smirnov distance of {num} uniform ranks"
        words += f", the largest of {curves} if these were independent" if curves > 1 else ""
        return null_figure(statistic, None, ks_law(num, curves), words)
    details = row.get("details", {})
    if method == "c2st" and "num_called_p" in details:
        words = "the hypergeometric accuracy of a classifier that guesses"
        return null_figure(statistic, None, _accuracy_law(details), words, discrete=True)
    return None


def _accuracy_law(details: Mapping[str, Any]) -> tuple[Any, Any]:
    """Accuracy under the null: given how many points are called p, its own are hypergeometric."""
    from scipy.stats import hypergeom

    total, called, of_p = details["num_test"], details["num_called_p"], details["num_p"]
    hits = np.arange(max(0, called + of_p - total), min(called, of_p) + 1)
    mass = hypergeom.pmf(hits, total, called, of_p)
    accuracy = (hits + (total - of_p) - (called - hits)) / total
    return accuracy, mass


def _facts(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    details = row.get("details", {})
    found = [("source", row["source"]), ("seed", str(row["seed"]))]
    found += [
        (label, number(details[key]))
        for key, label in _FACTS.items()
        if isinstance(details.get(key), str | int | float)
    ]
    return tuple(found)
