"""The table that ``abi fit`` prints: mean and standard deviation of each parameter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ..posterior import ABIPosterior
from ..report.summary import describe


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


def mean_and_sd(moments: Mapping[str, Any]) -> str:
    """Three decimals, or as many as show two digits of the standard deviation.

    >>> mean_and_sd({"mean": 3.9671, "sd": 0.0731}), mean_and_sd({"mean": 0.5, "sd": 2.1e-05})
    ('3.967 ± 0.073', '0.500000 ± 0.000021')
    """
    from validation.page.words import measured

    mean, sd = moments["mean"], moments["sd"]
    if sd is None:  # of one draw
        return f"{mean:.6g}"
    if sd >= 1e-6 and max(abs(mean), sd) < 1e7:
        places = max(3, 1 - math.floor(math.log10(sd)))
        return f"{mean:.{places}f} ± {sd:.{places}f}"
    return f"{measured(mean, sd, 2)} ± {measured(sd, sd, 2)}"
