"""Pairs (model, x): simulated in equal parts, and parted into what trains, calibrates and checks.

Whatever the prior probabilities of the models, each gets as many calls: a network that never saw
data of a model cannot tell them. For the check a model is drawn for each pair, uniformly, and then
one of its simulations: so the pairs of the check are independent, and its test is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from simulators import Failure, Simulations, sample_prior, simulate
from simulators.random import child_seed, torch_generator
from simulators.running.engines import Engine

from ..rounds.problem import check_shapes, check_simulations, check_varies, check_width
from .models import Models

_MOST_FAILURES = 0.95
LEAST_PAIRS = 100
"""Of each model; fewer train nothing."""
_CALIBRATION = 0.1  # of what is not for the check


@dataclass(frozen=True, eq=False)
class Labelled:
    """Pairs of a model and data that it simulated.

    Attributes:
        x: (n, p).
        model: its number, 0 to M - 1, (n,).
    """

    x: Tensor
    model: Tensor

    def __len__(self) -> int:
        return len(self.x)

    @staticmethod
    def of(parts: Sequence[Tensor]) -> Labelled:
        """The x of each model one after another."""
        models = [torch.full((len(x),), number) for number, x in enumerate(parts)]
        return Labelled(torch.cat(list(parts)), torch.cat(models))


@dataclass(frozen=True, eq=False)
class Parted:
    """Pairs by what they are for; none is in two parts."""

    training: Labelled
    calibration: Labelled
    check: Labelled


@dataclass(frozen=True, eq=False)
class Simulated:
    """What the simulators gave.

    Attributes:
        x: of each model, (n_m, p).
        calls: simulator calls of each.
        failures: of each.
    """

    x: tuple[Tensor, ...]
    calls: tuple[int, ...]
    failures: tuple[tuple[Failure, ...], ...]


def simulate_models(
    models: Models,
    num_simulations: int,
    given: Sequence[Simulations | None],
    engine: Engine,
    seed: int,
    progress: bool,
) -> Simulated:
    """Simulate each model as often, its theta from its prior, beside what was made before.

    Args:
        models: M of them.
        num_simulations: calls in all.
        given: simulations made before, one a model, or None.
        engine: where they run.
        seed: of theta and of the noise.
        progress: show a bar.

    Raises:
        ValueError: if a model leaves too few simulations, or always gives the same x.
    """
    count = num_simulations // len(models.names)
    xs, failures = [], []
    for number, (name, problem) in enumerate(zip(models.names, models.problems, strict=True)):
        theta = sample_prior(problem.prior, count, child_seed(seed, number, 0))
        runs = simulate(
            problem.simulator,
            theta,
            engine=engine,
            seed=child_seed(seed, number, 1),
            progress=progress,
            max_failure_fraction=_MOST_FAILURES,
        )
        made = given[number]
        parts = [runs.x] if count else []
        if made is not None:
            check_shapes(made, problem.theta_dim, models.x_o)
            parts.append(made.x)
        x = torch.cat([part for part in parts if len(part)] or [torch.empty(0, len(models.x_o))])
        check_width(x, models.x_o)
        if len(x) < LEAST_PAIRS:
            failed = f", {len(runs.failures)} failed" if runs.failures else ""
            raise ValueError(
                f"`num_simulations`: model {name!r} has {len(x)} simulations ({count} calls"
                f"{failed}), and {LEAST_PAIRS} are needed; ask for more."
            )
        check_varies(x)
        xs.append(x)
        failures.append(runs.failures + (() if made is None else made.failures))
    return Simulated(tuple(xs), (count,) * len(xs), tuple(failures))


def given_of(simulations: Any, names: Sequence[str]) -> tuple[Simulations | None, ...]:
    """Simulations made before, one a model: of a dict by name, or a list in order.

    Raises:
        TypeError: if one of them holds no simulations.
        ValueError: if they are not one a model, or a name is not one of a model.
    """
    if simulations is None:
        return (None,) * len(names)
    if isinstance(simulations, dict):
        unknown = [name for name in simulations if name not in names]
        if unknown:
            raise ValueError(
                f"`simulations` must name models, {', '.join(names)}; got {unknown[0]!r}."
            )
        simulations = [simulations.get(name) for name in names]
    if not isinstance(simulations, list | tuple) or len(simulations) != len(names):
        raise ValueError(
            f"`simulations` must be a dict by the names of models, or a list of {len(names)}, one "
            f"a model; got {type(simulations).__name__}."
        )
    for made in simulations:
        check_simulations(made)
    return tuple(simulations)


def parted(x: Sequence[Tensor], check_fraction: float, seed: int) -> Parted:
    """Part the x of each model at random.

    Args:
        x: of each model, (n_m, p).
        check_fraction: share of all for the check; with few of one model it gets fewer.
        seed: of the parting.
    """
    generator = torch_generator(seed)
    fewest = min(map(len, x))
    num_check = int(check_fraction * min(sum(map(len, x)), fewest * len(x)))
    drawn = torch.randint(len(x), (num_check,), generator=generator)
    parts: list[list[Tensor]] = [[], [], []]
    for number, rows in enumerate(x):
        checking = min(int((drawn == number).sum()), len(rows) // 2)
        order = torch.randperm(len(rows), generator=generator)
        calibrating = max(1, int(_CALIBRATION * (len(rows) - checking)))
        ends = checking, checking + calibrating
        parts[0].append(rows[order[ends[1] :]])
        parts[1].append(rows[order[ends[0] : ends[1]]])
        parts[2].append(rows[order[: ends[0]]])
    return Parted(*map(Labelled.of, parts))
