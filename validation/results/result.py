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
    """Outcome of one test of ``H0: q(theta | x) = p(theta | x)``.

    Under H0, ``P(p_value <= alpha) <= alpha`` for every alpha (up to the approximation named in
    ``details["p_value_kind"]`` where there is one). ``print`` shows it in ten lines at most.
    """

    method: str
    """Name of the test, a key of :data:`validation.METHODS` or a variant of one."""
    statistic: float
    """Test statistic; larger means further from the null, unless ``details`` says otherwise."""
    p_value: float
    """In (0, 1]."""
    seed: int
    """The seed that reproduces the result bit for bit on the same machine."""
    null_statistics: Tensor | None = None
    """Statistics under the null (m,), where the null was simulated or permuted."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the method saw on the way: ranks, per-parameter p-values, split sizes, callables."""

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
        """Whether H0 is rejected at level ``alpha``, in (0, 1).

        Raises:
            ValueError: if alpha lies outside.
        """
        FRACTION(alpha, "alpha")
        return self.p_value <= alpha

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the method's own picture on ``ax`` (new axes when omitted); needs matplotlib."""
        from .plotting import plot_result

        return plot_result(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Everything that JSON can hold; callables and tensors above 1,000 values are left out."""
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
