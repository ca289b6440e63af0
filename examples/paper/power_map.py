"""Which test sees which failure? Smallest strength seen with power 0.8, and the seconds it took.

Rows are failures with a dial (NPTBench's six families, the blind prior, the tree), columns the
tests of `validation`. A cell is found by bisection over the paper's strengths: the strongest
first, and if 0.8 of the repetitions reject it, ever weaker ones. Every repetition is one whole
call of the test, training included, on its own 200 pairs: what a user with 200 pairs gets. A
strength is given up as soon as 0.8 is out of reach, which changes no answer. A column is written
as soon as it is complete; those of the map that is there stay where their settings are today's.

    python examples/paper/power_map.py [folder of cells] [test ...]

Cost: 539 CPU seconds measured for the twelve single tests, at the settings below (20 repetitions,
10 for the four dearest; CoLT with smaller networks and 100 draws in place of 500). It is
interrupted and taken up again at will: finished cells lie in the folder. A rate of 16 in 20 has a
95% interval of 0.56 to 0.94, so a cell may be off by a step of its grid. 100 repetitions of 1,000
pairs with the networks' defaults cost an estimated 60 hours; REPETITIONS, PAIRS and TESTS are all
there is to change.

`seconds` is CPU time of one call, the mean over a block of repetitions in the fastest block of the
cell: other work on the machine only ever adds to it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import torch
from power_map_results import draw, markdown

from abi.studies.engine.tables import write_results
from validation import ColtTraining, PowerStudy, Training, WholeTest, power
from validation.perturbations import Failure, find_failure

RESULT = Path(__file__).with_suffix(".json")
SEED = 20_260_101
PAIRS = 200
POWER = 0.8
REPETITIONS = 20
DEAR_REPETITIONS = 10
BLOCK = 5
BALLS = ColtTraining(hidden=(64, 64), learning_rate=3e-4, epochs=150)
LOCAL = Training(hidden=(30, 30), max_epochs=50, patience=10)

TESTS = {
    "panel": WholeTest("panel"),
    "sbc": WholeTest("sbc", {"num_samples": 100}),
    "tarp": WholeTest("tarp", {"num_samples": 100}),
    "hpd": WholeTest("hpd", {"num_samples": 100}),
    "c2st": WholeTest("c2st"),
    "conformal_c2st": WholeTest("conformal_c2st", {"num_permutations": 199}),
    "conformal_multiple": WholeTest("conformal_multiple", {"num_permutations": 199}),
    "discriminative_calibration": WholeTest(
        "discriminative_calibration", {"num_permutations": 199}
    ),
    "score_rank": WholeTest("score_rank"),
    "colt_identity": WholeTest("colt_identity", {"num_samples": 100, "training": BALLS}),
    "colt": WholeTest("colt", {"num_samples": 100, "training": BALLS}),
    "lc2st": WholeTest("lc2st", {"num_nulls": 39, "num_x_o": 5, "training": LOCAL}),
    "local_hpd": WholeTest(
        "local_hpd", {"num_nulls": 39, "num_x_o": 5, "num_samples": 100, "training": LOCAL}
    ),
}
DEAR = ("colt_identity", "colt", "lc2st", "local_hpd")

FAILURES = (
    "mean_shift",
    "covariance",
    "anisotropic",
    "t_tails",
    "additional_mode",
    "mode_collapse",
    "blind_prior",
    "tree",
)


def smallest_seen(failure: Failure, test: str, folder: Path) -> dict[str, Any]:
    """Bisect over the strengths; power is taken to grow with strength."""
    grid = [strength for strength in failure.strengths if strength > 0]
    seen: dict[float, PowerStudy] = {}

    def sees(strength: float) -> bool:
        seen[strength] = study = until_clear(failure, test, strength, folder)
        return study.rate(test, strength).rejections >= repetitions_of(test) - misses(test)

    low, high = 0, len(grid) - 1
    found = grid[-1] if sees(grid[-1]) else None
    while found is not None and low < high:
        middle = (low + high) // 2
        if sees(grid[middle]):
            high, found = middle, grid[middle]
        else:
            low = middle + 1
    rates = {strength: seen[strength].rate(test, strength) for strength in sorted(seen)}
    cells = [cell for study in seen.values() for cell in study.cells]
    return {
        "strength": found,
        "seconds": round(min(c.seconds or 0.0 for c in cells) / BLOCK, 4),
        "rejected": {f"{a:g}": [rate.rejections, rate.repetitions] for a, rate in rates.items()},
        "errors": sorted({error for rate in rates.values() for error in rate.errors}),
    }


def until_clear(failure: Failure, test: str, strength: float, folder: Path) -> PowerStudy:
    """Repetitions block by block, until enough of them did not reject or all are done."""
    blocks = repetitions_of(test) // BLOCK
    for done in range(1, blocks + 1):
        study = power(
            {test: TESTS[test]}, failure, [strength], num_pairs=PAIRS, repetitions=BLOCK,
            num_seeds=done, seed=SEED, folder=folder,
        )  # fmt: skip
        rate = study.rate(test, strength)
        if done * BLOCK - rate.rejections > misses(test):
            break
    return study


def repetitions_of(test: str) -> int:
    return DEAR_REPETITIONS if test in DEAR else REPETITIONS


def misses(test: str) -> int:
    """How many repetitions may fail to reject."""
    return round((1 - POWER) * repetitions_of(test))


def main() -> None:
    torch.set_num_threads(1)
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/power_map")
    failures = {name: find_failure(name) for name in FAILURES}
    before = kept_map(failures)
    cells = {name: dict(before["cells"][name]) for name in failures}
    tests = sys.argv[2:] or list(TESTS)
    start, total = time.time(), len(failures) * len(tests)
    for done, (test, name) in enumerate((t, n) for t in tests for n in failures):
        cells[name][test] = smallest_seen(failures[name], test, folder)
        left = (time.time() - start) / (done + 1) * (total - done - 1)
        print(f"{done + 1}/{total} {name} {test} {cells[name][test]} {left:.0f} s left", flush=True)
        if name == FAILURES[-1]:  # a column is complete
            write(failures, cells, cpu_seconds(folder, before))


def kept_map(failures: dict[str, Failure]) -> dict[str, Any]:
    """Cells and CPU seconds of the map that is there; of its columns those measured as today's."""
    none: dict[str, Any] = {"cells": {name: {} for name in failures}, "cpu_seconds": 0}
    if not RESULT.is_file():
        return none
    values = json.loads(RESULT.read_text())
    asked = {"num_pairs": PAIRS, "power": POWER, "seed": SEED, "grids": grids(failures)}
    if any(values[key] != value for key, value in asked.items()):
        return none
    kept = [
        test
        for test in values["tests"]
        if test in TESTS
        and values["settings"][test] == str(TESTS[test])
        and values["repetitions"][test] == repetitions_of(test)
    ]
    if len(kept) < len(values["tests"]):
        print(f"kept of {RESULT.name}: {', '.join(kept)}; the others have other settings")
    rows = {name: {test: values["cells"][name][test] for test in kept} for name in failures}
    return {"cells": rows, "cpu_seconds": values["cpu_seconds"]}


