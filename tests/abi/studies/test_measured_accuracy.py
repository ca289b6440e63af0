"""The accuracy tables of the documentation say what the study measured, number by number."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from abi.studies.engine.cell_file import CellFile
from abi.studies.engine.cells import Cell

ROOT = Path(__file__).parents[3]
PAPER = ROOT / "examples/paper"
sys.path.insert(0, str(PAPER))

from accuracy_results import ABOUT, by_observation, mean, page  # noqa: E402

KEPT = CellFile(PAPER / "accuracy.json", ABOUT, page).cells
CELLS = [cell for cell in KEPT if not cell.error]
FLOORS = {(c.model, c.observation): c for c in CELLS if c.method == "floor"}
MODELS = {
    "multimodal Gaussian": "MultimodalGaussian",
    "Gaussian": "MultimodalGaussian",
    "M/G/1 queue": "MG1",
    "queue": "MG1",
    "cosine": "Cosine",
    "two moons": "TwoMoons",
}
METHODS = {
    "ABI": "abi",
    "ABI as published": "abi_paper_potnet",
    "ABI as published, x as it is": "abi_paper_raw",
    "exact draws, a hundredth of the calls": "exact_particles",
    "SNPE, one round, both orders": "snpe_1_both_orders",
    "SNPE, one round": "snpe_1",
    "SNPE, two rounds": "snpe_2",
    "SNLE, one round": "snle_1",
    "SNLE, two rounds": "snle_2",
    "SMC-ABC": "smc_abc",
    "rejection ABC": "rejection_abc",
    "WABC": "wabc",
    "ABC-SS": "abc_ss",
    "WGAN-GP": "wgan_gp",
    "WGAN-GP, 1,500 steps": "wgan_gp_1500",
}


def table(heading: str) -> list[list[str]]:
    """The page's table that begins with ``heading``: its entries by row, the headings first."""
    lines = (ROOT / "docs/explanation/measured.md").read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(heading))
    end = next(i for i in range(start, len(lines)) if not lines[i].startswith("|"))
    rows = [[entry.strip(" *") for entry in line[1:-1].split("|")] for line in lines[start:end]]
    return [rows[0], *rows[2:]]


def place(label: str, before: tuple[str, int] | None) -> tuple[str, int]:
    """Model and budget of a label, such as "cosine, 15,000"; the model before where it has none."""
    name, _, calls = label.rpartition(", ")
    model = MODELS.get(name) or (before[0] if before else "")
    return model, int(calls.replace(",", ""))


def cells_of(at: tuple[str, int], method: str) -> list[Cell]:
    return [c for c in CELLS if (c.model, c.budget) == at and c.method == METHODS[method]]


def digits(value: float, places: int = 2) -> str:
    """As a table has it: rounded once, and no -0.00."""
    return f"{round(value, places) + 0.0:.{places}f}"


MEASURES = [
    "W1 less that of two exact samples",
    "in posterior sds (two exact samples)",
    "C2ST",
    "fits",
    "CPU s",
]
ROWS: list[tuple[tuple[str, int], list[str]]] = []
for entries in table("| model, calls | method |")[1:]:
    previous = ROWS[-1][0] if ROWS else None
    here = place(entries[0], previous) if entries[0] or previous is None else previous
    ROWS.append((here, entries[1:]))


def test_the_table_of_methods_has_these_columns() -> None:
    assert table("| model, calls | method |")[0] == ["model, calls", "method", *MEASURES]
    assert {model for (model, _), _ in ROWS} == {cell.model for cell in CELLS}


@pytest.mark.parametrize(("at", "row"), ROWS, ids=lambda part: " ".join(map(str, part[:2])))
def test_a_row_of_the_table_of_methods_is_what_was_measured(
    at: tuple[str, int], row: list[str]
) -> None:
    cells = cells_of(at, row[0])
    excess = mean(cells, "w1", FLOORS)
    assert excess.half is not None
    in_sds = digits(mean(cells, "normalised_w1").value)
    if "(" in row[2]:
        floor = mean([FLOORS[c.model, c.observation] for c in cells], "normalised_w1")
        in_sds += f" ({digits(floor.value)})"
    assert row[1:] == [
        f"{digits(excess.value)} ± {digits(excess.half)}",
        in_sds,
        digits(mean(cells, "c2st").value),
        str(len(cells)),
        digits(sum(c.fit_seconds for c in cells) / len(cells), 0),
    ]


HEADS, *BY_CALLS = table("| method | cosine, ")
COLUMNS: list[tuple[str, int]] = []
for head in HEADS[1:]:
    COLUMNS.append(place(head, COLUMNS[-1] if COLUMNS else None))


def test_the_table_by_calls_is_what_was_measured() -> None:
    assert len(BY_CALLS) >= 4
    for method, *entries in BY_CALLS:
        for at, entry in zip(COLUMNS, entries, strict=True):
            if entry:  # an empty one claims nothing
                excess = digits(mean(cells_of(at, method), "w1", FLOORS).value)
                assert entry.split(" ")[0].strip("*") == excess, (method, at)


@pytest.mark.parametrize("row", table("| ABI nearer than |")[1:], ids=lambda row: row[0])
def test_a_row_of_the_pairs_is_what_was_measured(row: list[str]) -> None:
    rival, *entries = row
    found = dict.fromkeys(["c2st", "w1", "normalised_w1", "columns"], 0)
    assert len(COLUMNS) == 10
    for at in COLUMNS:
        ours, theirs = cells_of(at, "ABI"), cells_of(at, rival)
        assert len(ours) == len(theirs) == 15, "three seeds at five observations"
        rivals = by_observation(theirs)
        for observed, own in by_observation(ours).items():
            for score in ("c2st", "w1", "normalised_w1"):
                found[score] += own.scores[score] < rivals[observed].scores[score]
        less = mean(ours, "w1", rivals)
        assert less.half is not None
        found["columns"] += less.value + less.half < 0
    assert [int(entry) for entry in entries] == list(found.values())


def test_the_page_of_the_study_is_written_from_its_cells() -> None:
    assert (PAPER / "accuracy.md").read_text() == page(KEPT)
