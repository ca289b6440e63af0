"""A torch module of the user's as an encoder: what it must take and give."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from simulators.random import isolated_rng


def check_own_encoder(encoder: nn.Module, x_o: Tensor) -> None:
    """Refuse a module that does not give features (n, k) of x (n, p), before it is paid for.

    Raises:
        TypeError: if it is no module.
        ValueError: if it cannot take x, or gives something else.
    """
    if not isinstance(encoder, nn.Module):
        raise TypeError(
            f"`encoder` must be a torch module; got {type(encoder).__name__}. One of ours is "
            'chosen by its name: config=abi.ABIConfig(encoder="conv").'
        )
    x = x_o.repeat(2, 1)
    try:
        with isolated_rng(0), torch.no_grad():
            features = copy.deepcopy(encoder).eval().cpu()(x)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"`encoder` must take float32 x of shape (n, {len(x_o)}); given (2, {len(x_o)}) it "
            f"says: {reason}"
        ) from error
    if isinstance(features, Tensor) and features.isnan().any() and x.isnan().any():
        raise ValueError(
            "`encoder` must give numbers where x has gaps; it gives NaN. Let it fill them and see "
            "where they are: torch.cat([x.nan_to_num(0.0), x.isnan().float()], dim=1)."
        )
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != 2:
        got = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise ValueError(f"`encoder` must give features (n, k), two rows for two x; got {got}.")
