r"""Score-rank test: is the truth's score exchangeable with those of q's draws at the same x?

**This test is not from a paper.** It joins two ideas that are: a learned score, as in classifier
tests, and ranks among draws at the same x, as in simulation-based calibration. One score
s(theta, x) is trained on one part of the pairs (or given, such as log q). On the other part the
truth is ranked among K draws of q at its own x,

    U_i = ( #{ j : s(theta_ij, x_i) < s(theta_i, x_i) } + xi (ties + 1) ) / (K + 1)  ~  U(0, 1),

exactly and independently when q = p, since truth and draws are exchangeable given x_i. A score that
tells p from q puts the truth high, so the statistic is the mean rank,

    T = sqrt(12) sum_i w_i (U_i - 1/2) / |w|,

and its null is drawn from uniform U: exact, and no network is trained for it. Because only draws at
the same x are compared, nothing of the score's variance over x enters. With weights w_i near an x_o
the same ranks answer locally, to the resolution of the weights.

A classifier that is trained here sees theta in the frame of the K + 1 candidates at its x: less the
mean of their core, in units of its spread, with the distance from it beside. A posterior that is
too wide, or to one side, is then so in the same way at every x, which a few hundred pairs suffice
to learn: covariance inflated by 0.5, 200 pairs, power 0.90 in place of 0.30. The frame treats the
truth and q's draws alike, so the test stays exact, and it costs no draw.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simulators.random import torch_generator

from ..posteriors.draws import (
    LEAST_PAIRS,
    JointDraws,
    check_counts,
    given,
    split_rows,
)
from ..results.local_result import max_t_result
from ..results.result import ValidationResult
from ..scores.classifiers import Training, feature_scaling
from ..scores.frames import DRAWS_A_PARAMETER, frame_of
from ..scores.scores import Score, apply_score, fit_score, is_estimator
from ..scores.uniformity import randomised_ranks
from ..seeds import part_seed


def score_rank(
    q: Any,
    theta: Tensor,
    x: Tensor,
    *,
    x_o: Tensor | None = None,
    score: Any = None,
    num_samples: int = 100,
    num_train_draws: int = 5,
    num_neighbours: int = 50,
    train_fraction: float = 0.5,
    num_nulls: int = 999,
    whiten: bool = True,
    training: Training | None = None,
    seed: int = 0,
) -> ValidationResult:
    """Score rank: does a classifier's score set the true theta apart from q's draws at the same x?

    It ranks the score of the true theta among those of q's draws; if q is the posterior, the ranks
    are uniform. Where the draws of all pairs do not fit into memory, it takes as many pairs, at
    random, as do.

    Other Parameters:
        x_o: observations to test near, (p,) or (m, p), with p-values adjusted for their number; all
            x when omitted.
        score: None for our classifier; a scikit-learn classifier; or a function
            (theta (n, d), x (n, p)) -> (n,) made from other data.
        num_samples: K, draws of q at each x.
        num_train_draws: draws of q for each training pair; the true theta is repeated as often.
        num_neighbours: how many observations count as near x_o; it sets the width of the weights.
        train_fraction: share of the pairs that trains the score, in (0, 1).
        num_nulls: simulated null statistics.
        whiten: let the classifier see theta relative to mean and covariance of the candidates at
            its x (d + 1 columns), not as it is. A score given as a function sees theta as it is.
        training: of our classifier.
        seed: of everything random.

    Returns:
        T, standard normal in scale under the null. ``details``: ``ranks`` (n_test,), and for an x_o
        ``statistics``, ``p_values`` and ``p_values_adjusted``.

    Raises:
        ValueError: if an argument is not as described, or pairs, draws or scores are not finite.

    q is the posterior under test, as :func:`~validation.as_posterior` takes it; theta (N, d) and x
    (N, p) are pairs from prior and simulator that q was not trained on.
    """
    check_counts(
        num_samples=num_samples,
        num_train_draws=num_train_draws,
        num_neighbours=num_neighbours,
        num_nulls=num_nulls,
    )
    pairs = given(q, theta, x, LEAST_PAIRS)
    near = None if x_o is None else pairs.observations(x_o)
    num_drawn = max(num_samples, num_train_draws)
    draws = pairs.that_fit(num_drawn).draws(num_drawn, part_seed(seed, 0))
    fixed = score is not None and not is_estimator(score)
    held = draws
    if not fixed:
        draws = _in_frame(draws) if whiten else draws
        train, test = split_rows(len(draws.theta), train_fraction, part_seed(seed, 1))
        known = draws.rows(train)
        known = JointDraws(known.theta, known.x, known.samples[:num_train_draws])
        score = fit_score(known, score, training, part_seed(seed, 2))
        held = draws.rows(test)
    ranks = _ranks(score, held, num_samples, part_seed(seed, 3))
    weights = torch.ones(1, len(ranks), dtype=torch.float64)
    if near is not None:
        weights = _weights(held.x, near, num_neighbours)
    generator = torch_generator(part_seed(seed, 4))
    null = torch.rand(num_nulls, len(ranks), generator=generator, dtype=torch.float64)
    scale = 12**0.5 / torch.linalg.vector_norm(weights, dim=1)
    values = (torch.cat([ranks[None], null]) - 0.5) @ weights.T * scale
    details = {"ranks": ranks, "num_test": len(ranks), "num_samples": num_samples}
    return max_t_result("score_rank", values, seed, details)


def _in_frame(draws: JointDraws) -> JointDraws:
    """Theta as d + 1 columns: whitened by the core of the candidates, and the distance from it."""
    candidates = torch.cat([draws.theta[None], draws.samples])
    rows, _, width = candidates.shape
    frame = frame_of(candidates, correlated=rows >= DRAWS_A_PARAMETER * width)
    white = frame.whitened(candidates)
    away = white.square().mean(dim=2, keepdim=True).sqrt()
    seen = torch.cat([white, away], dim=2)
    return JointDraws(seen[0], draws.x, seen[1:])


def _ranks(score: Score, held: JointDraws, num_samples: int, seed: int) -> Tensor:
    candidates = torch.cat([held.theta[None], held.samples[:num_samples]])
    values = apply_score(score, candidates.flatten(0, 1), held.x.repeat(len(candidates), 1))
    values = values.reshape(len(candidates), -1)
    return randomised_ranks(values[0], values[1:], seed)


def _weights(x: Tensor, x_o: Tensor, num_neighbours: int) -> Tensor:
    """Gaussian weights (m, n) around each x_o, as wide as its k-th nearest neighbour is far."""
    shift, scale = feature_scaling(x)
    away = torch.cdist((x_o - shift) / scale, (x - shift) / scale).double()
    width = away.kthvalue(min(num_neighbours, len(x)), dim=1).values.clamp_min(1e-12)
    return torch.exp(-0.5 * (away / width[:, None]).square())
