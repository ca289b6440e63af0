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

import numpy as np
import torch
from torch import Tensor

from simulators.random import as_count, torch_generator

from ..posteriors.draws import JointDraws, given
from ..posteriors.protocol import as_matrix
from ..results.result import ValidationResult
from ..scores.uniformity import ks_uniform, randomised_ranks
from ..seeds import part_seed

_NUMBERS_AT_ONCE = 1 << 24


def tarp(
    q: Any,
    theta: Tensor,
    x: Tensor,
    *,
    num_samples: int = 1_000,
    references: Tensor | None = None,
    seed: int = 0,
) -> ValidationResult:
    """TARP: do balls around random points hold the true theta as often as q says?

    Each ball is as large as to have the true theta on its edge; q's share inside is then uniform if
    q is the posterior. Parameters are measured in units of the range that holds 99% of them.

    Other Parameters:
        num_samples: K, draws of q at each x.
        references: centres of the balls, (N, d); they may depend on x, but not on theta. When
            omitted, uniform over these ranges.
        seed: of everything random.

    Returns:
        The Kolmogorov-Smirnov distance of the coverage values. ``details``: ``ranks`` (N,).

    Raises:
        ValueError: if an argument is not as described, or pairs or draws are not finite.

    Source: Lemos, Coogan, Hezaveh & Perreault-Levasseur (2023), "Sampling-based accuracy testing of
    posterior estimators for general inference", Algorithm 2.

    q is the posterior under test, as :func:`~validation.as_posterior` takes it; theta (N, d) and x
    (N, p) are pairs from prior and simulator that q was not trained on.
    """
    num_samples = as_count(num_samples, "num_samples", 1)
    pairs = given(q, theta, x)
    points = None if references is None else _checked(references, pairs.theta.shape)
    box: tuple[Tensor, Tensor] | None = None
    found: list[Tensor] = []
    start = 0
    for part, part_of in pairs.parts(num_samples, seed):
        draws = part.draws(num_samples, part_seed(part_of, 0))
        box = _box(draws) if box is None else box
        own = None if points is None else points[start : start + len(part.x)]
        start += len(part.x)
        found.append(_ranks(draws, box, own, part_of))
    ranks = torch.cat(found)
    distance, p_value = ks_uniform(ranks)
    return ValidationResult(
        "tarp", distance, p_value, seed, details={"ranks": ranks, "num_samples": num_samples}
    )


def _checked(references: Any, shape: torch.Size) -> Tensor:
    points = as_matrix(references, "references")
    if points.shape != shape or not torch.isfinite(points).all():
        raise ValueError(
            f"`references` must hold one finite point a pair, shape {tuple(shape)}; got "
            f"{tuple(points.shape)}, {int((~torch.isfinite(points)).sum())} values not finite."
        )
    return points


def _box(draws: JointDraws) -> tuple[Tensor, Tensor]:
    """Low corner (d,) and sides of the central 99% of true and drawn parameters together.

    Truth and draws enter alike, so the box does not tell them apart and the ranks stay exact.
    """
    ends = []
    for j in range(draws.theta.shape[1]):  # one after the other: the order takes much memory
        pooled = torch.cat([draws.theta[None, :, j], draws.samples[:, :, j]]).flatten()
        cut = int(0.005 * (len(pooled) - 1))
        inner = np.partition(pooled.numpy(), [cut, len(pooled) - 1 - cut])
        ends.append((inner[cut], inner[len(pooled) - 1 - cut]))
    low, high = torch.tensor(np.array(ends)).T
    return low, torch.where(high > low, high - low, torch.ones_like(low))


def _ranks(
    draws: JointDraws, box: tuple[Tensor, Tensor], references: Tensor | None, seed: int
) -> Tensor:
    """Coverage values (N,) about the references, or about points drawn from the box."""
    low, width = box
    if references is None:
        generator = torch_generator(part_seed(seed, 1))
        references = low + width * torch.rand(draws.theta.shape, generator=generator)
    truth = torch.linalg.vector_norm((draws.theta - references) / width, dim=-1)
    rows = max(1, _NUMBERS_AT_ONCE // max(1, references.numel()))
    others = [
        torch.linalg.vector_norm((some - references) / width, dim=-1)
        for some in draws.samples.split(rows)
    ]
    return randomised_ranks(truth, torch.cat(others), part_seed(seed, 2))
