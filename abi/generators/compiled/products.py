"""The matrix products of the networks, by oneDNN where it is the faster.

torch's own go through MKL, which on processors not of its maker leaves half of each vector unit
idle: there oneDNN, a part of torch as well, takes five ninths of the time. It loses where a side is
short, and where there are no such units nothing is gained. Both compute in float32.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

_LEAST = 32  # of each side


def layer(inputs: Tensor, weight: Tensor, bias: Tensor, *, relu: bool) -> Tensor:
    """Inputs (n, b) through one layer, weight (a, b) and bias (a,), and a ReLU: (n, a)."""
    quick = _quick(inputs, weight)
    if quick is not None:
        out: Tensor = quick(inputs, weight, bias, "relu" if relu else "none", [], "")
        return out
    out = torch.addmm(bias, inputs, weight.T)
    return out.relu_() if relu else out


def of_weight(of_outputs: Tensor, inputs: Tensor, into: Tensor) -> None:
    """Write the gradient of a weight (a, b): of outputs (n, a), given the inputs (n, b)."""
    quick = _quick(inputs, into)
    if quick is None:
        torch.mm(of_outputs.T, inputs, out=into)
    else:
        into.copy_(quick(of_outputs.T, inputs.T, None, "none", [], ""))


def of_inputs(of_outputs: Tensor, weight: Tensor) -> Tensor:
    """The gradient of the inputs (n, b): of outputs (n, a), given the weight (a, b)."""
    quick = _quick(of_outputs, weight)
    if quick is None:
        return of_outputs @ weight
    out: Tensor = quick(of_outputs, weight.T, None, "none", [], "")
    return out


def _quick(rows: Tensor, weight: Tensor) -> Any:
    """A product for sides of these lengths by oneDNN; None where torch's own is to do it."""
    return _onednn() if min(rows.shape[0], *weight.shape) >= _LEAST else None


@cache
def _onednn() -> Any:
    """(x, weight, bias, activation) -> x weight^T + bias; None where there is no faster one."""
    wide = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    if not (wide and torch.backends.mkldnn.is_available()):
        return None
    found = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    return None if found is None else found.default
