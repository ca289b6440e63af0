"""The study of the public benchmark: what is worked in which order, and the page that tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

from abi.studies.benchmark.experiment import Place
from abi.studies.benchmark.tasks import run
from abi.studies.benchmark.tasks.results import KNOWN, markdown
from abi.studies.benchmark.tasks.study import METHODS, WHAT, observations, plan
from simulators import TASKS


def test_every_task_has_figures_and_a_goal_at_every_budget() -> None:
    for calls in run.BUDGETS:
        assert KNOWN[calls].keys() == TASKS.keys()
        assert all(0.5 <= known.goal <= known.best_2021 for known in KNOWN[calls].values())


def test_a_plan_that_is_cut_has_abi_at_every_task_first() -> None:
    cells = plan(list(TASKS), list(WHAT), run.BUDGETS, 2, 0)
    keys = [cell.key for cell in cells]
    assert len(set(keys)) == len(keys) == len(TASKS) * 2 * (1 + len(METHODS) * 2)
    first = cells[: 3 * len(TASKS)]
    assert {(c.model, c.method, c.budget) for c in first} == {
        (task, method, budget)
        for task in TASKS
        for method, budget in [("floor", 0), ("abi", 1_000), ("abi", 10_000)]
    }
    assert {c.observation for c in first} == {0}
    assert all(cell.method == "npe" for cell in cells[-4 * len(TASKS) :])


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
    by_method = {row["method"]: row for row in values["cells"]}
    assert not any(row["error"] for row in values["cells"])
    assert by_method["abi"]["made"] <= 200
    assert by_method["floor"]["normalised_w1"] < by_method["abi"]["normalised_w1"]
    assert "c2st" not in by_method["floor"]
    again, _ = run.run_tasks(*asked[:3], Place(tmp_path, end=0.0), repetitions=1)
    assert again["cells"] == values["cells"]
    values["cells"] = [{**row, "calls": row["calls"] and 1_000} for row in values["cells"]]
    page = markdown(values)
    c2st = f"{by_method['abi']['c2st']:.3f}"
    assert f"| gaussian_mixture | 0.697 | 0.547 | 0.545 | {c2st} (1) |" in page
    assert f"| mean over tasks | 0.697 |  | 0.545 | {c2st} (1 tasks) |" in page


def test_more_observations_than_there_are_and_more_processes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`--repetitions` of tasks must be 1 to 10; got 11"):
        run.run_tasks(True, None, None, Place(tmp_path), repetitions=11)
    with pytest.raises(ValueError, match="`--workers` of tasks must be 1"):
        run.run_tasks(True, None, None, Place(tmp_path, workers=2), repetitions=1)
