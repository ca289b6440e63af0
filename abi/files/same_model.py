"""Whether a run goes on with the prior and the simulator that it began with.

Functions are never stored, but what they give for a seed can be: a few draws of the prior, and one
simulation at the first of them. Pairs of two models in one run would pass for those of one.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from simulators import sample_prior, simulate
from simulators.running.engines import Engine

from ..rounds.problem import Problem
from .parts import read_parts, write_parts

FILE = "began_with.safetensors"
_KIND = "abi-began-with"
_DRAWS, _SEED = 8, 0
_CLOSE = 1e-4  # another machine may round otherwise


def keep_model(path: Path, problem: Problem, engine: Engine) -> None:
    """Write what prior and simulator give for a seed, of a run that begins."""
    theta = _draws(problem)
    write_parts(path, _KIND, {"theta": theta, "x": _simulation(problem, theta, engine)}, {})


def check_model(path: Path, problem: Problem, engine: Engine) -> None:
    """Refuse to go on with a prior or a simulator that gives something else; one call is made.

    A simulator that gives something else each time cannot be told from another, nor one that
    failed then or fails now.

    Raises:
        ValueError: if it is another one.
    """
    began, _ = read_parts(path, _KIND, "If prior and simulator are those of the run, remove it.")
    known = f"If you know that it is the same, remove {path}."
    if not _alike(_draws(problem), began["theta"]):
        raise ValueError(
            "`prior` is not the one that the run began with: the same seed gives other draws. Give "
            f"that one, or begin a run in another folder. {known}"
        )
    now = _simulation(problem, began["theta"], engine)
    if not len(now) or not len(began["x"]) or _alike(now, began["x"]):
        return
    if _alike(now, _simulation(problem, began["theta"], engine)):
        raise ValueError(
            "`simulator` is not the one that the run began with: the same theta and seed give "
            f"other data. Give that one, or begin a run in another folder. {known}"
        )


def _draws(problem: Problem) -> Tensor:
    """Of the prior, (8, d)."""
    return sample_prior(problem.prior, _DRAWS, _SEED)


def _simulation(problem: Problem, theta: Tensor, engine: Engine) -> Tensor:
    """One at the first of theta (n, d), (1, p); (0, p) where it fails."""
    runs = simulate(
        problem.simulator, theta[:1], engine=engine, seed=_SEED, progress=False,
        max_failure_fraction=1.0,
    )  # fmt: skip
    return runs.x


def _alike(first: Tensor, second: Tensor) -> bool:
    """Whether they hold the same numbers, but for rounding."""
    return first.shape == second.shape and torch.allclose(
        first, second, rtol=_CLOSE, atol=0.0, equal_nan=True
    )
