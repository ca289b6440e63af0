"""Maximum mean discrepancy with a Gaussian kernel, its bandwidth stated.

    k(a, b) = exp(-|a - b|^2 / (2 s^2)),
    MMD^2 = E k(a, a') - 2 E k(a, b) + E k(b, b'),

estimated without bias: pairs of a point with itself are left out, and the estimate may be negative.
The bandwidth s is the median distance between two points of the reference, so that methods compared
with one reference are measured by one kernel.

Source: Gretton et al. (2012), Lemma 6.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .inputs import as_pair, as_sample


def mmd_squared(samples: Tensor, reference: Tensor, *, bandwidth: float | None = None) -> float:
    """The squared maximum mean discrepancy, estimated without bias; it may come out negative.

    Args:
        samples: draws, (n, d).
        reference: draws of the exact posterior, (m, d).
        bandwidth: s, in the units of theta; :func:`median_bandwidth` of the reference when omitted.

    Raises:
        ValueError: if the samples do not fit together, the bandwidth is not positive, or it is
            omitted and the reference does not vary.
    """
    a, b = as_pair(samples, reference)
    width = median_bandwidth(b) if bandwidth is None else bandwidth
    if not width > 0.0:
        raise ValueError(f"`bandwidth` must be positive; got {width}.")
    return _off_diagonal(a, width) + _off_diagonal(b, width) - 2.0 * float(_k(a, b, width).mean())


def median_bandwidth(reference: Tensor) -> float:
    """The median distance between two draws of the reference (m, d), in the units of theta.

    Raises:
        ValueError: if the reference is not (m, d) with m >= 2, holds NaN or Inf, or is one point.
    """
    rows = as_sample(reference, "reference")
    distances = torch.pdist(rows)
    # Where more than half of the pairs are repeated draws, the median of the others.
    apart = distances[distances > 0]
    if not len(apart):
        raise ValueError(
            f"`reference` must vary for a kernel to have a bandwidth; its {len(rows)} draws are "
            "all the same. Leave mmd_squared out, or give it a `bandwidth` of your own."
        )
    return float(distances.median()) or float(apart.median())


def _k(a: Tensor, b: Tensor, width: float) -> Tensor:
    # The form by matrix products loses small distances between points far from the origin.
    distance = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    return torch.exp(-(distance**2) / (2.0 * width**2))


def _off_diagonal(a: Tensor, width: float) -> float:
    n = len(a)
    return float((_k(a, a, width).sum() - n) / (n * (n - 1)))
