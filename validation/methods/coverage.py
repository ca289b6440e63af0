r"""TARP: expected coverage of balls around random points.

For a reference point ``r_i`` the share of q's draws closer to it than the truth,

    f_i = 1/K #{ j : d(theta_ij, r_i) < d(theta_i, r_i) },

is uniform when q = p (Lemos et al. 2023, Theorem 3). The expected coverage curve ECP(alpha) is the
distribution function of the f_i, so its distance to the diagonal is a Kolmogorov-Smirnov
distance, and with randomised ranks the test is exact.

Differs from sbi's ``check_tarp``: that compares the histogram heights of two curves, which has
next to no power; here the coverage values themselves are tested.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simulators.random import torch_generator

from ..posteriors.draws import JointDraws, joint_draws
from ..posteriors.protocol import as_matrix
from ..results.result import ValidationResult
from ..scores.uniformity import ks_uniform, randomised_ranks
from ..seeds import part_seed


def tarp(
    q: Any,
    theta: Tensor,
    x: Tensor,
    *,
    num_samples: int = 1_000,
    references: Tensor | None = None,
    seed: int = 0,
) -> ValidationResult:
    """Test the coverage of balls around random reference points.

    A parameter's unit is its side of the box that holds the central 99% of all, true and drawn.

    Other Parameters:
        num_samples: K, draws of q an observation.
        references: one point an observation, (N, d); it may depend on x, never on theta. Omitted:
            uniform over that box.
        seed: of q's draws, of the references and of the ties.

    Returns:
        The Kolmogorov-Smirnov distance of the coverage values. ``details``: ``ranks`` (N,).

    Raises:
        ValueError: if an argument is not as described, or pairs or draws are not finite.

    Source: Lemos, Coogan, Hezaveh & Perreault-Levasseur (2023), "Sampling-based accuracy testing of
    posterior estimators for general inference", Algorithm 2.

    q is any posterior, theta (N, d) and x (N, p) joint draws it never saw: see :mod:`validation`.
    """
    draws = joint_draws(q, theta, x, num_samples, part_seed(seed, 0))
    low, high = _box(draws)
    width = torch.where(high > low, high - low, torch.ones_like(low))
    if references is None:
        generator = torch_generator(part_seed(seed, 1))
        references = low + width * torch.rand(draws.theta.shape, generator=generator)
    else:
        references = as_matrix(references, "references")
        if references.shape != draws.theta.shape or not torch.isfinite(references).all():
            raise ValueError(
                f"`references` must hold one finite point a pair, shape "
                f"{tuple(draws.theta.shape)}; got {tuple(references.shape)}, "
                f"{int((~torch.isfinite(references)).sum())} values not finite."
            )
    truth = torch.linalg.vector_norm((draws.theta - references) / width, dim=-1)
    others = torch.linalg.vector_norm((draws.samples - references) / width, dim=-1)
    ranks = randomised_ranks(truth, others, part_seed(seed, 2))
    distance, p_value = ks_uniform(ranks)
    return ValidationResult(
        "tarp", distance, p_value, seed, details={"ranks": ranks, "num_samples": num_samples}
    )


def _box(draws: JointDraws) -> tuple[Tensor, Tensor]:
    """Low and high corner (d,) of the central 99% of true and drawn parameters together.

    Truth and draws enter alike, so the box does not tell them apart and the ranks stay exact.
    """
    pooled = torch.cat([draws.theta[None], draws.samples]).flatten(0, 1)
    ordered = pooled.sort(dim=0).values
    cut = int(0.005 * (len(ordered) - 1))
    return ordered[cut], ordered[len(ordered) - 1 - cut]
