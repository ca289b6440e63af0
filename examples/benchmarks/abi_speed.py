"""What a fit costs, this checkout beside another one: CPU seconds, and errors from exact draws.

Each cell is a fit in a process of its own, one thread, imports included: a model, an observation,
a seed, and a checkout. Times are of cells worked in turn, one checkout after the other, so that a
busy neighbour slows both alike; errors are means over five observations and up to three seeds.
Beside the times stands sbi's one-round NPE (nsf, its defaults) on as many pairs of the prior, given
the encoder that the fit has chosen.

    git worktree add /tmp/before COMMIT
    python examples/benchmarks/abi_speed.py --before /tmp/before --minutes 60    and again, to go on
    python examples/benchmarks/abi_speed.py --before /tmp/before --part times

Cells are kept in abi_speed.json as they come; abi_speed.md is the table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULT = HERE / "abi_speed.json"
WORKS: dict[str, tuple[str, int, int]] = {  # model, calls of the times, calls of the errors
    "two moons": ("TwoMoons", 1_000, 1_000),
    "two parameters": ("GaussianMixture", 3_000, 3_000),
    "multimodal Gaussian": ("MultimodalGaussian", 10_000, 10_000),
    "wave": ("Cosine", 15_000, 15_000),
    "queue": ("MG1", 40_000, 5_000),
}
GOALS = {"two moons": 4, "two parameters": 15, "multimodal Gaussian": 28, "wave": 24, "queue": 140}
OBSERVATIONS, SEEDS, NUM_DRAWS = range(5), range(3), 2_000
METHODS = ("before", "now", "npe")


def work_cell(work: str, calls: int, observation: int, seed: int, method: str) -> dict[str, Any]:
    """One fit in this process: its CPU seconds, and how far it is from exact draws."""
    import torch

    import abi
    import simulators

    torch.set_num_threads(1)
    task = getattr(simulators, WORKS[work][0])()
    x_o = simulators.sample_joint(task, 1, seed=1_000 + observation)[1][0]
    if method == "npe":
        draws, cell = _npe(task, x_o, calls, seed)
    else:
        posterior = abi.fit(task.prior, task, x_o, num_simulations=calls, seed=seed, progress=False)
        draws = posterior.sample((NUM_DRAWS,), seed=1)
        cell = {"encoder": posterior.rounds[-1].encoder, "outcome": posterior.verdict.outcome}
    cell["cpu_seconds"] = round(cell.pop("cpu_seconds", time.process_time()), 2)
    exact = task.reference_posterior(x_o, NUM_DRAWS, seed=2)
    unit = exact.std(dim=0)
    cell["c2st"] = round(abi.metrics.c2st(draws, exact), 4)
    cell["w1"] = round(abi.metrics.wasserstein(draws / unit, exact / unit), 4)
    return cell


def _npe(task: Any, x_o: Any, calls: int, seed: int) -> tuple[Any, dict[str, Any]]:
    """sbi's NPE as it comes, on pairs of the prior; the time is that of its training alone."""
    import torch
    from sbi.inference import NPE
    from sbi.neural_nets import posterior_nn
    from sbi.utils.user_input_checks import process_prior

    import simulators
    from abi.encoders.choice import LEARNED, build_encoder
    from abi.encoders.layout import Layout

    torch.manual_seed(seed)
    theta, x = simulators.sample_joint(task, calls, seed=seed)
    name = json.loads(os.environ["ABI_SPEED_ENCODER"])
    encoder = build_encoder(name, x, Layout.of(task, x.shape[1]))
    embedding = encoder if name in LEARNED else torch.nn.Identity()
    if name not in LEARNED:
        with torch.no_grad():
            x, x_o = encoder(x), encoder(x_o[None])[0]
    started = time.process_time()
    density = posterior_nn("nsf", embedding_net=embedding)
    prior, *_ = process_prior(task.prior)
    trainer = NPE(prior=prior, density_estimator=density, show_progress_bars=False)
    trainer.append_simulations(theta, x).train()
    posterior = trainer.build_posterior()
    seconds = time.process_time() - started
    draws = posterior.sample((NUM_DRAWS,), x=x_o, show_progress_bars=False)
    return draws, {"encoder": name, "cpu_seconds": seconds}


