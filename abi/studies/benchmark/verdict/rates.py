"""Level and power of the panel on exact conditionals, beside each of its tests and others."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch

import validation
from simulators.random import child_seed
from validation.swaps.panel import panel

from ....training.torch_settings import usual_torch
from ....verdict.record import ALPHA
from .cells import Asked, Worked
from .laws import FAILURES, LAWS, candidates, pairs

RIGHT = "q is right"
RIVALS = ("sbc", "tarp", "hpd", "c2st", "score_rank")
"""Tests of :mod:`validation`, trained as they are, on the same kind of pairs."""
_CHUNK = 25  # verdicts a cell


def wanted(
    part: str, failures: Sequence[tuple[str, str]], sizes: Sequence[int], count: int, seed: int
) -> list[dict[str, Any]]:
    """Cells of ``count`` verdicts for each (law, failure) and number of pairs."""
    return [
        {
            "part": part,
            "law": law,
            "failure": failure,
            "num_pairs": size,
            "chunk": chunk,
            "count": min(_CHUNK, count - _CHUNK * chunk),
            "seed": seed,
        }
        for chunk in range(math.ceil(count / _CHUNK))
        for law, failure in failures
        for size in sizes
    ]


def level_failures() -> list[tuple[str, str]]:
    """Every law, with a q that is right."""
    return [(law, RIGHT) for law in LAWS]


def power_failures() -> list[tuple[str, str]]:
    """Every failure, with its law."""
    return [(wrong.law, name) for name, wrong in FAILURES.items()]


def work_panel(asked: Asked) -> Worked:
    """How often the panel, and each of its tests, rejects."""
    rejected: dict[str, int] = {}
    torch.set_num_threads(1)
    for seed in _seeds(asked):
        found = panel(candidates(asked["law"], _noise(asked), asked["num_pairs"], seed), seed)
        for name, p in {"panel": found.p_value, **found.p_values}.items():
            rejected[name] = rejected.get(name, 0) + int(p <= ALPHA)
    return {"rejected": rejected}


def work_rivals(asked: Asked) -> Worked:
    """How often tests of :mod:`validation` reject."""
    rejected = dict.fromkeys(RIVALS, 0)
    torch.set_num_threads(1)
    with usual_torch():
        for seed in _seeds(asked):
            theta, x, draws = pairs(asked["law"], _noise(asked), asked["num_pairs"], 100, seed)
            q = validation.as_posterior((theta, x, draws), layout="samples_first")
            for name in RIVALS:
                keywords: dict[str, Any] = {} if name == "c2st" else {"num_samples": 100}
                result = validation.METHODS[name](q, theta, x, seed=seed, **keywords)
                rejected[name] += int(result.reject(ALPHA))
    return {"rejected": rejected}


def shares(cells: Sequence[Worked]) -> dict[tuple[str, str, int], tuple[int, dict[str, float]]]:
    """Of each law, failure and number of pairs: how many verdicts, and shares rejected."""
    counts: dict[tuple[str, str, int], int] = {}
    sums: dict[tuple[str, str, int], dict[str, int]] = {}
    for cell in cells:
        key = (cell["law"], cell["failure"], cell["num_pairs"])
        counts[key] = counts.get(key, 0) + cell["count"]
        mine = sums.setdefault(key, {})
        for name, value in cell["rejected"].items():
            mine[name] = mine.get(name, 0) + value
    return {
        key: (count, {name: value / count for name, value in sums[key].items()})
        for key, count in counts.items()
    }


def _noise(asked: Asked) -> Any:
    failure = asked["failure"]
    return LAWS[asked["law"]] if failure == RIGHT else FAILURES[failure].noise


def _seeds(asked: Mapping[str, Any]) -> list[int]:
    first = _CHUNK * asked["chunk"]
    return [child_seed(asked["seed"], first + k) for k in range(asked["count"])]
