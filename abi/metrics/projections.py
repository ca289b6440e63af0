"""Sliced and marginal Wasserstein distances, the two terms of ABI's own MSW distance.

Source: Lu & Wong (2025), eqs. (2.2)-(2.4); :mod:`abi.quantiles.distance` has the derivation.
"""

from __future__ import annotations

from torch import Tensor

from ..quantiles.distance import msw_distance
from .inputs import as_pair

_SLICES = 200


def marginal_distance(samples: Tensor, reference: Tensor, *, order: float = 1.0) -> float:
    """Wasserstein distance W_p between the marginals of one parameter, averaged over them."""
    a, b = as_pair(samples, reference)
    return float(msw_distance(a, b, order=order, mixing=1.0))


def sliced_distance(
    samples: Tensor, reference: Tensor, *, order: float = 1.0, seed: int = 0
) -> float:
    """The sliced Wasserstein distance, over 200 random directions.

    Args:
        samples: draws, (n, d).
        reference: draws of the exact posterior, (m, d).
        order: p, at least 1.
        seed: of the directions.
    """
    a, b = as_pair(samples, reference)
    marginal = float(msw_distance(a, b, order=order, mixing=1.0))
    if a.shape[1] == 1:
        return marginal
    # MSW = (marginal + sliced) / 2 at mixing 1/2.
    both = msw_distance(a, b, order=order, mixing=0.5, num_slices=_SLICES, seed=seed)
    return 2.0 * float(both) - marginal
