"""Items whose number differs from simulation to simulation, as rows of one length.

A row of x holds the most items there may be, one after another, and NaN in place of those that are
absent, from the end on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from ..given.function import is_seeded, refuse_other
from ..given.task import CustomTask
from ..given.values import as_float
from ..random import as_count
from .mechanism import WithGaps


@dataclass(frozen=True)
class Trials:
    """A function of one theta that returns items, as one that returns them in a row."""

    function: Callable[..., Any]
    most_items: int
    item_dim: int

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """Whose arguments these are."""
        return self.function

    @property
    def form(self) -> Any:
        """How the function says that it is called, if it does."""
        return getattr(self.function, "form", None)

    def __call__(self, *theta: Any, **named: Any) -> Tensor:
        """The items of one simulation, (most_items * item_dim,)."""
        items = self.function(*theta, **named)
        return padded(items, self.most_items, self.item_dim, "simulator")


def trials(simulator: Callable[..., Any], most_items: int, item_dim: int = 1) -> WithGaps:
    """Say that x is a set of items, in any order, whose number may differ between simulations.

    The number is part of the data: where it depends on theta, it informs. A fit answers at an x_o
    of any number that the simulator may give; let it draw the number, if it is yours to choose.

    Args:
        simulator: your own function of one theta, which returns items: an array or a list (k,), or
            (k, item_dim), with k from 0 to ``most_items``.
        most_items: the most items of a simulation and of x_o.
        item_dim: values of one item.

    Returns:
        A simulator for :func:`from_function`, whose task :func:`simulate` takes, and ``abi.fit``,
        whose x_o is given as the simulator returns items. A row of x has ``most_items * item_dim``
        values, NaN after the last item.

    Raises:
        TypeError: if ``simulator`` is no function.
        ValueError: if a number is not at least 1, or the simulator is one of ours, whose x has one
            length.

    >>> import torch
    >>> from simulators import from_function, simulate
    >>> prior = {"rate": torch.distributions.Exponential(1.0)}
    >>> task = from_function(trials(lambda theta: theta.repeat(2), 3), prior)
    >>> simulate(task, torch.ones(1, 1), seed=0, progress=False).x
    tensor([[1., 1., nan]])
    """
    refuse_other(simulator)
    counts = as_count(most_items, "most_items", 1), as_count(item_dim, "item_dim", 1)
    if isinstance(simulator, CustomTask):
        items = Trials(simulator.function, *counts)
        task = replace(simulator, function=items, item_dim=counts[1])
        return WithGaps(task, None, most_items)
    if is_seeded(simulator) or isinstance(simulator, WithGaps):
        raise ValueError(
            "`simulator` must be your own function of one theta that returns its items; got "
            f"{type(simulator).__name__}, whose x has one length. Fill x with NaN after the last "
            "item, and say so by simulators.with_gaps(simulator)."
        )
    return WithGaps(Trials(simulator, *counts), None, most_items)


def padded(items: Any, most_items: int, item_dim: int = 1, name: str = "x_o") -> Tensor:
    """Items (k,), (k, item_dim) or one after another, as a row with NaN after the last.

    Items of NaN alone are absent, wherever they stand.

    Raises:
        ValueError: if they are no such items, or more than ``most_items``.

    >>> padded([[1, 2], [3, 4]], 3, 2)
    tensor([1., 2., 3., 4., nan, nan])
    """
    values = as_float(items)
    rows = values.reshape(-1, item_dim) if values.ndim < 2 and not values.numel() % item_dim else (
        values
    )  # fmt: skip
    if rows.ndim != 2 or rows.shape[1] != item_dim:
        shape = "(k,)" if item_dim == 1 else f"(k, {item_dim})"
        raise ValueError(
            f"`{name}` must be a set of items, {shape}; got shape {tuple(values.shape)}. Give one "
            "set, and the number of values of an item as item_dim of simulators.trials."
        )
    rows = rows[~rows.isnan().all(dim=1)]
    if len(rows) > most_items:
        raise ValueError(
            f"`{name}` has {len(rows)} items, more than the {most_items} that the simulator may "
            "give; raise most_items of simulators.trials, and simulate as many."
        )
    row = torch.full((most_items, item_dim), torch.nan)
    row[: len(rows)] = rows
    return row.reshape(-1)
