"""Time and memory of every test by the number of pairs and parameters.

q is exact, theta | x ~ N(x / 2, 1/2) of as many parameters as x has values; each test runs as
`validate` runs it, in a process of its own with one thread, 200 draws of q at each x (a test that
takes fewer has its own number). A cell is CPU seconds, memory above that of the imports, and the
p-value; or the one line that the test refuses with. Beyond 120 CPU seconds or 8 GiB it is stopped.

    python examples/benchmarks/validation_size.py FOLDER [MINUTES]    # cells are kept in FOLDER

Nothing is begun after so many minutes. Writes validation_size.json and .md beside it.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from measure import MACHINE, save

RESULT = Path(__file__).with_suffix(".json")
PAIRS, WIDTHS = (10, 200, 2_000, 20_000), (1, 10, 100)
SECONDS, MEMORY = 120, 8 << 30


def work(test: str, pairs: int, width: int) -> dict[str, Any]:
    """One cell, in this process."""
    import torch

    import validation
    from simulators import GaussianLinear, sample_joint

    torch.set_num_threads(1)
    test_of = validation.METHODS[test]
    theta, x = sample_joint(GaussianLinear(width, 1.0, 1.0), pairs, seed=1)

    def q(num_samples: int, x: torch.Tensor) -> torch.Tensor:
        return torch.randn(num_samples, *x.shape).mul_(0.5**0.5).add_(x / 2)

    with contextlib.suppress(ValueError):
        test_of(q, theta[:25, :1], x[:25, :1], seed=0)  # what is imported and compiled as it runs
    before, start = peak(), time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(start) + SECONDS, int(start) + SECONDS + 5))
    try:
        report = validation.validate(q, theta, x, test, num_samples=200)
    except ValueError as refused:
        return {"refused": str(refused)}
    return {
        "seconds": round(time.process_time() - start, 2),
        "mebibytes": round((peak() - before) / 1024),
        "p_value": report.p_value,
    }


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def cell(test: str, pairs: int, width: int, folder: Path, end: float) -> dict[str, Any]:
    """One cell, kept."""
    path = folder / f"{test}--{pairs}--{width}.json"
    if not path.is_file():
        if time.monotonic() >= end:
            return {"test": test, "pairs": pairs, "width": width, "stopped": "not run"}
        asked = [sys.executable, __file__, "cell", test, str(pairs), str(width)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            asked, capture_output=True, text=True, check=False, env=environment,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY)),
        )  # fmt: skip
        found = {"stopped": f"over {SECONDS} s"} if done.returncode < 0 else None
        if done.returncode > 0:
            found = {"stopped": done.stderr.strip().splitlines()[-1][:120]}
        values = found or json.loads(done.stdout.splitlines()[-1])
        path.write_text(json.dumps({"test": test, "pairs": pairs, "width": width, **values}))
        print(path.stem, values, flush=True)
    kept: dict[str, Any] = json.loads(path.read_text())
    return kept


def markdown(cells: list[dict[str, Any]]) -> str:
    from abi.studies.engine.tables import table

    lines = ["# Time and memory of each test", "", "CPU seconds, MiB above the imports.", ""]
    heads = [f"N {pairs:,}, d {width}" for pairs in PAIRS for width in WIDTHS]
    rows = [
        [test, *(_text(one) for one in cells if one["test"] == test)]
        for test in dict.fromkeys(one["test"] for one in cells)
    ]
    lines += table(["test", *heads], rows)
    said = sorted({one["refused"] for one in cells if "refused" in one})
    return "\n".join([*lines, "", *(f"- refused: {text}" for text in said)]) + "\n"


def _text(one: dict[str, Any]) -> str:
    if "seconds" in one:
        return f"{one['seconds']:.3g} s, {one['mebibytes']}"
    return "refused" if "refused" in one else one["stopped"]


def main() -> None:
    if sys.argv[1] == "cell":
        print(json.dumps(work(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
        return
    from validation import METHODS

    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60.0 * float(sys.argv[2] if len(sys.argv) > 2 else "inf")
    cells = [cell(test, n, d, folder, end) for test in METHODS for n in PAIRS for d in WIDTHS]
    save(__file__, {"cells": cells, "machine": f"{MACHINE}, one thread"})
    RESULT.with_suffix(".md").write_text(markdown(cells))


if __name__ == "__main__":
    main()
