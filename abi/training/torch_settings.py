"""Settings of torch that a fit relies on, and the caller's own afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.distributions import Distribution


@contextmanager
def usual_torch() -> Iterator[None]:
    """Gradients, float32 and :func:`unvalidated` distributions, whatever the caller has set."""
    dtype = torch.get_default_dtype()
    with torch.inference_mode(False), torch.enable_grad(), unvalidated():
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


@contextmanager
def unvalidated() -> Iterator[None]:
    """Distributions give a density of zero outside their support instead of an error.

    zuko switches the checks off for a whole process as it is imported; inside they are off, and
    outside as the caller left them.
    """
    checked = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution.set_default_validate_args(checked)
