"""The one p-value of `validate`: its level on exact posteriors, its power beside every other test.

Level: q exact, 500 batches of pairs for each of four laws and three numbers of pairs; three laws of
five parameters (normal, skew, two modes), whose q offers draws alone, and the papers' Gaussian
family, whose q has a density. 50 draws of q at each x.

Power: the eight failures of the power map (examples/paper/power_map.py), 200 pairs, all tests of a
batch on the same pairs, at the settings of the map. "Holm" rejects where one of the twelve tests
does, adjusted for their number: what `validate` did before it had a p-value of its own. A failure's
strengths are worked upwards until the panel, Holm and the best single test all reject always.

    python examples/paper/panel.py level|power FOLDER    # cells are kept in FOLDER
    python examples/paper/panel.py table FOLDER

Writes panel.json and .md beside it.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from power_map import FAILURES, TESTS

import validation
from abi.studies.benchmark.verdict.laws import LAWS, pairs
from abi.studies.engine import tables
from abi.studies.engine.cell_file import kept
from simulators.random import child_seed
from validation.laboratory.rates import clopper_pearson
from validation.perturbations import find_failure
from validation.scores.uniformity import holm

RESULT = Path(__file__).with_suffix(".json")
SEED = 20_261_124
SIZES, LEVELS, BATCHES = (50, 200, 1_000), (0.05, 0.01), 500
NUM_PAIRS, REPETITIONS = 200, 30


def law_p_value(law: str, num_pairs: int, seed: int) -> float:
    if law == "gaussian family":
        task = find_failure("covariance").at(0.0)
        theta, x = task.joint(num_pairs, seed)
        return validation.panel(task.q, theta, x, num_samples=50, seed=seed).p_value
    theta, x, draws = pairs(law, LAWS[law], num_pairs, 50, seed)
    q = validation.as_posterior((theta, x, draws), layout="samples_first")
    return validation.panel(q, theta, x, num_samples=50, seed=seed).p_value


def level_cells() -> Iterator[tuple[str, Callable[[], dict[str, Any]]]]:
    for part in range(BATCHES // 50):
        for law in (*LAWS, "gaussian family"):
            for size in SIZES:
                yield (
                    f"level--{law}--{size}--{part}",
                    lambda law=law, size=size, part=part: {
                        "law": law,
                        "num_pairs": size,
                        "p_values": [
                            law_p_value(law, size, child_seed(SEED, 50 * part + k))
                            for k in range(50)
                        ],
                    },
                )


def failure_cell(name: str, strength: float) -> dict[str, Any]:
    task = find_failure(name).at(strength)
    p_values: dict[str, list[float]] = {test: [] for test in TESTS}
    seconds = dict.fromkeys(TESTS, 0.0)
    for r in range(REPETITIONS):
        theta, x = task.joint(NUM_PAIRS, child_seed(SEED, r))
        for test, whole in TESTS.items():
            start = time.process_time()
            result = validation.METHODS[test](task.q, theta, x, seed=r, **whole.keywords)
            p_values[test].append(float(result.p_value))
            seconds[test] += time.process_time() - start
    return {"failure": name, "strength": strength, "p_values": p_values, "seconds": seconds}


def rates(cell: dict[str, Any]) -> dict[str, float]:
    """Shares rejected at .05, by test, and by Holm over all but the panel."""
    found = {test: sum(p <= 0.05 for p in ps) / len(ps) for test, ps in cell["p_values"].items()}
    rows = zip(*(ps for test, ps in cell["p_values"].items() if test != "panel"), strict=True)
    adjusted = [min(holm(list(row))) for row in rows]
    return found | {"holm": sum(p <= 0.05 for p in adjusted) / len(adjusted)}


def cell_of(folder: Path, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    cell = kept(folder / f"{name.replace(' ', '_')}.json", work)
    print(name, flush=True)
    return cell


def power(folder: Path) -> None:
    for name in FAILURES:
        for strength in [s for s in find_failure(name).strengths if s > 0]:
            cell = cell_of(
                folder,
                f"power--{name}--{strength:g}",
                lambda name=name, strength=strength: failure_cell(name, strength),
            )
            found = rates(cell)
            best = max(rate for test, rate in found.items() if test not in ("panel", "holm"))
            if min(found["panel"], found["holm"], best) == 1.0:
                break


def table(folder: Path) -> None:
    level: dict[tuple[str, int], list[float]] = {}
    for path in sorted(folder.glob("level--*.json")):
        cell = json.loads(path.read_text())
        for law in (cell["law"], "all"):
            level.setdefault((law, cell["num_pairs"]), []).extend(cell["p_values"])
    powers = [json.loads(path.read_text()) for path in folder.glob("power--*.json")]
    powers.sort(key=lambda cell: (FAILURES.index(cell["failure"]), cell["strength"]))
    values = {
        "level": [
            {"law": law, "num_pairs": size, "batches": len(ps), "rejected": {
                f"{a:g}": sum(p <= a + 1e-9 for p in ps) / len(ps) for a in LEVELS}}
            for (law, size), ps in sorted(level.items())
        ],
        "power": [
            {"failure": c["failure"], "strength": c["strength"], "repetitions": REPETITIONS,
             "rejected": rates(c),
             "seconds": {t: round(s / REPETITIONS, 3) for t, s in c["seconds"].items()}}
            for c in powers
        ],
        "num_pairs_of_power": NUM_PAIRS,
        "settings": {test: str(whole) for test, whole in TESTS.items()},
        "seed": SEED,
        "machine": "2 shared x86-64 cores, one thread",
        "versions": {"torch": torch.__version__},
    }  # fmt: skip
    RESULT.write_text(json.dumps(values, indent=1) + "\n")
    RESULT.with_suffix(".md").write_text(markdown(values))


def markdown(values: dict[str, Any]) -> str:
    levels, powers = [], []
    for row in values["level"]:
        share, count = row["rejected"]["0.05"], row["batches"]
        low, high = clopper_pearson(round(share * count), count)
        cells = [row["law"], row["num_pairs"], count, f"{share:.3f}", f"{low:.3f} to {high:.3f}"]
        levels.append([*cells, f"{row['rejected']['0.01']:.3f}"])
    for row in values["power"]:
        found = row["rejected"]
        single = {t: rate for t, rate in found.items() if t not in ("panel", "holm")}
        best = max(single, key=lambda t: single[t])
        cells = [row["failure"], f"{row['strength']:g}", f"{found['panel']:.2f}"]
        powers.append([*cells, f"{found['holm']:.2f}", best, f"{single[best]:.2f}"])
    lines = ["# One p-value: level and power", "", "## Level: q exact, share rejected", ""]
    heads = "law", "N", "batches", "at .05", "95% interval", "at .01"
    lines += [*tables.table(heads, levels), ""]
    lines += [f"## Power: {NUM_PAIRS} pairs, {REPETITIONS} batches, share rejected at .05", ""]
    heads = "failure", "strength", "panel", "Holm over twelve", "best single test", "its power"
    lines += tables.table(heads, powers)
    if values["power"]:
        spent = [row["seconds"] for row in values["power"]]
        panel = sum(row["panel"] for row in spent) / len(spent)
        others = sum(sum(row.values()) - row["panel"] for row in spent) / len(spent)
        lines += ["", f"CPU seconds a batch: the panel {panel:.2f}, the twelve tests {others:.2f}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    torch.set_num_threads(1)
    what, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    if what == "level":
        for name, work in level_cells():
            cell_of(folder, name, work)
    elif what == "power":
        power(folder)
    table(folder)


if __name__ == "__main__":
    main()
