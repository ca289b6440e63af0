r"""C2ST: can a classifier tell q's pairs from p's?

The classifier is trained on one part of the pairs and judged on the other, by its accuracy, or by
how far its probabilities are from one half, ``t = mean (d - 1/2)^2`` (the MSE statistic, which
needs no labels to evaluate and so sees what accuracy misses).

Accuracy: given how many test points the classifier calls p, the number of p's own among them is
hypergeometric when q = p. The test points of the two classes have different x, for at a shared x
they are dependent and the p-value would be far too large.
MSE: the null statistics come from the classifier retrained with the labels swapped within pairs
that share their x, all at once in one batched network; that is exact.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from simulators.arguments import choice
from simulators.random import torch_generator

from ..posteriors.draws import (
    LEAST_PAIRS,
    JointDraws,
    check_counts,
    checked_observations,
    checked_pairs,
    drawn,
    joint_draws,
    of_rows,
    only,
    split_rows,
)
from ..posteriors.pairs.arrays import as_numbers
from ..posteriors.protocol import as_matrix
from ..results.result import ValidationResult
from ..scores.classifiers import Training, fit_classifiers
from ..scores.scores import apply_score, fit_score, labelled_pairs
from ..scores.uniformity import floor_p, permutation_p
from ..seeds import part_seed


def c2st(
    q: Any,
    theta: Tensor,
    x: Tensor,
    *,
    statistic: Literal["accuracy", "mse"] = "accuracy",
    x_o: Tensor | None = None,
    reference: Tensor | None = None,
    classifier: Any = None,
    num_nulls: int = 100,
    train_fraction: float = 0.5,
    training: Training | None = None,
    seed: int = 0,
) -> ValidationResult:
    """C2ST: can a classifier tell pairs with theta from q from pairs with the true theta?

    With ``x_o`` and ``reference`` it tells, at one observation, draws of q from exact ones.

    Other Parameters:
        statistic: ``"accuracy"`` or ``"mse"``.
        x_o: one observation, with ``reference``; the pairs' theta are then not used.
        reference: draws from the true posterior at x_o, (n, d).
        classifier: a scikit-learn classifier in place of our network (accuracy only).
        num_nulls: networks trained on shuffled labels, for the p-value (MSE only).
        train_fraction: share of the pairs that trains the classifier, in (0, 1).
        training: of our network.
        seed: of everything random.

    Returns:
        Accuracy in [0, 1] (1/2 is chance) or the MSE statistic in [0, 1/4]. ``details``:
        ``num_train``, ``num_test``, ``form``.

    Raises:
        ValueError: if an argument is not as described, arguments exclude each other, or pairs,
            draws or scores are not finite.

    Source: Lopez-Paz & Oquab (2017), "Revisiting classifier two-sample tests"; MSE: Linhart,
    Gramfort & Rodrigues (2023), eq. 7.

    q is the posterior under test, as :func:`~validation.as_posterior` takes it; theta (N, d) and x
    (N, p) are pairs from prior and simulator that q was not trained on.
    """
    choice("accuracy", "mse")(statistic, "statistic")
    if (x_o is None) != (reference is None):
        raise ValueError("`x_o` and `reference` belong together: give both, or neither.")
    if x_o is not None:
        draws = _oracle_draws(q, x, x_o, reference, seed)
    else:
        draws = joint_draws(q, theta, x, 1, part_seed(seed, 0), minimum=LEAST_PAIRS)
    train, test = split_rows(len(draws.theta), train_fraction, part_seed(seed, 1))
    details = {
        "num_train": len(train),
        "num_test": len(test),
        "form": "joint" if x_o is None else "oracle at x_o",
    }
    if statistic == "mse":
        if classifier is not None:
            raise ValueError("`classifier` works with statistic='accuracy'; the nulls need ours.")
        check_counts(num_nulls=num_nulls)
        return _mse(draws, train, test, num_nulls, training, details, seed)
    score = fit_score(draws.rows(train), classifier, training, part_seed(seed, 2))
    if x_o is None:
        first, second = split_rows(len(test), 0.5, part_seed(seed, 3))
        from_p, from_q = test[first], test[second]
    else:
        from_p = from_q = test
    called_p = apply_score(score, draws.theta[from_p], draws.x[from_p]) > 0
    called_q = apply_score(score, draws.samples[0, from_q], draws.x[from_q]) > 0
    return _accuracy(called_p, called_q, details, seed)


def _oracle_draws(q: Any, x: Any, x_o: Any, reference: Any, seed: int) -> JointDraws:
    """Draws of q at x_o paired with the reference; x is left out of the features."""
    truth = as_matrix(reference, "reference")
    checked_pairs(truth, torch.zeros(len(truth), 1), LEAST_PAIRS)
    event = tuple(as_numbers(x, "x").shape[1:])
    row = only(checked_observations(x_o, event))
    samples = drawn(of_rows(q, event), len(truth), row, truth.shape[1], part_seed(seed, 0))
    return JointDraws(truth, torch.empty(len(truth), 0), samples[:, 0][None])


def _accuracy(
    called_p: Tensor, called_q: Tensor, details: dict[str, Any], seed: int
) -> ValidationResult:
    """Accuracy and its hypergeometric p-value from the verdicts on p's and q's test points."""
    num_p, num_q = len(called_p), len(called_q)
    hits, false = int(called_p.sum()), int(called_q.sum())
    accuracy = (hits + num_q - false) / (num_p + num_q)
    details = details | {"p_value_kind": "hypergeometric, conservative", "num_test": num_p + num_q}
    details |= {"num_p": num_p, "num_called_p": hits + false}  # what the null law is made of
    p_value = verdict_p_value(called_p, called_q)
    return ValidationResult("c2st", accuracy, p_value, seed, details=details)


def verdict_p_value(called_p: Tensor, called_q: Tensor) -> float:
    """Exact p-value of "p's points are called p more often than q's", given how often p is called.

    Args:
        called_p: whether each independent point of p is called p, (n_p,).
        called_q: whether each independent point of q is called p, (n_q,).
    """
    from scipy.stats import hypergeom

    hits, false = int(called_p.sum()), int(called_q.sum())
    total = len(called_p) + len(called_q)
    return floor_p(float(hypergeom.sf(hits - 1, total, hits + false, len(called_p))))


def _mse(
    draws: JointDraws,
    train: Tensor,
    test: Tensor,
    num_nulls: int,
    training: Training | None,
    details: dict[str, Any],
    seed: int,
) -> ValidationResult:
    features, _, groups = labelled_pairs(draws.rows(train))
    labels = swapped_labels(len(train), num_nulls, part_seed(seed, 4))
    networks = fit_classifiers(
        features, labels, groups=groups, training=training, seed=part_seed(seed, 2)
    )
    probabilities = networks.probabilities(labelled_pairs(draws.rows(test))[0])
    values = (probabilities - 0.5).square().mean(dim=1)
    p_value = permutation_p(values[0], values[1:])
    return ValidationResult("c2st_mse", float(values[0]), p_value, seed, values[1:], details)


def swapped_labels(pairs: int, num_nulls: int, seed: int) -> Tensor:
    """Labels of pairs laid out (all of q, all of p): row 0 true, the others swapped at random.

    Each null swaps the two labels of a pair with probability 1/2: q's and p's draw at one x are
    exchangeable when q = p, while labels permuted over all rows would ignore that they share x.
    """
    swap = torch.rand(num_nulls, pairs, generator=torch_generator(seed)) < 0.5
    swap = torch.cat([torch.zeros(1, pairs, dtype=torch.bool), swap])
    return torch.cat([swap, ~swap], dim=1).float()
