"""What a finished run leaves for people and programs to read."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from simulators import sample_prior

from ..files.arviz_data import as_columns
from ..files.parts import write_bytes
from ..files.run_folder import POSTERIOR
from ..files.versions import versions
from ..pictures.fit import NUM_PRIOR
from ..pictures.marginals import marginals_of
from ..pictures.summary import ParameterSummary
from ..posterior import ABIPosterior


def described(
    samples: Tensor, names: Sequence[str], prior: Tensor | None = None
) -> dict[str, ParameterSummary]:
    """Each parameter of samples (n, d) in numbers, with those of the prior (m, d) beside it."""
    return {m.name: ParameterSummary.of(m) for m in marginals_of(names, samples, prior)}


def mean_and_sd(mean: float, sd: float | None) -> str:
    """Three decimals, or as many as show two digits of the standard deviation.

    >>> mean_and_sd(3.9671, 0.0731), mean_and_sd(0.5, 2.1e-05)
    ('3.967 ± 0.073', '0.500000 ± 0.000021')
    """
    from validation.words import measured

    if sd is None:  # of one draw
        return f"{mean:.6g}"
    if sd >= 1e-6 and max(abs(mean), sd) < 1e7:
        places = max(3, 1 - math.floor(math.log10(sd)))
        return f"{mean:.{places}f} ± {sd:.{places}f}"
    return f"{measured(mean, sd, 2)} ± {measured(sd, sd, 2)}"


def summarise(
    posterior: ABIPosterior, samples: Tensor, exact: Tensor | None, asked: dict[str, Any]
) -> dict[str, Any]:
    """The contents of ``summary.json``: the answer, its verdict, what it cost, and what made it."""
    problem = posterior.problem
    prior = None if problem is None else sample_prior(problem.prior, NUM_PRIOR, seed=0)

    def numbers(part: Tensor) -> dict[str, Any]:
        found = described(part, posterior.parameter_names, prior)
        return {name: one.to_dict() for name, one in found.items()}

    return {
        "posterior": numbers(samples),
        "exact": None if exact is None else numbers(exact),
        "x_o": [None if math.isnan(value) else value for value in posterior.observation.tolist()],
        "num_samples": len(samples),
        "simulator_calls": posterior.num_simulations,
        "verdict": posterior.verdict.to_dict(),
        "x_o_p_value": posterior.rounds[-1].x_o_p_value,
        "failures": sum(record.failures for record in posterior.rounds),
        "seconds": sum(record.seconds for record in posterior.rounds),
        "seed": posterior.seed,
        "asked": asked,
        "config": posterior.config.to_dict(),
        "versions": versions(),
    }


def write_answer(posterior: ABIPosterior, samples: Tensor, folder: Path) -> None:
    """Leave posterior, samples (n, d) and the table of rounds in a run's folder."""
    posterior.save(folder / POSTERIOR)
    write_samples(samples, posterior.parameter_names, folder / "samples.csv")
    write_rounds(posterior, folder / "rounds.csv")


def write_samples(samples: Tensor, names: Sequence[str], path: Path) -> None:
    """Write samples (n, d) as CSV with the parameters' names on top."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([f"{value:.9g}" for value in row] for row in samples.tolist())
    write_bytes(path, text.getvalue().encode())


def write_rounds(posterior: ABIPosterior, path: Path) -> None:
    """Write one line a round as CSV; no tolerance where it left nothing out."""
    rows = []
    for record in posterior.rounds:
        values = as_columns(record)
        if not record.selected:
            values["tolerance"] = None
        for name in ("network", "generator"):
            log = values.pop(name)
            values[f"{name}_epochs"] = None if log is None else log["epochs"]
            values[f"{name}_loss"] = None if log is None else log["validation_loss"]
        rows.append(values)
    text = io.StringIO()
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())
