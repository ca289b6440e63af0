r"""One exact p-value for "q is the posterior", over a panel of tests, and what is wrong with q.

Under q = p the true theta and q's draws at the same x are exchangeable. So each is taken for the
truth in turn: that gives the panel's tests, however many and however correlated, one null together,
exact and with no correction for their number (:mod:`validation.swaps`). The tests are forms of
those of this folder that learn in closed form, anew for every swap: SBC, TARP, HPD, CoLT, C2ST,
the score rank and the conformal C2ST; at an x_o L-C2ST in place of C2ST. Hundreds of pairs take a
fraction of a second.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from simulators.base import numbered_names
from simulators.random import torch_generator

from ..posteriors.draws import Given, JointDraws, check_counts, drawn, given, only
from ..posteriors.protocol import Posterior
from ..results.result import ValidationResult
from ..seeds import part_seed
from ..swaps.candidates import Candidates
from ..swaps.context import around, everywhere
from ..swaps.deviations import deviations
from ..swaps.features import num_features
from ..swaps.findings import findings
from ..swaps.panel import NUM_SWAPS
from ..swaps.panel import panel as panel_of
from .density_ranks import log_densities

LEAST_PAIRS = 10
MOST_DRAWS, LEAST_DRAWS = 100, 25
"""K: more see little more, fewer little."""
ALPHA = 0.05
"""Level of what is found to be wrong."""
_FEATURES = 2**27
"""Values that the features of all candidates may have: half a GiB."""
_NEAREST, _LEAST_NEAR = 0.25, 100  # of the pairs, at an x_o
_AT_X_O = 1_000


def panel(
    q: Any,
    theta: Tensor,
    x: Tensor,
    *,
    x_o: Tensor | None = None,
    num_samples: int | None = None,
    num_swaps: int = NUM_SWAPS,
    seed: int = 0,
) -> ValidationResult:
    """Several tests of q with one exact p-value over all of them, and in words what is wrong.

    If q is the posterior, the true theta could change places with any of q's draws at the same x.
    The tests are repeated after such swaps, and the p-value says how unusual the true theta are
    among them.

    Other Parameters:
        x_o: one observation, in the shape that x has them: the tests then look at the quarter of
            the pairs (100 at least) that is nearest to it, in x and in q's posterior.
        num_samples: K, draws of q at each x. When omitted: 100; fewer, down to 25, where there are
            very many pairs or parameters.
        num_swaps: B, repetitions; the smallest possible p-value is 1 / (B + 1).
        seed: of everything random.

    Returns:
        The combined statistic. ``details``: ``p_values``, of each test alone, by name;
        ``findings``, what is wrong with q, at level .05 over everything looked at
        (:class:`~validation.swaps.findings.Finding`), or, at an x_o, ``deviations``, how far each
        parameter may be off there; ``ranks`` of each true parameter among q's draws (N, d);
        ``num_pairs`` used, which are fewer than given, at random, where memory is too small.

    Raises:
        ValueError: if an argument is not as described, or pairs or draws are not finite.

    Source: ours; the combination is Liu & Xie's (2020) without negative terms, as in Liu, Meng &
    Pillai (2025); the common null is Westfall & Young's (1993).

    q is the posterior under test, as :func:`~validation.as_posterior` takes it; theta (N, d) and x
    (N, p) are pairs from prior and simulator that q was not trained on.
    """
    check_counts(num_swaps=num_swaps)
    pairs = _that_fit(given(q, theta, x, LEAST_PAIRS), part_seed(seed, 1))
    num_samples = num_draws(*pairs.theta.shape) if num_samples is None else num_samples
    here = None if x_o is None else only(pairs.observations(x_o))[0]
    draws = pairs.draws(num_samples, part_seed(seed, 0))
    candidates = _candidates(pairs.q, draws, here, seed)
    found = panel_of(candidates, part_seed(seed, 4), num_swaps)
    details: dict[str, Any] = {"num_samples": num_samples}
    if here is None:
        details["findings"] = findings(
            candidates, draws.x, part_seed(seed, 5), alpha=ALPHA, num_swaps=num_swaps
        )
    else:
        names = numbered_names(draws.theta.shape[1])
        details |= {"x_o": here[None], "deviations": deviations(candidates, names)}
    ranks = candidates.of_truth(candidates.ranks)
    details |= {"num_pairs": candidates.num_pairs, "ranks": ranks}
    return ValidationResult(
        "panel",
        found.statistic,
        found.p_value,
        seed,
        found.null_statistics,
        {"p_values": dict(found.p_values), **details},
    )


def _candidates(q: Posterior, draws: JointDraws, x_o: Tensor | None, seed: int) -> Candidates:
    """The true theta among q's draws; at an x_o, of the pairs that are nearest to it."""
    distance = None
    if x_o is None:
        context = everywhere(draws.x, draws.together)
    else:
        theta_o = drawn(q, _AT_X_O, x_o[None], draws.theta.shape[1], part_seed(seed, 6))[:, 0]
        context, distance = around(draws.x, draws.together, x_o, theta_o, part_seed(seed, 7))
    whole = Candidates.of(
        draws.theta,
        draws.samples,
        context,
        distance,
        log_densities(q, draws),
        seed=part_seed(seed, 2),
    )
    if distance is None:
        return whole
    return whole.rows(distance.argsort()[: max(_LEAST_NEAR, round(_NEAREST * len(distance)))])


def num_draws(pairs: int, width: int) -> int:
    """K, draws of q at each of so many pairs of so many parameters."""
    return max(LEAST_DRAWS, min(MOST_DRAWS, _FEATURES // (pairs * num_features(width)) - 1))


def _that_fit(pairs: Given, seed: int) -> Given:
    """All pairs, or at random as many as the features of their candidates fit into memory for."""
    count, width = pairs.theta.shape
    most = max(LEAST_PAIRS, _FEATURES // ((LEAST_DRAWS + 1) * num_features(width)))
    if count <= most:
        return pairs
    kept = torch.randperm(count, generator=torch_generator(seed))[:most]
    return replace(pairs, theta=pairs.theta[kept], x=pairs.x[kept])
