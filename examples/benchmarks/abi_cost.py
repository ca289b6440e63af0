"""What a fit costs, and what the cost grows with: CPU seconds, memory, and where the time goes.

The model is linear with Gaussian noise, x = A theta + noise, whose simulations cost next to
nothing, so that all that is measured is ABI. Around one base setting each factor is varied alone:
dimensions of theta and x, slices K, levels H, rounds, simulator calls, pairs that were simulated
before, flows of the answer, and the choice of an encoder. Each fit runs in a process of its own,
forked after the imports: its peak memory is told above what was there before. Stages are cumulative
times of a profile that counts CPU time (functions of Python alone, so that it slows the fit by
little).

    python examples/benchmarks/abi_cost.py              about twenty minutes of one core
    python examples/benchmarks/abi_cost.py --minutes 2  and again, to go on

Cells are kept in abi_cost.json as they come; abi_cost.md is the table, abi_cost.png its picture.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from measure import MACHINE, in_own_process, versions
from torch.distributions import Independent, Normal

import abi
import simulators
from abi.studies.engine import tables

RESULT = Path(__file__).with_suffix(".json")
SEED = 2025
BASE: dict[str, Any] = {
    "theta_dim": 5, "x_dim": 20, "num_slices": 10, "num_levels": 10, "num_rounds": 2,
    "num_simulations": 1_000, "given_pairs": 0, "num_flows": 1, "encoder": "flat",
}  # fmt: skip
FACTORS: dict[str, tuple[Any, ...]] = {
    "theta_dim": (20, 2, 10, 50),
    "x_dim": (200, 10, 1_000, 10_000),
    "num_slices": (40, 0),
    "num_levels": (40, 5),
    "num_rounds": (4, 1),
    "num_simulations": (4_000, 500, 2_000, 10_000, 40_000),
    "given_pairs": (10_000, 100_000, 1_000_000),
    "num_flows": (3,),
    "encoder": ("auto",),
}
# Stage -> the function whose time it is, and the file that defines it.
STAGES = {
    "propose, simulate": ("_sample", "steps.py"),
    "quantile network": ("_train", "steps.py"),
    "distances": ("__call__", "kernel.py"),
    "flows": ("fit_answer", "answer.py"),
    "likelihood": ("pool_answer", "answer.py"),
    "region": ("ending", "placing.py"),
    "judging": ("_judged", "judging.py"),
}


def fit(setting: dict[str, Any], device: str = "cpu") -> None:
    """One fit of the linear model, its networks trained on a device."""
    d, p = setting["theta_dim"], setting["x_dim"]
    A = torch.randn(p, d, generator=torch.Generator().manual_seed(SEED)) / d**0.5
    prior = Independent(Normal(torch.zeros(d), torch.ones(d)), 1)
    config = abi.ABIConfig(
        num_slices=setting["num_slices"], num_levels=setting["num_levels"],
        num_flows=setting["num_flows"], encoder=setting["encoder"],
    )  # fmt: skip

    def simulator(theta: torch.Tensor) -> torch.Tensor:
        return theta @ A.T + torch.randn(len(theta), p)

    given = None
    if setting["given_pairs"]:
        theta = simulators.sample_prior(prior, setting["given_pairs"], SEED)
        given = simulators.simulate(simulator, theta, seed=SEED, progress=False)
    abi.fit(
        prior, simulator, A @ torch.full((d,), 0.5), simulations=given,
        num_simulations=setting["num_simulations"], num_rounds=setting["num_rounds"], seed=SEED,
        config=config, device=device, progress=False,
    )  # fmt: skip


def measure(setting: dict[str, Any], pipe: Any) -> None:
    """Fit in this process, and send what it cost."""
    torch.set_num_threads(1)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    before = _memory("VmRSS")
    profile = cProfile.Profile(time.process_time, builtins=False)
    started = time.process_time()
    profile.runcall(fit, setting)
    seconds = time.process_time() - started
    pipe.send(
        {
            "setting": setting,
            "cpu_seconds": round(seconds, 2),
            "peak_mib": round((_memory("VmHWM") - before) / 1024, 1),
            "stages": {name: round(s, 2) for name, s in _stages(profile)},
        }
    )


def _memory(field: str) -> int:
    """A field of this process's status, in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise ValueError(f"/proc/self/status has no {field}")


