"""The contract table: every class of posterior by every test, an answer or one line in each cell.

A cell is red where a test ends otherwise: with an error from inside a library, one of many lines or
one that names no argument, something else than a p-value in (0, 1], a print, a random stream that
moved, a posterior refused that is one, or an answer for what is none. 60 pairs, 40 draws an
observation and networks trained for seconds: whether a test answers is shown here, not its power.
What is slow to sample is drawn once and shared by all tests, as `validate` does.

    python examples/benchmarks/contract.py FOLDER     # keeps cells there; goes on where it was

Needs sbi, zuko, lampe, nflows, pandas and arviz. Writes contract.json and .md beside it.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import re
import sys
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from contract_misuse import misuse_rows
from contract_posteriors import PAIRS, Specimen, array_rows, function_rows, pairs
from contract_table import table
from contract_trained import flow_rows, sbi_rows
from measure import MACHINE, versions

from abi.studies.engine.cell_file import kept
from validation import METHODS, ColtTraining, Training, ValidationResult
from validation.posteriors.draws import given
from validation.posteriors.shared_draws import SharedDraws
from validation.posteriors.stored_samples import StoredSamples
from validation.scores.frames import num_frame_draws

RESULT = Path(__file__).with_suffix(".json")
DRAWS = 40
QUICK = Training(hidden=(16,), max_epochs=100, batch_size=50)
BALLS = ColtTraining(hidden=(16,), epochs=10, draws_per_epoch=5)
SETTINGS: dict[str, dict[str, Any]] = {
    "panel": {"num_samples": DRAWS},
    "sbc": {"num_samples": DRAWS},
    "tarp": {"num_samples": DRAWS},
    "hpd": {"num_samples": DRAWS},
    "c2st": {"training": QUICK},
    "conformal_c2st": {"training": QUICK, "num_permutations": 199},
    "conformal_multiple": {"training": QUICK, "num_permutations": 199},
    "discriminative_calibration": {"training": QUICK, "num_permutations": 199},
    "score_rank": {"training": QUICK, "num_samples": DRAWS, "num_nulls": 199},
    "colt_identity": {"training": BALLS, "num_samples": DRAWS},
    "colt": {"training": BALLS, "num_samples": DRAWS},
    "lc2st": {"training": QUICK, "num_nulls": 19, "num_x_o": 2, "num_samples": DRAWS},
    "local_hpd": {"training": QUICK, "num_nulls": 19, "num_x_o": 2, "num_samples": DRAWS},
}
REFUSALS = (ValueError, TypeError, NotImplementedError)
OURS = ("validation", "simulators")
PACKAGES = ("abi-toolkit", "sbi", "zuko", "lampe", "nflows", "scipy", "pandas", "arviz", "torch")


class Row:
    """A specimen and what its tests are called with; built when it is needed first."""

    def __init__(self, specimen: Specimen) -> None:
        self.specimen = specimen
        theta, x = pairs(specimen.x, PAIRS, 0)
        frames = specimen.frames
        self.theta: Any = pd.DataFrame(theta.numpy(), columns=["a", "b"]) if frames else theta
        self.x: Any = pd.DataFrame(x.numpy(), columns=["u", "v"]) if frames else x
        self.q: Any = None

    def arguments(self) -> list[Any]:
        if self.q is None:
            self.q = self.specimen.build()
            if self.specimen.shared:
                self.share()
        values = {"q": self.q, "theta": self.theta, "x": self.x}
        return [values[name] for name in self.specimen.order.split()]

    def share(self) -> None:
        """Draw, for all tests, as often as that takes which takes most; so does `validate`."""
        found = given(self.q, self.theta, self.x)
        samples = found.draws(DRAWS + num_frame_draws(2), 100).samples
        self.q = SharedDraws(found.q, StoredSamples(found.x, samples))
        self.theta, self.x = found.theta, found.x


def cell(row: Row, test: str) -> dict[str, Any]:
    """What one test says of one posterior: {"p"} or {"error"}; {"red"} where that is no answer."""
    try:
        arguments = row.arguments()
    except Exception as error:  # a misuse that as_posterior refuses; else red
        return judged(row, refusal(error))
    before = streams()
    printed = io.StringIO()
    with caught_warnings() as said, contextlib.redirect_stdout(printed):
        try:
            found = answer(METHODS[test](*arguments, seed=0, **SETTINGS[test]), test)
        except Exception as error:  # whatever it is, it is told
            found = refusal(error)
    if streams() != before:
        found = {"red": f"moved a random stream; {found}"}
    if printed.getvalue():
        found = {"red": f"printed {printed.getvalue()[:60]!r}; {found}"}
    return judged(row, found) | ({"warnings": said} if said else {})


def judged(row: Row, found: dict[str, Any]) -> dict[str, Any]:
    """Red where a posterior is refused, or what is none has an answer."""
    if row.specimen.misuse and "p" in found:
        return {"red": f"answered p = {found['p']:.2g}"}
    if row.specimen.exact and found.get("p", 1.0) < 1e-3:
        return {"red": f"rejected an exact posterior, p = {found['p']:.2g}"}
    if not row.specimen.misuse and "error" in found:
        return {"red": f"refused: {found['error']}"}
    return found


def answer(result: Any, test: str) -> dict[str, Any]:
    if not isinstance(result, ValidationResult) or result.method != test:
        return {"red": f"returned {type(result).__name__}"}
    if not 0 < result.p_value <= 1:
        return {"red": f"p = {result.p_value}"}
    return {"p": float(result.p_value)}


def refusal(error: Exception) -> dict[str, Any]:
    """The line, or why it is none that its reader can use."""
    message, kind = str(error), type(error).__name__
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{Path(last.filename).name}:{last.lineno}"
    package = Path(last.filename).parts
    if not isinstance(error, REFUSALS) or not set(OURS) & set(package[:-1]):
        return {"red": f"{kind} from {place}: {message[:200]}"}
    if "\n" in message or not re.search(r"`\w+`", message):
        return {"red": f"{kind} from {place} is not one line with an argument: {message[:300]}"}
    return {"error": message, "kind": kind}


def streams() -> tuple[Any, ...]:
    """The states of the global random streams."""
    return random.getstate(), str(np.random.get_state()), torch.get_rng_state().numpy().tobytes()  # noqa: NPY002


@contextlib.contextmanager
def caught_warnings() -> Iterator[list[str]]:
    """Warnings that the user would see, filled in at the end."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield said
    said += sorted({str(warning.message).splitlines()[0] for warning in caught})


