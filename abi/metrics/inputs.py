"""What a metric may be given: two finite samples of the same dimension."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from simulators.arguments import as_tensor


def as_pair(samples: Any, reference: Any) -> tuple[Tensor, Tensor]:
    """Both samples in double precision, (n, d) and (m, d).

    Raises:
        ValueError: if one is not (n, d) with n >= 2, holds NaN or Inf, or the dimensions differ.
    """
    a, b = as_sample(samples, "samples"), as_sample(reference, "reference")
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"`samples` and `reference` must have the same dimension; got {a.shape[1]} and "
            f"{b.shape[1]}."
        )
    return a, b


def as_sample(values: Any, name: str) -> Tensor:
    """A sample in double precision, (n, d).

    Raises:
        ValueError: if it is not (n, d) with n >= 2, or holds NaN or Inf.
    """
    sample = as_tensor(values, name, torch.float64)
    if sample.ndim != 2 or len(sample) < 2:
        one = f" For one parameter write {name}[:, None]." if sample.ndim == 1 else ""
        raise ValueError(f"`{name}` must be draws (n, d), n >= 2; got {tuple(sample.shape)}.{one}")
    bad = int((~torch.isfinite(sample)).any(dim=1).sum())
    if bad:
        raise ValueError(
            f"`{name}` must be finite; {bad} of {len(sample)} rows hold NaN or Inf. Drop them and "
            "say so beside the result."
        )
    return sample
