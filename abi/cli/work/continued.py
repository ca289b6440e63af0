"""What ``abi fit --continue`` works on: the run of a folder, and more calls for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...files.run_folder import Given, RunFolder
from ...plan import CHECK_FRACTION
from ...rounds.problem import pose
from ...rounds.steps import Work
from ...sampler import go_on, placed
from .check import found_simulator_and_prior
from .resumed import check_plan


def check_no_new_run(others: Mapping[str, Any]) -> None:
    """Refuse words of a new run beside ``--continue``.

    Raises:
        ValueError: naming the first.
    """
    for option, value in others.items():
        if value:
            raise ValueError(
                f"`{option}` cannot be changed by --continue: the run in the folder has its own. "
                "Leave it out."
            )


def continued(
    run_dir: Path,
    simulator: str | None,
    prior: str | None,
    asked: Mapping[str, Any],
    device: str | None,
    timeout: float | None,
) -> tuple[Any, RunFolder, Work]:
    """The simulator, the folder, and what is to be done; a run that has ended gets more rounds.

    Raises:
        ValueError: if the run cannot go on, or was asked for something else.
    """
    folder = RunFolder.open(run_dir)
    model, theta_prior = found_simulator_and_prior(run_dir, simulator, prior)
    if folder.holds_answer:
        if asked["--num-simulations"] is None:
            raise ValueError(
                f"`--num-simulations` is needed: the run in {run_dir} has ended; say how many "
                "calls more."
            )
        share = asked["--check-fraction"]
        more = asked["--num-simulations"], asked["--rounds"], asked["--seed"] or 0
        share = CHECK_FRACTION if share is None else share
        go_on(folder, (*more, share, asked["--stop-when"]))
    plan, x_o, names, _ = folder.request()
    check_plan(plan, asked, paper=False)
    folder.check_given(Given())
    plan = replace(plan, config=placed(plan.config, device))
    problem = pose(theta_prior, model, x_o, names, timeout=timeout)
    return model, folder, Work(problem, plan, None, folder.simulations, None)
