"""What of x the quantile network sees: all of it, or its sorted values.

Many data sets are samples: their order carries little, and a plain network needs far more
simulations to find that out than a network that is shown the sorted values. Which form serves is
decided by the held-out loss of the quantile regression, never by the answer.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

Encode = Callable[[Tensor], Tensor]


def flat(x: Tensor) -> Tensor:
    """All values in their order, (n, p) -> (n, p)."""
    return x


def sort_values(x: Tensor) -> Tensor:
    """The order statistics, (n, p) -> (n, p)."""
    return x.sort(dim=1).values


ENCODERS: dict[str, Encode] = {"flat": flat, "sorted": sort_values}
