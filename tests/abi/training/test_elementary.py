"""Compiled exponentials, sines and cosines."""

from __future__ import annotations

import torch

from abi.training import elementary


def test_elementary_functions_are_exact_to_single_precision() -> None:
    x = torch.linspace(-40.0, 40.0, 100_001)
    x[0] = torch.nan
    e, sine, cosine = x.clone(), x.clone(), torch.empty_like(x)
    elementary.exponentiate(e.numpy())
    elementary.sines(sine.numpy(), cosine.numpy())
    wide, unit = x.double(), 2.0**-23
    for found, exact in ((sine, wide.sin()), (cosine, wide.cos())):
        torch.testing.assert_close(found.double(), exact, rtol=0.0, atol=4.0 * unit, equal_nan=True)
    torch.testing.assert_close(e.double(), wide.exp(), rtol=2.0 * unit, atol=0.0, equal_nan=True)
    beyond = torch.tensor([-torch.inf, -100.0, 100.0, torch.inf])
    elementary.exponentiate(beyond.numpy())
    assert beyond[0] == beyond[1] < 1e-37
    assert beyond[3] == beyond[2] > 1e37