def _stages(profile: cProfile.Profile) -> Iterator[tuple[str, float]]:
    """CPU seconds of each stage, callees included."""
    rows: dict[Any, Any] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    for stage, (function, file) in STAGES.items():
        found = [
            row[3] for (path, _, name), row in rows.items()
            if name == function and Path(path).name == file and "abi" in Path(path).parts
        ]  # fmt: skip
        yield stage, sum(found)


def run(setting: dict[str, Any]) -> dict[str, Any]:
    """The cost of a fit in a process of its own."""
    cell: dict[str, Any] = in_own_process(measure, setting)
    return cell


def settings() -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and setting of each cell, in an order that is balanced when cut."""
    yield "base", BASE
    for place in range(max(map(len, FACTORS.values()))):
        for factor, values in FACTORS.items():
            if place < len(values):
                yield f"{factor}={values[place]}", BASE | {factor: values[place]}


def table(cells: dict[str, Any]) -> str:
    """Markdown, a row a setting; the base stands in each factor's place among the others."""
    heads = ["factor", "value", "CPU s", "times base", "peak MiB", *STAGES, "rest"]
    base = "; ".join(f"{name} {value}" for name, value in BASE.items())
    about = (
        f"Base: {base}. Each factor varied alone; {MACHINE}, one thread. Peak memory above that of "
        "the imports; stages as shares of the CPU time."
    )
    rows = []
    for factor, values in FACTORS.items():
        if not any(f"{factor}={value}" in cells for value in values):
            continue  # nothing to compare with the base yet
        ordered = [BASE[factor], *values]
        if not isinstance(BASE[factor], str):
            ordered.sort()
        for value in ordered:
            cell = cells.get("base" if value == BASE[factor] else f"{factor}={value}")
            if cell is not None:
                rows.append(_row(factor, value, cell, cells["base"]["cpu_seconds"]))
    return "\n".join([about, "", *tables.table(heads, rows)]) + "\n"


def _row(factor: str, value: Any, cell: dict[str, Any], base: float) -> list[str]:
    seconds = cell["cpu_seconds"]
    shares = [spent / seconds for spent in cell["stages"].values()]
    return [
        factor, f"{value:,}" if isinstance(value, int) else value, f"{seconds:.1f}",
        f"{seconds / base:.2f}", f"{cell['peak_mib']:.0f}",
        *(f"{share:.0%}" for share in (*shares, max(1.0 - sum(shares), 0.0))),
    ]  # fmt: skip


def picture(cells: dict[str, Any], path: Path) -> None:
    """CPU time and peak memory against each factor that is a number."""
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    names = [name for name, value in BASE.items() if isinstance(value, int) and name in FACTORS]
    figure, axes = plt.subplots(2, len(names), figsize=(2.1 * len(names), 4.4), sharey="row")
    for column, factor in zip(axes.T, names, strict=True):
        kept = {
            value: cells["base" if value == BASE[factor] else f"{factor}={value}"]
            for value in sorted({BASE[factor], *FACTORS[factor]})
            if value and (value == BASE[factor] or f"{factor}={value}" in cells)
        }
        for axis, what in zip(column, ("cpu_seconds", "peak_mib"), strict=True):
            axis.plot(list(kept), [cell[what] for cell in kept.values()], "o-", ms=3)
            axis.set(xscale="log", yscale="log")
            axis.xaxis.set_minor_formatter(NullFormatter())  # else the labels overlap
            axis.set_xticks([min(kept), max(kept)], [f"{end:,}" for end in (min(kept), max(kept))])
        column[1].set_xlabel(factor)
    axes[0, 0].set_ylabel("CPU seconds")
    axes[1, 0].set_ylabel("peak memory, MiB")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no fit after")
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    made_by = versions("abi-toolkit", "torch", "zuko")
    kept = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    same = kept.get("versions") == made_by
    cells = {
        name: kept["cells"][name]
        for name, setting in settings()
        if same and kept["cells"].get(name, {}).get("setting") == setting
    }
    stop = time.monotonic() + 60.0 * arguments.minutes
    fit(BASE | {"num_simulations": 200, "num_rounds": 1})  # imports and compiles, before the fork
    for name, setting in settings():
        if name in cells or time.monotonic() > stop:
            continue
        cells[name] = run(setting)
        head = {"machine": MACHINE, "versions": made_by, "seed": SEED, "cells": cells}
        arguments.out.write_text(json.dumps(head, indent=1) + "\n")
        print(name, cells[name]["cpu_seconds"], flush=True)
    if "base" in cells:
        arguments.out.with_suffix(".md").write_text(table(cells))
        picture(cells, arguments.out.with_suffix(".png"))
        print(table(cells))


if __name__ == "__main__":
    main()
