r"""Discriminative calibration: the log predictive density of a classifier, truth against draws.

For every pair, the truth ``theta_i`` has label 1 and K draws from q(.|x_i) label 0. A classifier
trained on one part of the pairs is judged on the other by its log predictive density, each class
weighing one half,

    LPD = 1/2 mean_i log d(theta_i, x_i) + 1/2 mean_ij log(1 - d(theta_ij, x_i)),

and ``LPD + log 2`` is a lower bound of the Jensen-Shannon divergence between p and q.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from simulators.arguments import choice
from simulators.random import torch_generator

from ..posteriors.draws import LEAST_PAIRS, check_counts, joint_draws, split_rows
from ..results.result import ValidationResult
from ..scores.classifiers import Training
from ..scores.scores import apply_score, fit_score
from ..scores.uniformity import permutation_p
from ..seeds import part_seed


def discriminative_calibration(
    q: Any,
    theta: Tensor,
    x: Tensor,
    *,
    num_samples: int = 10,
    null: Literal["rows", "labels"] = "rows",
    classifier: Any = None,
    train_fraction: float = 0.5,
    num_permutations: int = 999,
    training: Training | None = None,
    seed: int = 0,
) -> ValidationResult:
    """Discriminative calibration: can a classifier tell the true theta from q's draws at its x?

    Other Parameters:
        num_samples: K, draws of q at each x.
        null: how the p-value is found. ``"rows"`` takes, at each x, any of the K + 1 candidates
            for the true one, which is exact. ``"labels"`` permutes labels over all x, which is not
            exact: for comparison only.
        classifier: a scikit-learn classifier in place of our network.
        train_fraction: share of the pairs that trains the classifier, in (0, 1).
        num_permutations: null statistics.
        training: of our network.
        seed: of draws, split, training and permutations.

    Returns:
        The divergence ``LPD + log 2`` in nats. ``details``: ``num_train``, ``num_test``, ``null``.

    Raises:
        ValueError: if an argument is not as described, or pairs, draws or scores are not finite.

    Source: Yao & Domke (2023), "Discriminative calibration", Algorithm 1 and Section 3.

    q is the posterior under test, as :func:`~validation.as_posterior` takes it; theta (N, d) and x
    (N, p) are pairs from prior and simulator that q was not trained on.
    """
    choice("rows", "labels")(null, "null")
    check_counts(num_permutations=num_permutations)
    draws = joint_draws(q, theta, x, num_samples, part_seed(seed, 0), minimum=LEAST_PAIRS)
    train, test = split_rows(len(draws.theta), train_fraction, part_seed(seed, 1))
    score = fit_score(draws.rows(train), classifier, training, part_seed(seed, 2))
    held = draws.rows(test)
    candidates = torch.cat([held.theta[None], held.samples])
    logits = apply_score(
        score, candidates.flatten(0, 1), held.x.repeat(num_samples + 1, 1)
    ).reshape(num_samples + 1, -1)
    gain = functional.logsigmoid(logits), functional.logsigmoid(-logits)
    truth = torch.zeros(logits.shape, dtype=torch.bool)
    truth[0] = True
    generator = torch_generator(part_seed(seed, 3))
    relabel = _random_column if null == "rows" else _random_labels
    values = torch.stack(
        [_divergence(*gain, relabel(truth, generator)) for _ in range(num_permutations)]
    )
    observed = _divergence(*gain, truth)
    details: dict[str, Any] = {
        "num_train": len(train),
        "num_test": len(test),
        "num_samples": num_samples,
        "null": null,
    }
    if null == "labels":
        details["p_value_kind"] = "labels permuted over rows: not exact"
    p_value = permutation_p(observed, values)
    return ValidationResult(
        "discriminative_calibration", float(observed), p_value, seed, values, details
    )


def _divergence(gain_p: Tensor, gain_q: Tensor, truth: Tensor) -> Tensor:
    """LPD + log 2 when the entries ``truth`` (K + 1, n) are called true."""
    return 0.5 * (gain_p[truth].mean() + gain_q[~truth].mean()) + math.log(2.0)


def _random_column(truth: Tensor, generator: torch.Generator) -> Tensor:
    chosen = torch.randint(len(truth), (1, truth.shape[1]), generator=generator)
    return torch.zeros_like(truth).scatter_(0, chosen, True)


def _random_labels(truth: Tensor, generator: torch.Generator) -> Tensor:
    order = torch.randperm(truth.numel(), generator=generator)
    return truth.flatten()[order].reshape(truth.shape)