def cpu_seconds(folder: Path, before: dict[str, Any]) -> float:
    """Of the cells in the folder; and of the map before, where it has columns from elsewhere."""
    found = [json.loads(path.read_text()) for path in folder.glob("*.json")]
    elsewhere = set(next(iter(before["cells"].values()))) - {cell["method"] for cell in found}
    return sum(cell["seconds"] for cell in found) + (before["cpu_seconds"] if elsewhere else 0)


def grids(failures: dict[str, Failure]) -> dict[str, list[float]]:
    return {name: list(failure.strengths[1:]) for name, failure in failures.items()}


def write(failures: dict[str, Failure], cells: dict[str, dict[str, Any]], spent: float) -> None:
    complete = [test for test in TESTS if all(test in row for row in cells.values())]
    values = {
        "format": "power_map",
        "version": 1,
        "tests": complete,
        "failures": list(failures),
        "cells": {name: {t: row[t] for t in TESTS if t in row} for name, row in cells.items()},
        "grids": grids(failures),
        "sources": {name: failure.source for name, failure in failures.items()},
        "num_pairs": PAIRS,
        "power": POWER,
        "alpha": 0.05,
        "repetitions": {test: repetitions_of(test) for test in complete},
        "settings": {test: str(TESTS[test]) for test in complete},
        "dimensions": "x 3, theta 3; tree: x 1, theta 2",
        "seed": SEED,
        "cpu_seconds": round(spent),
        "seconds": "CPU time of one call in the fastest block of 5",
        "machine": "2 shared x86-64 cores, one thread",
        "versions": {"torch": torch.__version__},
    }
    write_results(RESULT, values, markdown(values))
    draw(values, RESULT.with_suffix(".png"))


if __name__ == "__main__":
    main()
