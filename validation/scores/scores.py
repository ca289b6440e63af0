r"""A score ``s(theta, x)`` that tells p's pairs from q's: larger where p is denser.

The best score is the density ratio p/q; the log-odds of any classifier trained on pairs
``(theta_i, x_i), label 1`` and ``(theta^q_i, x_i), label 0`` estimates it. Tests that use a score
are valid for every score that was made without the pairs they test, however bad it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from simulators.random import isolated_rng

from ..posteriors.draws import JointDraws
from ..seeds import part_seed
from .classifiers import Training, fit_classifiers

Score = Callable[[Tensor, Tensor], Tensor]


def fit_score(
    draws: JointDraws, classifier: Any = None, training: Training | None = None, seed: int = 0
) -> Score:
    """Train a classifier on pairs and q's draws at the same x; its log-odds are the score.

    The classes are balanced: with k draws an observation, each true pair is seen k times.

    Args:
        draws: the training pairs with k draws each.
        classifier: a scikit-learn classifier (with ``predict_proba`` or ``decision_function``), or
            None for our network.
        training: of our network.
        seed: of the training.

    Returns:
        A function (theta (n, d), x (n, p)) -> (n,).
    """
    features, labels, groups = labelled_pairs(draws)
    if classifier is not None:
        return _fit_sklearn(classifier, features, labels, seed)
    network = fit_classifiers(features, labels[None], groups=groups, training=training, seed=seed)
    return lambda theta, x: network.logits(torch.cat([theta, x], dim=1))[0]


def labelled_pairs(draws: JointDraws) -> tuple[Tensor, Tensor, Tensor]:
    """Features (2kN, d + p), labels (2kN,) with 1 for p, and the row of x each belongs to."""
    copies, rows = draws.samples.shape[:2]
    x = draws.x.repeat(copies, 1)
    from_q = torch.cat([draws.samples.flatten(0, 1), x], dim=1)
    from_p = torch.cat([draws.theta.repeat(copies, 1), x], dim=1)
    labels = torch.cat([torch.zeros(len(x)), torch.ones(len(x))])
    return torch.cat([from_q, from_p]), labels, torch.arange(rows).repeat(2 * copies)


def is_estimator(score: Any) -> bool:
    """Whether ``score`` is a scikit-learn classifier that has yet to be fitted."""
    return hasattr(score, "fit") and hasattr(score, "get_params")


def apply_score(score: Score, theta: Tensor, x: Tensor) -> Tensor:
    """Scores of pairs theta (n, d), x (n, p): (n,) float64.

    Raises:
        ValueError: if the score gives another shape or NaN, which has no rank.
    """
    with isolated_rng(0), torch.no_grad():
        values = torch.as_tensor(score(theta, x)).detach().to("cpu", torch.float64)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.shape != (len(theta),):
        raise ValueError(
            f"`score` must give one value a pair, shape ({len(theta)},); got {tuple(values.shape)}."
        )
    if torch.isnan(values).any():
        raise ValueError(
            f"`score` must not be NaN; {int(torch.isnan(values).sum())} of {len(values)} are."
        )
    return values


def _fit_sklearn(classifier: Any, features: Tensor, labels: Tensor, seed: int) -> Score:
    with isolated_rng(part_seed(seed, 0)):
        from sklearn.base import clone

        fitted = clone(classifier)
        if "random_state" in fitted.get_params():
            fitted.set_params(random_state=seed % (1 << 32))
        fitted.fit(features.numpy(), labels.numpy())

    def score(theta: Tensor, x: Tensor) -> Tensor:
        rows = torch.cat([theta, x], dim=1).numpy()
        if hasattr(fitted, "decision_function"):
            return torch.as_tensor(fitted.decision_function(rows))
        return torch.logit(torch.as_tensor(fitted.predict_proba(rows)[:, 1]).double(), eps=1e-6)

    return score
