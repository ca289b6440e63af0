r"""Conformal C2ST: any score's ranks against a calibration set give an exact test.

A test point from q and m calibration points from p are exchangeable when q = p, so

    U = ( #{S_i < S} + xi (#{S_i = S} + 1) ) / (m + 1),   xi ~ U(0, 1)

is exactly uniform for any score, weak or overfitted, that was made from other data.

*Uniform(m)*: each test point has its own m calibration points; Kolmogorov-Smirnov of the U_j.
*Multiple*: all test points share one calibration set of n_p; with the mean of the U_j,

    T = (1/2 - mean U) / (sigma / sqrt(n_p)),  sigma^2 = Var_i F_{1/2}(S_i) + n_p / (12 n_q),

which is asymptotically N(0, 1) and rejects when p's scores are the larger ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor

from simulators.arguments import choice
from simulators.random import torch_generator

from ..posteriors.draws import (
    LEAST_PAIRS,
    JointDraws,
    check_counts,
    checked_pairs,
    joint_draws,
    split_rows,
)
from ..results.result import ValidationResult
from ..scores.classifiers import Training
from ..scores.scores import Score, apply_score, fit_score, is_estimator
from ..scores.uniformity import ks_uniform, permutation_p
from ..seeds import part_seed


def conformal_c2st(
    q: Any,
    theta: Tensor,
    x: Tensor,
    *,
    variant: Literal["uniform", "multiple"] = "uniform",
    num_calibration: int = 10,
    score: Any = None,
    fresh: Callable[..., tuple[Tensor, Tensor]] | None = None,
    train_fraction: float = 0.5,
    num_permutations: int = 999,
    training: Training | None = None,
    seed: int = 0,
) -> ValidationResult:
    """Conformal C2ST: does a score, such as a classifier's, rank draws of q among true pairs?

    One part of the pairs trains the score. Of the other part, each pair is used once: as it is, or
    with a draw of q in place of theta. If q is the posterior, the ranks of the second kind among
    the first are uniform, however weak the score. The two kinds have different x; at shared ones
    the test would be far too conservative.

    Differs from the paper: where no fresh draws from p are given, the m calibration points of each
    test point are resampled from the held-out set. The U_j are then dependent, and comparing their
    distance with Kolmogorov's law rejects a true null up to 29% of the time; so the p-value comes
    from permuting the labels p and q, which is exact. The multiple variant's p-value is permuted
    likewise; ``details["p_value_normal"]`` is the paper's.

    Other Parameters:
        variant: ``"uniform"`` or ``"multiple"``.
        num_calibration: m, calibration points a test point (uniform only).
        score: None for our classifier; a scikit-learn classifier; or a function
            (theta (n, d), x (n, p)) -> (n,), such as a log density ratio, made from other data.
        fresh: ``fresh(n, seed=...)`` draws n new pairs (theta (n, d), x (n, p)) from p.
        train_fraction: share of the pairs that trains the score, in (0, 1); none if it is given.
        num_permutations: of the labels.
        training: of our classifier.
        seed: of draws, split, training, ties and permutations.

    Returns:
        Distance of the U_j to uniform, or T. ``details``: ``ranks`` (n_q,), ``calibration`` in
        words, ``num_train``, ``num_test``.

    Raises:
        ValueError: if an argument is not as described, or pairs, draws or scores are not finite.
        TypeError: if ``score`` is neither a function nor a classifier.

    Source: "The surprising strength of weak classifiers for two-sample testing", eqs. 1 and 3 and
    Appendix A.4; Hu & Lei (2024).

    q is the posterior under test, as :func:`~validation.as_posterior` takes it; theta (N, d) and x
    (N, p) are pairs from prior and simulator that q was not trained on.
    """
    choice("uniform", "multiple")(variant, "variant")
    if variant == "multiple" and fresh is not None:
        raise ValueError("`fresh` is used by variant='uniform' alone; leave it out.")
    check_counts(num_calibration=num_calibration, num_permutations=num_permutations)
    draws = joint_draws(q, theta, x, 1, part_seed(seed, 0), minimum=LEAST_PAIRS)
    chosen, held = _score_and_rest(draws, score, train_fraction, training, seed)
    details: dict[str, Any] = {"num_train": len(draws.theta) - len(held.theta)}
    if variant == "uniform" and fresh is not None:
        return _uniform_fresh(chosen, held, fresh, num_calibration, details, seed)
    test, calibration = split_rows(len(held.theta), 0.5, part_seed(seed, 3))
    pooled = torch.cat(
        [
            apply_score(chosen, held.theta[calibration], held.x[calibration]),
            apply_score(chosen, held.samples[0, test], held.x[test]),
        ]
    )
    details |= {"num_test": len(test), "num_calibration_set": len(calibration)}
    m = num_calibration if variant == "uniform" else None
    return _by_permutation(pooled, len(calibration), m, num_permutations, details, seed)


def conformal_multiple(
    q: Any, theta: Tensor, x: Tensor, *, score: Any = None, train_fraction: float = 0.5,
    num_permutations: int = 999, training: Training | None = None, seed: int = 0,
) -> ValidationResult:  # fmt: skip
    """:func:`conformal_c2st` with ``variant="multiple"``, whose arguments and errors these are."""
    return conformal_c2st(
        q, theta, x, variant="multiple", score=score, train_fraction=train_fraction,
        num_permutations=num_permutations, training=training, seed=seed,
    )  # fmt: skip


def _score_and_rest(
    draws: JointDraws, score: Any, train_fraction: float, training: Training | None, seed: int
) -> tuple[Score, JointDraws]:
    """The score, and the pairs that it has not seen."""
    if score is not None and not is_estimator(score):
        if not callable(score):
            raise TypeError(
                "`score` must be a function (theta, x) -> values or a scikit-learn classifier; "
                f"got {type(score).__name__}."
            )
        return score, draws
    train, held = split_rows(len(draws.theta), train_fraction, part_seed(seed, 1))
    fitted = fit_score(draws.rows(train), score, training, part_seed(seed, 2))
    return fitted, draws.rows(held)


def _uniform_fresh(
    score: Score,
    held: JointDraws,
    fresh: Callable[..., tuple[Tensor, Tensor]],
    num_calibration: int,
    details: dict[str, Any],
    seed: int,
) -> ValidationResult:
    """Every test point against its own new draws from p: exact as the paper has it."""
    needed = num_calibration * len(held.theta)
    theta, x = checked_pairs(*fresh(needed, seed=part_seed(seed, 4)), needed)
    calibration = apply_score(score, theta, x).reshape(num_calibration, -1)
    test = apply_score(score, held.samples[0], held.x)
    ranks = _ranks(test, calibration, torch_generator(part_seed(seed, 5)), own=True)
    distance, p_value = ks_uniform(ranks)
    details |= {
        "num_test": len(test),
        "ranks": ranks,
        "calibration": f"{num_calibration} fresh draws from p for each test point",
    }
    return ValidationResult("conformal_c2st", distance, p_value, seed, details=details)


def _by_permutation(
    pooled: Tensor,
    num_p: int,
    num_calibration: int | None,
    num_permutations: int,
    details: dict[str, Any],
    seed: int,
) -> ValidationResult:
    """Statistic of scores whose first ``num_p`` are p's, against random relabellings of them."""
    generator = torch_generator(part_seed(seed, 5))

    def statistic(scores: Tensor) -> tuple[float, Tensor]:
        return _statistic(scores[:num_p], scores[num_p:], num_calibration, generator)

    observed, ranks = statistic(pooled)
    null = torch.tensor(
        [
            statistic(pooled[torch.randperm(len(pooled), generator=generator)])[0]
            for _ in range(num_permutations)
        ],
        dtype=torch.float64,
    )
    details |= {"ranks": ranks, "p_value_kind": "permutation of labels, exact"}
    if num_calibration is None:
        from scipy.stats import norm

        name = "conformal_multiple"
        details |= {
            "calibration": f"one set of {num_p} held-out pairs for all test points",
            "p_value_normal": float(norm.sf(observed)),
        }
    else:
        name = "conformal_c2st"
        details["calibration"] = (
            f"{num_calibration} points for each test point, resampled from {num_p} held-out pairs "
            "because no fresh draws were given"
        )
    return ValidationResult(name, observed, permutation_p(observed, null), seed, null, details)


