"""What a picture or a table of a result needs of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor


class Tested(Protocol):
    """As much of a :class:`~validation.ValidationResult` as pictures and tables look at."""

    @property
    def method(self) -> str:
        """Name of the test."""
        ...

    @property
    def statistic(self) -> float:
        """What the test observed."""
        ...

    @property
    def p_value(self) -> float:
        """In (0, 1]."""
        ...

    @property
    def seed(self) -> int:
        """The seed that reproduces it."""
        ...

    @property
    def null_statistics(self) -> Tensor | None:
        """What chance would give, (m,)."""
        ...

    @property
    def details(self) -> Mapping[str, Any]:
        """What the method saw on the way."""
        ...
