"""L-C2ST in one call: at an x_o, or at observations that are kept out of the training."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simulators.random import torch_generator

from ...posteriors.draws import LEAST_PAIRS, check_counts, checked_observations, checked_pairs
from ...posteriors.protocol import as_rows
from ...posteriors.recognise import as_posterior
from ...results.result import ValidationResult
from ...scores.classifiers import Training
from ...seeds import part_seed
from .base_space import FlowNull
from .classifier import Labels, Start, fit_lc2st


def lc2st(
    q: Any, theta: Tensor, x: Tensor, x_o: Tensor | None = None, *,
    num_x_o: int = 10, num_samples: int = 1_000,
    num_nulls: int = 100, flow: bool = False, flow_null: FlowNull | None = None,
    labels: Labels = "pairs", start: Start = "shared", num_folds: int = 1, num_ensemble: int = 1,
    training: Training | None = None, seed: int = 0,
) -> ValidationResult:  # fmt: skip
    """Train L-C2ST and test at x_o; without one, at ``num_x_o`` of the pairs' own observations.

    Those are drawn at random and kept out of the training; the p-value is for all of them together.

    Other Parameters:
        x_o: one observation (p,), or several (m, p).
        num_x_o: observations held out where none is given.
        num_samples: N_v, draws from q at each x_o.
        num_nulls: N_H, retrained classifiers; this and the rest as in :func:`fit_lc2st`.

    Returns:
        The result of :meth:`LC2ST.test`.

    Raises:
        ValueError: if an argument is not as described, or pairs or draws are not finite.

    q is any posterior, theta (N, d) and x (N, p) joint draws it never saw: see :mod:`validation`.
    """
    posterior = as_posterior(q)
    check_counts(num_samples=num_samples)  # before the networks train
    if x_o is None:
        (theta, x), x_o = held_out(theta, x, num_x_o, seed)
    else:
        x_o = checked_observations(x_o, as_rows(x, "x").shape[1])
    fitted = fit_lc2st(
        posterior, theta, x, num_nulls=num_nulls, flow=flow, flow_null=flow_null, labels=labels,
        start=start, num_folds=num_folds, num_ensemble=num_ensemble, training=training, seed=seed,
    )  # fmt: skip
    return fitted.test(x_o, num_samples=num_samples)


def held_out(
    theta: Tensor, x: Tensor, num_x_o: int, seed: int
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Pairs to train on, and ``num_x_o`` observations (m, p) kept out of them."""
    theta, x = checked_pairs(theta, x, LEAST_PAIRS)
    check_counts(num_x_o=num_x_o)
    if len(x) - num_x_o < LEAST_PAIRS:
        raise ValueError(
            f"`num_x_o` must leave at least {LEAST_PAIRS} of the {len(x)} pairs; got {num_x_o}."
        )
    order = torch.randperm(len(x), generator=torch_generator(part_seed(seed, 4)))
    kept, held = order[num_x_o:].sort().values, order[:num_x_o].sort().values
    return (theta[kept], x[kept]), x[held]
