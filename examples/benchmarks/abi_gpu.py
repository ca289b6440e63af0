"""What a GPU changes: the fits of abi_cost.py with their networks trained on a core, and on a GPU.

Seconds are by the clock, of a process of its own for each fit, which has one thread and has the GPU
already started. Fits may run beside one another (``--jobs``), as the file says.

    python examples/benchmarks/abi_gpu.py --jobs 3      where torch finds a GPU

Cells are kept in abi_gpu.json as they come; abi_gpu.md is the table.
"""

from __future__ import annotations

import argparse
import json
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

import torch
from abi_cost import BASE, SEED, fit
from measure import in_own_process, versions

from abi.studies.engine import tables

RESULT = Path(__file__).with_suffix(".json")
VALUES: dict[str, tuple[Any, ...]] = {
    "num_simulations": (1_000, 10_000, 40_000),
    "given_pairs": (100_000, 1_000_000),
    "theta_dim": (20, 50),
    "x_dim": (1_000, 10_000),
    "num_flows": (3,),
    "encoder": ("both_orders",),
}
DEVICES = ("cpu", "cuda")


def measure(setting: dict[str, Any], device: str, pipe: Any) -> None:
    """Fit in this process, and send how long it took."""
    torch.set_num_threads(1)
    torch.zeros(1, device=device)
    fit(BASE | {"num_simulations": 200, "num_rounds": 1}, device)  # imports, kernels compiled
    started = time.perf_counter()
    fit(setting, device)
    cell = {"setting": setting, "seconds": round(time.perf_counter() - started, 2)}
    if device != "cpu":
        cell["gpu_mib"] = round(torch.cuda.max_memory_allocated() / 2**20)
    pipe.send(cell)


def table(cells: dict[str, dict[str, Any]]) -> str:
    """Markdown, a row a setting."""
    base = "; ".join(f"{name} {value}" for name, value in BASE.items())
    about = f"Base: {base}. Each factor varied alone. Seconds by the clock; memory is the GPU's."
    rows = []
    for factor, values in VALUES.items():
        for value in values:
            core, gpu = (cells.get(f"{factor}={value}@{device}") for device in DEVICES)
            if core and gpu:
                shown = f"{value:,}" if isinstance(value, int) else value
                slow, fast = core["seconds"], gpu["seconds"]
                times = [f"{slow:.1f}", f"{fast:.1f}", f"{slow / fast:.2f}"]
                rows.append([factor, shown, *times, f"{gpu['gpu_mib']:,}"])
    heads = ["factor", "value", "one core, s", "GPU, s", "times as fast", "GPU MiB"]
    return "\n".join([about, "", *tables.table(heads, rows)]) + "\n"


def main() -> None:
    """Work the cells that are missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1, help="fits beside one another")
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    kept = json.loads(arguments.out.read_text()) if arguments.out.exists() else {"cells": {}}
    kept |= {
        "gpu": torch.cuda.get_device_name(),
        "jobs": arguments.jobs,
        "versions": versions("abi-toolkit", "torch", "zuko"),
        "seed": SEED,
    }
    cells = kept["cells"]
    alone = partial(in_own_process, start="spawn")  # a GPU does not bear a fork
    with ThreadPoolExecutor(arguments.jobs) as pool:
        asked = {
            pool.submit(alone, measure, BASE | {factor: value}, device): name
            for factor, values in VALUES.items()
            for value in values
            for device in DEVICES
            if (name := f"{factor}={value}@{device}") not in cells
        }
        for job in as_completed(asked):
            cells[asked[job]] = job.result()
            arguments.out.write_text(json.dumps(kept, indent=1) + "\n")
            print(asked[job], cells[asked[job]]["seconds"], flush=True)
    arguments.out.with_suffix(".md").write_text(table(cells))
    print(table(cells))


if __name__ == "__main__":
    main()
