"""The methods of the study: our defaults, and the rivals of today on the same calls.

Every rival sees x as it is, each value standardised, and theta on the real line, so that none
leaks over the edges of a prior; networks, training and samplers are sbi's defaults otherwise. The
settings that a rival is known to gain from are given to it: ensembles of five spline flows, and
truncated proposals in four rounds (Deistler, Goncalves & Macke 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch import Tensor

from .... import baselines
from ....sampler import fit
from ...engine.study import FLOOR

Fit = Callable[[Any, Tensor, int, int], Any]
"""(task, x_o, calls, seed) -> a posterior."""

OURS = "abi"
_NETWORKS, _ROUNDS = 5, 4


def _fit(
    method: Callable[..., Any], task: Any, x_o: Tensor, calls: int, seed: int, **settings: Any
) -> Any:
    return method(task.prior, task, x_o, num_simulations=calls, seed=seed, **settings)


METHODS: Mapping[str, Fit] = {
    OURS: partial(_fit, fit, progress=False),
    "npe": partial(_fit, baselines.snpe),
    "npe_ensemble": partial(_fit, baselines.snpe, num_networks=_NETWORKS),
    "fmpe": partial(_fit, baselines.fmpe),
    "npse": partial(_fit, baselines.npse),
    "snle": partial(_fit, baselines.snle),
    "tsnpe": partial(
        _fit, baselines.snpe,
        num_networks=_NETWORKS, num_rounds=_ROUNDS, proposal="truncated",
    ),
}  # fmt: skip
FOR_ONE_X_O = (OURS, "tsnpe", FLOOR)
"""Of which each observation needs a fit of its own; the others are trained once."""

WHAT: Mapping[str, str] = {
    OURS: "the defaults of `abi.fit`, calls for the verdict included",
    "npe": "sbi's NPE, a neural spline flow",
    "npe_ensemble": f"{_NETWORKS} of them in equal parts",
    "fmpe": "sbi's FMPE",
    "npse": "sbi's NPSE",
    "snle": "sbi's NLE, a masked autoregressive flow, and slice sampling",
    "tsnpe": f"sbi's NPE with truncated proposals, {_ROUNDS} rounds, {_NETWORKS} spline flows",
    FLOOR: "two independent samples of the exact posterior",
}
