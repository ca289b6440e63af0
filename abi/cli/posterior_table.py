"""The table that ``abi fit`` prints: mean and standard deviation of each parameter."""

from __future__ import annotations

from torch import Tensor

from ..posterior import ABIPosterior
from ..report.summary import describe, mean_and_sd


def print_table(samples: Tensor, exact: Tensor | None, posterior: ABIPosterior) -> None:
    """Print samples (n, d) in numbers, and those of the exact posterior (m, d) beside them."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    title = f"posterior after {posterior.num_simulations:,} simulator calls"
    table = Table(title=title, min_width=len(title))
    for column in (
        "parameter",
        "ABI mean ± sd",
        *(("exact mean ± sd",) if exact is not None else ()),
    ):
        table.add_column(column, no_wrap=True, justify="left" if column == "parameter" else "right")
    columns = [
        describe(part, posterior.parameter_names) for part in (samples, exact) if part is not None
    ]
    for name in posterior.parameter_names:
        # As text: in rich's markup a name such as "mass [kg]" would lose its unit.
        table.add_row(Text(name), *(mean_and_sd(part[name]) for part in columns))
    Console().print(table)