def cell_of(row: Row, test: str, folder: Path) -> dict[str, Any]:
    """The cell, kept with its seconds."""

    def work() -> dict[str, Any]:
        start = time.process_time()
        found = cell(row, test)
        return found | {"seconds": round(time.process_time() - start, 2)}

    specimen = row.specimen
    name = re.sub(r"[^\w]+", "_", f"{specimen.library} {specimen.name} {specimen.x}")
    found = kept(folder / f"{name}--{test}.json", work)
    print(name, test, found, flush=True)
    return found


def main() -> None:
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for specimen in [*sbi_rows(), *flow_rows(), *function_rows(), *array_rows(), *misuse_rows()]:
        row = Row(specimen)
        cells = {test: cell_of(row, test, folder) for test in METHODS}
        rows.append(
            {"library": specimen.library, "class": specimen.name, "x": specimen.x,
             "exact": specimen.exact, "shared": specimen.shared, "misuse": specimen.misuse,
             "cells": cells}
        )  # fmt: skip
    result = {
        "machine": MACHINE,
        "versions": versions(*PACKAGES),
        "pairs": PAIRS,
        "draws": DRAWS,
        "settings": {test: str(settings) for test, settings in SETTINGS.items()},
        "rows": rows,
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(table(result))


if __name__ == "__main__":
    main()
