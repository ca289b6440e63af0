"""Mean and covariance of items as numbers that a network can tell apart."""

from __future__ import annotations

import torch
from torch import Tensor

_JITTER = 1e-6  # of a variance, keeps the factor of n <= m items or of constant ones


def moments(items: Tensor) -> Tensor:
    """Mean and covariance of items (n, k, m) as unconstrained numbers, (n, m + m (m + 1) / 2)."""
    values = items.double()
    mean = values.mean(dim=1)
    centered = values - mean[:, None]
    covariance = centered.transpose(1, 2) @ centered / items.shape[1]
    variance = covariance.diagonal(dim1=1, dim2=2).clamp(min=1e-30)
    factor = torch.linalg.cholesky(covariance + torch.diag_embed(_JITTER * variance))
    diagonal = factor.diagonal(dim1=1, dim2=2)
    row, column = torch.tril_indices(items.shape[2], items.shape[2], -1)
    slope = torch.asinh((factor / diagonal[:, :, None])[:, row, column])
    return torch.cat([mean, diagonal.log(), slope], dim=1).float()
