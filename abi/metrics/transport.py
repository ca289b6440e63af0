"""Wasserstein distances between two samples, exact.

    W_p^p(a, b) = min over couplings of  sum_ij gamma_ij |a_i - b_j|^p,

a linear programme, solved by POT's network simplex. W1 of n draws to n others of the same law in d
dimensions falls only like n^(-1/d): compare it with that between two exact samples.

Source: Villani (2009); Flamary et al. (2021), POT.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simulators.random import isolated_rng

from .inputs import as_pair
from .moments import deviations

_MAX_PIVOTS = 10_000_000


def wasserstein(samples: Tensor, reference: Tensor, *, order: int = 1) -> float:
    """The Wasserstein distance W_p between two samples, exact, in the units of theta.

    Args:
        samples: draws, (n, d).
        reference: draws of the exact posterior, (m, d).
        order: p, 1 or 2.

    Raises:
        ValueError: if the order is another, or the draws are not finite or differ in dimension.

    >>> wasserstein(torch.zeros(2, 1), torch.tensor([[3.0], [5.0]]))
    4.0
    """
    if order not in (1, 2):
        raise ValueError(f"`order` must be 1 or 2; got {order}.")
    a, b = as_pair(samples, reference)
    # POT's tolerances are absolute: costs are given in units of the samples' own extent.
    place = b.mean(dim=0)
    unit = max(float((a - place).abs().max()), float((b - place).abs().max())) or 1.0
    a, b = (a - place) / unit, (b - place) / unit
    cost = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist") ** order
    with isolated_rng(0):  # importing POT draws from the global streams
        import ot

        total: Any = ot.emd2([], [], cost.numpy(), numItermax=_MAX_PIVOTS)
    return unit * float(max(float(total), 0.0) ** (1.0 / order))


def normalised_wasserstein(samples: Tensor, reference: Tensor, *, order: int = 1) -> float:
    """W_p with each parameter measured in standard deviations of the exact posterior.

    A parameter that does not vary in the reference keeps its unit.
    """
    a, b = as_pair(samples, reference)
    sd = deviations(b)
    return wasserstein(a / sd, b / sd, order=order)