def run_cell(
    work: str, calls: int, observation: int, seed: int, method: str, tree: Path, encoder: str
) -> dict[str, Any]:
    """The cell of another process, which imports the packages of a checkout."""
    asked = json.dumps([work, calls, observation, seed, method])
    environment = os.environ | {
        "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "ABI_SPEED_ENCODER": json.dumps(encoder)
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, __file__, "--cell", asked],
        env=environment, cwd=tree, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{asked}: {done.stderr[-2_000:]}")
    cell: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return cell


def wanted(part: str) -> Iterator[tuple[str, int, int, int]]:
    """Work, calls, observation and seed of each cell, seeds last to come."""
    if part == "times":
        yield from ((work, times, 0, 0) for work, (_, times, _) in WORKS.items())
        return
    for seed in SEEDS:
        for observation in OBSERVATIONS:
            for work, (_, _, calls) in WORKS.items():
                yield work, calls, observation, seed


def name_of(part: str, method: str, cell: tuple[str, int, int, int]) -> str:
    """How a cell is kept."""
    return "/".join([part, method, *map(str, cell)])


def main() -> None:
    """Work what is not kept, one checkout after the other, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, help="another checkout")
    parser.add_argument("--part", choices=("errors", "times"), default="errors")
    parser.add_argument("--method", choices=METHODS, action="append")
    parser.add_argument("--work", choices=WORKS, action="append")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.cell:
        found = work_cell(*json.loads(given.cell))
        print("\n" + json.dumps(found))  # sbi leaves its last line open
        return
    end = time.monotonic() + 60.0 * given.minutes
    kept = json.loads(given.out.read_text())["cells"] if given.out.exists() else {}
    trees = {"before": given.before, "now": HERE.parents[1], "npe": HERE.parents[1]}
    for cell in wanted(given.part):
        if cell[0] not in (given.work or WORKS):
            continue
        for method in given.method or METHODS:
            name = name_of(given.part, method, cell)
            if name in kept or trees[method] is None or time.monotonic() > end:
                continue
            own = kept.get(name_of(given.part, "now", cell), {})
            kept[name] = run_cell(*cell, method, trees[method].resolve(), own.get("encoder", ""))
            given.out.write_text(json.dumps({"cells": kept}, indent=1) + "\n")
            print(name, kept[name], flush=True)
    given.out.with_suffix(".md").write_text(table(kept))
    print(table(kept))


def table(kept: dict[str, Any]) -> str:
    """Times of cells worked in turn, and errors with paired differences, as Markdown."""
    from abi.studies.engine import tables

    times, errors = [], []
    for work, (_, calls, _) in WORKS.items():
        seconds = {
            method: kept.get(name_of("times", method, (work, calls, 0, 0)), {}).get("cpu_seconds")
            for method in METHODS
        }
        both = seconds["before"] and seconds["now"]
        gain = f"{seconds['before'] / seconds['now']:.1f}" if both else ""
        shown = [f"{seconds[m]:.0f}" if seconds[m] else "" for m in METHODS]
        times.append([work, f"{calls:,}", *shown[:2], gain, GOALS[work], shown[2]])
    for work, (_, _, calls) in WORKS.items():
        pairs = [
            (kept[one], kept[two])
            for seed in SEEDS
            for k in OBSERVATIONS
            if (one := name_of("errors", "before", (work, calls, k, seed))) in kept
            and (two := name_of("errors", "now", (work, calls, k, seed))) in kept
        ]
        if len(pairs) > 1:
            shown = [part for score in ("c2st", "w1") for part in _compared(pairs, score)]
            errors.append([work, f"{calls:,}", len(pairs), *shown])
    heads = ["work", "calls", "before, CPU s", "now", "times as fast", "goal", "sbi's NPE"]
    lines = tables.table(heads, times)
    heads = ["C2ST before", "now", "difference", "W1, exact sds, before", "now", "difference"]
    lines += ["", *tables.table(["work", "calls", "fits", *heads], errors)]
    return "\n".join(lines) + "\n"


def _compared(pairs: list[tuple[dict[str, Any], dict[str, Any]]], score: str) -> list[str]:
    from abi.studies.engine.tables import average, mean_of

    before, now = ([pair[k][score] for pair in pairs] for k in (0, 1))
    gap, half = mean_of([b - a for a, b in zip(before, now, strict=True)])
    return [f"{average(before):.3f}", f"{average(now):.3f}", f"{gap:+.3f} ± {half:.3f}"]


if __name__ == "__main__":
    main()
