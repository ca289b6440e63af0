"""What benchmarks here share: CPU seconds, processes, rounds, the JSON beside it."""

from __future__ import annotations

import importlib.metadata
import json
import multiprocessing
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MACHINE = "2 shared x86-64 cores"


def cpu_seconds() -> float:
    """CPU time of this process and of the children it has waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def fastest(runs: dict[str, Callable[[int], Any]], rounds: int) -> dict[str, float]:
    """CPU seconds of each run at its best.

    The runs take turns, so that a busy neighbour slows all alike, and each round has its own seed.
    """
    best = {name: float("inf") for name in runs}
    for round_ in range(rounds):
        for name, run in runs.items():
            start = cpu_seconds()
            run(round_ + 1)
            best[name] = min(best[name], cpu_seconds() - start)
    return best


def in_own_process(target: Callable[..., Any], *arguments: Any, start: str = "fork") -> Any:
    """What a function sends through the pipe that it is given last, from a process of its own."""
    context = multiprocessing.get_context(start)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(*arguments, theirs))  # type: ignore[attr-defined]
    process.start()
    theirs.close()
    sent = ours.recv()
    process.join()
    return sent


def versions(*packages: str) -> dict[str, str]:
    """Versions of those packages that are installed, and of Python."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def save(script: str, result: dict[str, Any]) -> None:
    """Write and print the result beside the script; it may name a machine of its own."""
    path = Path(script).with_suffix(".json")
    path.write_text(json.dumps({"machine": MACHINE, **result}, indent=2) + "\n")
    print(path.read_text())
