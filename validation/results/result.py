"""What every test returns: one frozen record, the same for all methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from torch import Tensor

from simulators.arguments import FRACTION

from .plain import plain
from .printed import one_line, result_rows, title
from .tables import html_table, text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False, repr=False)
class ValidationResult:
    """What one test says of the hypothesis that q(theta | x) is the posterior p(theta | x).

    If it is, the p-value is at most alpha with probability alpha or less, for every alpha. Where
    that holds only approximately, ``details["p_value_kind"]`` says how. ``print(result)`` shows it
    in ten lines at most.
    """

    method: str
    """Name of the test, a key of :data:`validation.METHODS` or a variant of one."""
    statistic: float
    """What the test measures; larger is worse, unless ``details`` says otherwise."""
    p_value: float
    """In (0, 1]; small ones speak against q."""
    seed: int
    """The same seed gives the same result, on the same machine to the last bit."""
    null_statistics: Tensor | None = None
    """What the statistic would be if q were right, (m,), where that was simulated."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """More of what the test found, such as ranks and p-values of single parameters."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def __repr__(self) -> str:
        return one_line(self)

    def __str__(self) -> str:
        return f"{title(self)}\n{text_table(result_rows(self))}"

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return html_table(result_rows(self), caption=title(self))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a result is neither true nor false: read result.p_value, or ask result.reject(alpha)."
        )

    def __reduce__(self) -> tuple[type[ValidationResult], tuple[Any, ...]]:
        """So that it can be copied and pickled: a read-only mapping cannot."""
        values = (self.method, self.statistic, self.p_value, self.seed, self.null_statistics)
        return type(self), (*values, dict(self.details))

    def reject(self, alpha: float = 0.05) -> bool:
        """Whether q is rejected at level ``alpha``.

        Raises:
            ValueError: if alpha is not in (0, 1).
        """
        FRACTION(alpha, "alpha")
        return self.p_value <= alpha

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the test's picture on ``ax``, or on new axes; needs matplotlib."""
        from .plotting import plot_result

        return plot_result(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; functions and tensors above 1,000 values are left out."""
        null = None if self.null_statistics is None else self.null_statistics.tolist()
        return plain(
            {
                "method": self.method,
                "statistic": self.statistic,
                "p_value": self.p_value,
                "seed": self.seed,
                "null_statistics": null,  # of any size
                "details": self.details,
            }
        )
