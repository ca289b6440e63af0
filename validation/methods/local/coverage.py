r"""Local HPD: expected coverage as a function of x, read at x_o.

The HPD rank U of the truth (see :mod:`.density_ranks`) is uniform given x when q is right at x.
A network learns ``r_a(x) = P(U <= a | x)`` for a grid of levels a from the pairs; at x_o its
distance to the diagonal is

    T(x_o) = mean_a ( r_a(x_o) - a )^2,

and the null replaces the ranks by independent uniforms and trains again, all networks at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from simulators.random import torch_generator

from ...posteriors.draws import check_counts
from ...results.local_result import max_t_result
from ...results.result import ValidationResult
from ...scores.classifiers import Training, fit_classifiers
from ...seeds import part_seed
from ..density_ranks import hpd_ranks
from .base_space import training_rows
from .call import training_pairs

_LEVELS = 11


def local_hpd(
    q: Any,
    theta: Tensor,
    x: Tensor,
    x_o: Tensor | None = None,
    *,
    num_x_o: int = 10,
    num_samples: int = 200,
    num_nulls: int = 100,
    training: Training | None = None,
    seed: int = 0,
) -> ValidationResult:
    """Local HPD: do q's highest-density regions at x_o hold the true theta as often as they should?

    Networks learn this coverage as a function of x, from all pairs, or from 5,000 at random where
    there are more.

    Differs from Zhao et al. (2021): one network has an output for each level, where they train a
    regression for each; so it is fast enough to be repeated for the p-value.

    Other Parameters:
        x_o: one observation, in the shape that x has them, or several, with p-values adjusted for
            their number. When omitted, some of the pairs' own, kept out of the training.
        num_x_o: how many of the pairs' own, where no ``x_o`` is given.
        num_samples: K, draws of q at each x.
        num_nulls: networks trained on uniform ranks, for the p-value.
        training: of the networks.
        seed: of everything random.

    Returns:
        T, or over several x_o its largest standardised value. ``details``: ``statistics``,
        ``p_values``, ``p_values_adjusted`` (m,), ``levels`` and ``coverage`` (m, 11) at each x_o.

    Raises:
        ValueError: if an argument is not as described, or pairs or draws are not finite.

    Source: Zhao, Dalmasso, Izbicki & Lee (2021), "Diagnostics for conditional density models and
    Bayesian inference algorithms", Algorithm 1; statistic of Linhart et al. (2023), Appendix.

    q is the posterior under test, as :func:`~validation.as_posterior` takes it; theta (N, d) and x
    (N, p) are pairs from prior and simulator that q was not trained on.
    """
    check_counts(num_nulls=num_nulls)
    pairs, rows = training_pairs(q, theta, x, x_o, num_x_o, seed)
    known = training_rows(len(pairs.x))
    pairs = replace(pairs, theta=pairs.theta[known], x=pairs.x[known])
    ranks, density = hpd_ranks(pairs, num_samples, seed)
    levels = torch.linspace(0, 1, _LEVELS + 2, dtype=torch.float64)[1:-1]
    generator = torch_generator(part_seed(seed, 2))
    uniform = torch.rand(num_nulls, len(ranks), generator=generator, dtype=torch.float64)
    labels = torch.cat([ranks[None], uniform])[..., None] <= levels
    networks = fit_classifiers(
        pairs.x, labels, training=training or Training((32, 32)), seed=part_seed(seed, 3)
    )
    coverage = networks.probabilities(rows).double()
    values = (coverage - levels).square().mean(dim=2)
    details = {"x_o": rows, "levels": levels, "coverage": coverage[0], "density": density}
    details["num_train"] = len(known)
    return max_t_result("local_hpd", values, seed, details)
