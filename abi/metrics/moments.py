"""Errors of means, standard deviations and correlations, coordinate by coordinate."""

from __future__ import annotations

import torch
from torch import Tensor

from .inputs import as_pair


def mean_bias(samples: Tensor, reference: Tensor) -> Tensor:
    """Error of each parameter's mean, in standard deviations of the exact posterior: (d,)."""
    a, b = as_pair(samples, reference)
    return (a.mean(dim=0) - b.mean(dim=0)) / deviations(b)


def sd_ratio(samples: Tensor, reference: Tensor) -> Tensor:
    """Standard deviation of each parameter over that of the exact posterior: (d,)."""
    a, b = as_pair(samples, reference)
    return a.std(dim=0) / deviations(b)


def extreme_moments(samples: Tensor, reference: Tensor) -> dict[str, float]:
    """The largest error of a mean, in exact sds, and the range of the ratios of sds."""
    ratios = sd_ratio(samples, reference)
    return {
        "largest_mean_bias": float(mean_bias(samples, reference).abs().max()),
        "smallest_sd_ratio": float(ratios.min()),
        "largest_sd_ratio": float(ratios.max()),
    }


def correlation_error(samples: Tensor, reference: Tensor) -> Tensor:
    """Error of the correlation of each two parameters i < j: (d (d - 1) / 2,)."""
    a, b = as_pair(samples, reference)
    row, column = torch.triu_indices(a.shape[1], a.shape[1], offset=1)
    return (_correlation(a) - _correlation(b))[row, column]


def _correlation(sample: Tensor) -> Tensor:
    z = (sample - sample.mean(dim=0)) / deviations(sample)
    return z.T @ z / (len(sample) - 1)


def deviations(sample: Tensor) -> Tensor:
    """Standard deviations (d,) of a sample (n, d), one where a column does not vary."""
    varies = sample.amax(dim=0) > sample.amin(dim=0)  # rounding gives a constant a deviation
    return torch.where(varies, sample.std(dim=0), 1.0)
