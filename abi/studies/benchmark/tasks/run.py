"""``abi benchmark tasks``: choose, work, write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from simulators import TASKS

from ..choice import named
from ..experiment import Place
from .methods import WHAT
from .results import markdown, summary
from .study import MANY_CALLS, NUM_DRAWS, NUM_OBSERVATIONS, TaskStudy, plan

BUDGETS = (1_000, 10_000, MANY_CALLS)
_QUICK = 1_000  # calls, and draws a side


def run_tasks(
    quick: bool,
    labels: Sequence[str] | None,
    methods: Sequence[str] | None,
    place: Place,
    *,
    repetitions: int | None,
) -> tuple[dict[str, Any], str]:
    """Work the chosen tasks; results as JSON has them, and as tables.

    Args:
        quick: one observation, the small budget, few draws.
        labels: of the tasks; all when omitted.
        methods: of :data:`.study.WHAT`; all when omitted.
        place: where cells are kept, and until when they are worked, in one process.
        repetitions: observations a task, ten at most.
    """
    count = repetitions or (1 if quick else NUM_OBSERVATIONS)
    if count > NUM_OBSERVATIONS:
        raise ValueError(f"`--repetitions` of tasks must be 1 to {NUM_OBSERVATIONS}; got {count}.")
    if place.workers > 1:
        raise ValueError("`--workers` of tasks must be 1: its CPU seconds are of one process.")
    study = TaskStudy(place.cells, _QUICK if quick else NUM_DRAWS)
    cells = plan(
        named(TASKS, labels, "--part"), named(WHAT, methods, "--test"),
        BUDGETS[:1] if quick else BUDGETS, count, place.seed,
    )  # fmt: skip
    found = study.run(cells, place.seconds_left / 60.0, place.say)
    values = summary(found, study.num_draws, place.seed)
    return values, markdown(values)