def _statistic(
    from_p: Tensor, from_q: Tensor, num_calibration: int | None, generator: torch.Generator
) -> tuple[float, Tensor]:
    """Uniform(m)'s distance, or the multiple test's T; and the conformal ranks (n_q,)."""
    if num_calibration is not None:
        shape = (num_calibration, len(from_q))
        chosen = torch.randint(len(from_p), shape, generator=generator)
        ranks = _ranks(from_q, from_p[chosen], generator, own=True)
        ordered = ranks.sort().values
        steps = torch.arange(1, len(ranks) + 1) / len(ranks)
        gaps = torch.maximum(steps - ordered, ordered - steps + 1 / len(ranks))
        return float(gaps.max()), ranks
    ranks = _shared_ranks(from_q, from_p, generator)
    middle = _mid_distribution(from_p, from_q)
    variance = float(middle.var()) + len(from_p) / (12 * len(from_q))
    return float((0.5 - ranks.mean()) / (variance / len(from_p)) ** 0.5), ranks


def _ranks(test: Tensor, calibration: Tensor, generator: torch.Generator, own: bool) -> Tensor:
    """Eq. 1 for test scores (n,) with calibration scores (m, n)."""
    below = (calibration < test).sum(dim=0)
    ties = (calibration == test).sum(dim=0)
    xi = torch.rand(len(test), generator=generator, dtype=torch.float64)
    return (below + xi * (ties + own)) / (len(calibration) + own)


def _shared_ranks(test: Tensor, calibration: Tensor, generator: torch.Generator) -> Tensor:
    """Eq. 3's U_j: the share of all calibration scores below each test score, ties at random."""
    ordered = calibration.sort().values
    below = torch.searchsorted(ordered, test)
    ties = torch.searchsorted(ordered, test, right=True) - below
    xi = torch.rand(len(test), generator=generator, dtype=torch.float64)
    return (below + xi * ties) / len(ordered)


def _mid_distribution(values: Tensor, sample: Tensor) -> Tensor:
    """F_{1/2}: the mean of the empirical distribution function and its left limit."""
    ordered = sample.sort().values
    low, high = (
        torch.searchsorted(ordered, values),
        torch.searchsorted(ordered, values, right=True),
    )
    return (low + high).double() / (2 * len(ordered))
