"""The ten tasks by their names, as the public benchmark defines them."""

from __future__ import annotations

import pytest

import simulators

SIZES = {
    "two_moons": (2, 2),
    "slcp": (5, 8),
    "slcp_distractors": (5, 100),
    "gaussian_mixture": (2, 2),
    "gaussian_linear": (10, 10),
    "gaussian_linear_uniform": (10, 10),
    "bernoulli_glm": (10, 10),
    "bernoulli_glm_raw": (10, 100),
    "sir": (2, 10),
    "lotka_volterra": (4, 20),
}


def test_every_task_of_the_benchmark_is_there_under_its_name_and_of_its_size() -> None:
    found = {name: (task.theta_dim, task.x_dim) for name, task in simulators.TASKS.items()}
    assert found == SIZES
    with pytest.raises(TypeError):
        simulators.TASKS["mine"] = simulators.MG1()  # type: ignore[index]
