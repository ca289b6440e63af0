"""The study of the public benchmark: what is worked in which order, and the page that tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from abi.studies.benchmark.experiment import Place
from abi.studies.benchmark.tasks import run
from abi.studies.benchmark.tasks.methods import METHODS, OURS, WHAT
from abi.studies.benchmark.tasks.results import KNOWN, markdown, summary
from abi.studies.benchmark.tasks.study import MANY_CALLS, MANY_CALLS_OF, observations, plan
from abi.studies.engine.cells import Cell
from simulators import TASKS


def test_every_task_has_figures_and_a_goal_at_every_budget() -> None:
    assert KNOWN.keys() == TASKS.keys()
    for figures in KNOWN.values():
        assert set(figures) - {MANY_CALLS} == set(run.BUDGETS) - {MANY_CALLS}
        assert all(
            0.5 <= figures[calls].goal <= figures[calls].best_2021 for calls in (1_000, 10_000)
        )
    assert {task for task, figures in KNOWN.items() if MANY_CALLS in figures} == set(MANY_CALLS_OF)


def test_a_plan_that_is_cut_has_abi_at_every_task_first() -> None:
    cells = plan(list(TASKS), list(WHAT), run.BUDGETS, 2, 0)
    keys = [cell.key for cell in cells]
    both = len(TASKS) * 2 * (1 + len(METHODS) * 2)
    assert len(set(keys)) == len(keys) == both + 2 * len(MANY_CALLS_OF)
    assert {c.method for c in cells if c.budget == MANY_CALLS} == {OURS}
    first = cells[: 3 * len(TASKS)]
    assert {(c.model, c.method, c.budget) for c in first} == {
        (task, method, budget)
        for task in TASKS
        for method, budget in [("floor", 0), ("abi", 1_000), ("abi", 10_000)]
    }
    assert {c.observation for c in first} == {0}
    assert not any(cell.method == OURS for cell in cells[6 * len(TASKS) + 2 * len(MANY_CALLS_OF) :])


def test_observations_are_the_same_at_every_call() -> None:
    assert observations("two_moons").shape == (10, 2)
    assert observations("two_moons").equal(observations("two_moons"))


def test_cells_are_worked_once_and_set_beside_published_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "BUDGETS", (200,))
    monkeypatch.setattr(run, "_QUICK", 200)
    place = Place(tmp_path)
    asked = (True, ["gaussian_mixture"], ["abi", "floor"], place)
    values, _ = run.run_tasks(*asked, repetitions=1)
    by_method = {cell["method"]: cell for cell in values["cells"]}
    assert not any(cell["error"] for cell in values["cells"])
    ours, floor = by_method["abi"]["scores"], by_method["floor"]["scores"]
    assert by_method["abi"]["calls"] <= 200
    assert floor["normalised_w1"] < ours["normalised_w1"]
    assert "c2st" not in floor
    again, _ = run.run_tasks(*asked[:3], Place(tmp_path, end=0.0), repetitions=1)
    assert again["cells"] == values["cells"]


def test_the_page_sets_figures_goals_and_pairs_side_by_side() -> None:
    scores = {
        "normalised_w1": 0.2, "largest_mean_bias": 0.1, "smallest_sd_ratio": 0.9,
        "largest_sd_ratio": 1.1,
    }  # fmt: skip
    cells = [
        Cell("sir", k, 0, method, 1_000, scores | {"c2st": c2st + 0.01 * k}, 1_000, 7.0)
        for method, c2st in [("abi", 0.6), ("npe", 0.7)]
        for k in (0, 1)
    ]
    cells.append(Cell("sir", 5, 0, "npe", 1_000, scores | {"c2st": 0.9}, 1_000, 7.0))
    cells.append(Cell("slcp", 0, 0, "abi", 1_000, scores | {"c2st": 0.801}, 1_000, 7.0))
    cells.append(Cell("slcp", 0, 0, "npe", 1_000, scores | {"c2st": 0.711}, 1_000, 7.0))
    page = markdown(summary([*cells, Cell("sir", 0, 0, "floor", 0, scores)], 10_000, 0))
    assert "| sir | 0.637 | 0.525 | 0.525 | 0.605 +- 0.064 (2) |" in page
    assert "| mean over tasks | 0.779 |  | 0.682 | 0.703 (2 tasks) |" in page
    assert "| sir | 0.705, abi 0.605 (2) |" in page  # x5, which we were not fitted at, is left out
    assert "| slcp | 0.711, abi 0.801 (1) |" in page
    assert "| mean over tasks | 0.708, abi 0.703 |" in page
    assert "| abi less it | -0.005 +- 1.207 |" in page
    assert "| abi is nearer | 2 of 3 |" in page
    assert "| sir | npe | 3 | 0.77 | 0.20 | 0.20 | 0.10 | 0.90 | 1.10 | 7 |" in page


def test_more_observations_than_there_are_and_more_processes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`--repetitions` of tasks must be 1 to 10; got 11"):
        run.run_tasks(True, None, None, Place(tmp_path), repetitions=11)
    with pytest.raises(ValueError, match="`--workers` of tasks must be 1"):
        run.run_tasks(True, None, None, Place(tmp_path, workers=2), repetitions=1)
