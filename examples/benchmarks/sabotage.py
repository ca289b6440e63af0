"""NPEs that went wrong in ways that happen: how many are caught, and by what.

Every posterior is trained with sbi, or used wrongly after an honest training, and its draws at
3,000 fresh pairs are kept (more where it is right, to count false alarms). Sets of 100, 300 and
1,000 of these pairs are then judged in two ways: by the one p-value of ``validate``, and by all
tests with Holm's correction.

    python examples/benchmarks/sabotage.py draw FOLDER         train and draw; goes on where it was
    python examples/benchmarks/sabotage.py judge FOLDER [MINUTES]    judge; the same
    python examples/benchmarks/sabotage.py table FOLDER        sabotage.json and sabotage.md

``draw`` and ``judge`` take names of posteriors behind the folder with ``--only``.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measure import MACHINE, cpu_seconds, versions
from sabotage_cases import CASES, Case
from sabotage_table import table

from simulators.random import child_seed
from validation import METHODS, as_posterior, validate

RESULT = Path(__file__).with_suffix(".json")
DRAWS = 100
ROWS = {"exact": 10_000, "own draws": 4_000, "honest": 3_000, "sabotage": 3_000}
SIZES = (100, 300, 1_000)
MOST_SETS = {"exact": 100, "own draws": 100, "honest": 10, "sabotage": 10}
HOLM_SETS, HOLM_SIZES = 2, (100, 300)
LEFT_OUT = ("panel", "hpd", "colt")
"""Of the tests under Holm: kept draws have no density, and full CoLT takes a minute a set."""


def draw(case: Case, path: Path) -> None:
    """Train one posterior and keep its draws at fresh pairs."""
    start = cpu_seconds()
    rows = ROWS[case.kind]
    theta, x = case.problem.pairs(rows, 1_000)
    sampler = case.make()
    trained = cpu_seconds() - start
    own = case.kind == "own draws"
    samples = sampler(DRAWS + own, x, 1_001)
    if own:
        theta, samples = samples[-1], samples[:-1]
    np.savez(path.with_suffix(".part.npz"), theta=theta, x=x, samples=samples)
    path.with_suffix(".part.npz").rename(path)
    seconds = cpu_seconds() - start
    print(f"{case.name}: {trained:.0f} s to train, {seconds - trained:.0f} s to draw", flush=True)


def judge(kept: dict[str, Any], size: int, number: int, way: str) -> dict[str, Any]:
    """The verdict on one set of pairs: by the one p-value, or by all tests."""
    rows = slice(size * number, size * (number + 1))
    theta, x = (torch.from_numpy(kept[name][rows]) for name in ("theta", "x"))
    samples = torch.from_numpy(kept["samples"][:DRAWS, rows])
    q = as_posterior((theta, x, samples), layout="samples_first")
    seed = child_seed(2_000, size, number)
    start = time.process_time()
    if way == "one":
        report = validate(q, theta, x, seed=seed)
        found = {
            "p_value": report.p_value,
            "p_values": dict(report.results[0].details["p_values"]),
            "failures": list(report.failures),
        }
    else:
        # Of ten parameters the frame of CoLT takes as many draws as were kept.
        framed = theta.shape[1] < DRAWS // 10
        tests = [n for n in METHODS if n not in LEFT_OUT and (framed or n != "colt_identity")]
        report = validate(q, theta, x, tests, num_samples=DRAWS, seed=seed)
        found = {
            "p_value": min(report.adjusted),
            "p_values": {result.method: result.p_value for result in report.results},
        }
    return found | {"cpu_seconds": round(time.process_time() - start, 2)}


def wanted(cases: list[Case]) -> Iterator[tuple[int, Case, int, str]]:
    """Set, posterior, size and way: the first sets of all posteriors come first."""
    for number in range(max(MOST_SETS.values())):
        for case in cases:
            for size in SIZES:
                if number < min(MOST_SETS[case.kind], ROWS[case.kind] // size):
                    yield number, case, size, "one"
                if number < HOLM_SETS and size in HOLM_SIZES:
                    yield number, case, size, "holm"


def judge_all(cases: list[Case], folder: Path, minutes: float) -> None:
    """Judge what is not judged yet; one file a posterior holds its cells."""
    end = time.monotonic() + 60.0 * minutes
    draws: dict[str, dict[str, Any]] = {}
    for number, case, size, way in wanted(cases):
        source, path = folder / f"{case.name}.npz", folder / f"{case.name}.json"
        cells = json.loads(path.read_text()) if path.exists() else {}
        cell = f"{way}/{size}/{number}"
        if cell in cells or not source.exists():
            continue
        if time.monotonic() > end:
            return
        if case.name not in draws:
            draws[case.name] = dict(np.load(source))
        cells[cell] = judge(draws[case.name], size, number, way)
        path.write_text(json.dumps(cells, indent=1))
        print(case.name, cell, cells[cell], flush=True)


def write(folder: Path) -> None:
    """The kept result and its table."""
    cells = {
        case.name: json.loads((folder / f"{case.name}.json").read_text())
        for case in CASES
        if (folder / f"{case.name}.json").exists()
    }
    report = {
        "machine": f"{MACHINE}, one thread",
        "what": __doc__.split("\n", maxsplit=1)[0],
        "draws_a_pair": DRAWS,
        "seeds": "pairs 1,000, draws 1,001; set k of N pairs: child_seed(2_000, N, k)",
        "not_under_holm": LEFT_OUT[1:],
        "versions": versions("torch", "sbi", "abi-toolkit"),
        "cells": cells,
    }
    RESULT.write_text(json.dumps(report) + "\n")
    RESULT.with_suffix(".md").write_text(table(CASES, report))


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("part", choices=("draw", "judge", "table"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("minutes", type=float, nargs="?", default=float("inf"))
    parser.add_argument("--only", nargs="+", choices=[case.name for case in CASES])
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    cases = [case for case in CASES if case.name in (given.only or case.name)]
    if given.part == "draw":
        for case in cases:
            path = given.folder / f"{case.name}.npz"
            if not path.exists():
                draw(case, path)
    elif given.part == "judge":
        judge_all(cases, given.folder, given.minutes)
    else:
        write(given.folder)


if __name__ == "__main__":
    main()
