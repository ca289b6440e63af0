r"""Highest posterior density: is the truth as deep inside q as q's own draws are?

The HPD rank of ``theta_i`` is the share of draws with a lower density,
``U_i = q(.|x_i){ theta : q(theta|x_i) < q(theta_i|x_i) }``, uniform when q = p. Where q offers
draws only, the density is estimated from half of them (the distance to the k-th nearest, which
orders points as the k-nearest-neighbour density does), and the truth is ranked among the other
half: a score that treats truth and ranked draws alike, so the test is exact either way.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simulators.random import as_count

from ..posteriors.draws import Given, JointDraws, given
from ..results.result import ValidationResult
from ..scores.uniformity import ks_uniform, randomised_ranks
from ..seeds import part_seed


def hpd(
    q: Any, theta: Tensor, x: Tensor, *, num_samples: int = 1_000, seed: int = 0
) -> ValidationResult:
    """HPD: do q's highest-density regions hold the true theta as often as they should?

    It ranks the density of the true theta among those of q's draws at the same x; if q is the
    posterior, the ranks are uniform.

    Other Parameters:
        num_samples: K, draws of q at each x; at least 4 where q has no density of its own.
        seed: of everything random.

    Returns:
        The Kolmogorov-Smirnov distance of the ranks. ``details``: ``ranks`` (N,) and ``density``,
        which density was used: q's own, or one estimated from its draws.

    Raises:
        ValueError: if an argument is not as described, or pairs or draws are not finite, or a
            density is NaN.

    Source: Hyndman (1996), "Computing and graphing highest density regions"; expected coverage of
    Deistler, Goncalves & Macke (2022).

    q is the posterior under test, as :func:`~validation.as_posterior` takes it; theta (N, d) and x
    (N, p) are pairs from prior and simulator that q was not trained on.
    """
    ranks, density = hpd_ranks(given(q, theta, x), num_samples, seed)
    distance, p_value = ks_uniform(ranks)
    details = {"ranks": ranks, "density": density, "num_samples": num_samples}
    return ValidationResult("hpd", distance, p_value, seed, details=details)


def hpd_ranks(pairs: Given, num_samples: int, seed: int) -> tuple[Tensor, str]:
    """HPD ranks (N,) and the name of the density that ordered the draws."""
    num_samples = as_count(num_samples, "num_samples", 1)
    ranks, density = [], "q.log_prob"
    for part, part_of in pairs.parts(num_samples, seed):
        draws = part.draws(num_samples, part_seed(part_of, 0))
        known = log_densities(part.q, draws)
        score = None if known is None else (known[0], known[1:])
        if score is None:
            score, density = _neighbour_density(draws), "nearest neighbours among half of the draws"
        ranks.append(randomised_ranks(*score, part_seed(part_of, 1)))
    return torch.cat(ranks), density


def log_densities(posterior: Any, draws: JointDraws) -> Tensor | None:
    """Log q of the truth, then of the draws, (1 + K, N), or None where q has none."""
    if not hasattr(posterior, "log_prob"):
        return None
    try:
        values: Tensor = posterior.log_prob(draws.together, draws.x)
    except (NotImplementedError, AttributeError):
        return None
    if torch.isnan(values).any():
        raise ValueError(
            f"`q` must have a density at its draws and at theta; log_prob gave "
            f"{int(torch.isnan(values).sum())} NaN in {values.numel()} values."
        )
    return values


def _neighbour_density(draws: JointDraws) -> tuple[Tensor, Tensor]:
    """Minus the distance to the k-th nearest of half of the draws: truth (N,), others (K/2, N)."""
    half = len(draws.samples) // 2
    if half < 2:
        raise ValueError(
            f"`num_samples` must be at least 4 where q has no density; got {len(draws.samples)}."
        )
    known, ranked = draws.samples[:half], draws.samples[half:]
    place, scale = known.mean(dim=0), known.std(dim=0)
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    k = max(1, round(half**0.5))
    columns = []
    for i, truth in enumerate(draws.theta):
        points = torch.cat([truth[None], ranked[:, i]])
        # About 0, for distances between points far from it are lost in rounding.
        points, others = ((part - place[i]) / scale[i] for part in (points, known[:, i]))
        columns.append(torch.cdist(points, others).kthvalue(k, dim=1).values)
    values = -torch.stack(columns, dim=1)
    return values[0], values[1:]
