"""L-C2ST in one call: at an x_o, or at observations that are kept out of the training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from simulators.random import torch_generator

from ...posteriors.draws import LEAST_PAIRS, Given, check_counts, given
from ...posteriors.pairs.repeats import told_of_repeats
from ...results.result import ValidationResult
from ...scores.classifiers import Training
from ...seeds import part_seed
from .base_space import FlowNull
from .classifier import Labels, Start, check_settings, draws_at, fit_lc2st


def lc2st(
    q: Any, theta: Tensor, x: Tensor, x_o: Tensor | None = None, *,
    num_x_o: int = 10, num_samples: int = 1_000,
    num_nulls: int = 100, flow: bool = False, flow_null: FlowNull | None = None,
    labels: Labels = "pairs", start: Start = "shared", num_folds: int = 1, num_ensemble: int = 1,
    training: Training | None = None, seed: int = 0,
) -> ValidationResult:  # fmt: skip
    """L-C2ST: is q the posterior at x_o, as far as a classifier trained on all pairs can tell?

    Without ``x_o`` it tests at some of the pairs' own observations, drawn at random and kept out of
    the training, and gives one p-value for all of them.

    Other Parameters:
        x_o: one observation, in the shape that x has them, or several.
        num_x_o: how many of the pairs' own, where no ``x_o`` is given.
        num_samples: N_v, draws of q at each x_o.
        num_nulls: N_H, classifiers trained for the p-value; this and the rest as in
            :func:`fit_lc2st`.

    Returns:
        The result of :meth:`LC2ST.test`.

    Raises:
        ValueError: if an argument is not as described, or pairs or draws are not finite.

    q is the posterior under test, as :func:`~validation.as_posterior` takes it; theta (N, d) and x
    (N, p) are pairs from prior and simulator that q was not trained on.
    """
    check_counts(num_samples=num_samples)
    check_settings(labels, start, num_nulls, num_folds, num_ensemble)
    pairs, rows = training_pairs(q, theta, x, x_o, num_x_o, seed)
    # Before the networks train: a posterior of stored samples may have none at x_o.
    theta_o = None if flow else draws_at(pairs, rows, num_samples, seed)
    with told_of_repeats():
        fitted = fit_lc2st(
            pairs.q, pairs.theta, pairs.x, num_nulls=num_nulls, flow=flow, flow_null=flow_null,
            labels=labels, start=start, num_folds=num_folds, num_ensemble=num_ensemble,
            training=training, seed=seed,
        )  # fmt: skip
    return fitted.test_rows(rows, num_samples, theta_o)


def training_pairs(
    q: Any, theta: Any, x: Any, x_o: Any, num_x_o: int, seed: int
) -> tuple[Given, Tensor]:
    """Pairs to train on, and the observations to test at (m, p).

    Where no x_o is given, ``num_x_o`` of the pairs' own are kept out of the training.
    """
    pairs = given(q, theta, x, 2 if x_o is not None else LEAST_PAIRS)
    if x_o is not None:
        return pairs, pairs.observations(x_o)
    check_counts(num_x_o=num_x_o)
    count = len(pairs.x)
    if count - num_x_o < LEAST_PAIRS:
        raise ValueError(
            f"`num_x_o` must leave at least {LEAST_PAIRS} of the {count} pairs; got {num_x_o}."
        )
    order = torch.randperm(count, generator=torch_generator(part_seed(seed, 4)))
    kept, held = order[num_x_o:].sort().values, order[:num_x_o].sort().values
    return replace(pairs, theta=pairs.theta[kept], x=pairs.x[kept]), pairs.x[held]
