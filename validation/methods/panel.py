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
    """Test q by a panel of tests with one exact p-value.

    Other Parameters:
        x_o: one observation to test at, in the shape that x has them, by the quarter of the pairs
            (100 at least) that is nearest in x and in q's posterior; all x when omitted.
        num_samples: K, draws of q an observation; 100 when omitted, and fewer, to 25, where the
            pairs are very many or theta is wide.
        num_swaps: B; the least p-value is 1 / (B + 1).
        seed: of everything random.

    Returns:
        The combined statistic. ``details``: ``p_values`` of each test of the panel alone, by name;
        ``findings``, what is wrong with q, each at level .05 over all that was looked at, as
        :class:`~validation.swaps.findings.Finding`; at an x_o ``deviations``, how far each
        parameter may be off there, in their place; ``ranks`` of each true parameter among q's
        draws (N, d); ``num_pairs`` that were judged: of very many or wide ones those, at random,
        that fit into memory.

    Raises:
        ValueError: if an argument is not as described, or pairs or draws are not finite.

    Source: ours; the combination is Liu & Xie's (2020), the common null Westfall & Young's (1993).

    q is any posterior, theta (N, d) and x (N, p) joint draws it never saw: see :mod:`validation`.
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
