"""How the values of one x are arranged: as items, or as series, one after another, with gaps.

NaN in x is a value that was not measured. Where it is so in every x, its place is left out before
anything looks at x, if items and times stay whole; else the encoders look at what is there, and at
how much that is (:mod:`abi.encoders.masked`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from simulators.arguments import as_tensor
from simulators.gaps.mechanism import WithGaps, declares_gaps
from simulators.gaps.trials import padded
from simulators.given.observation import same_values


@dataclass(frozen=True)
class Layout:
    """What a simulator declares by attributes of these names; one of them at most differs from 1.

    Attributes:
        item_dim: values of one item, where x (k m,) is a list of k items of m values each.
        num_series: series, where x (m k,) is m series of k values each.
        gaps: places that are left out, as nothing was measured there.
        missing: what else may be missing in one x and not in another: nothing, any value, or items
            from the end on.
    """

    item_dim: int = 1
    num_series: int = 1
    gaps: tuple[int, ...] = ()
    missing: Literal["nothing", "values", "items"] = "nothing"

    @staticmethod
    def of(simulator: Any, x_dim: int) -> Layout:
        """What ``simulator`` declares.

        Raises:
            ValueError: if that does not make up the ``x_dim`` values of x, or both are declared.
        """
        item_dim = int(getattr(simulator, "item_dim", 1))
        num_series = int(getattr(simulator, "num_series", 1))
        if item_dim < 1 or x_dim % item_dim:
            raise ValueError(
                f"`simulator` declares items of {item_dim} values, which do not make up the "
                f"{x_dim} values of x_o."
            )
        if num_series < 1 or x_dim % num_series:
            raise ValueError(
                f"`simulator` declares {num_series} series, which do not make up the "
                f"{x_dim} values of x_o."
            )
        if item_dim > 1 and num_series > 1:
            raise ValueError(
                "`simulator` declares item_dim and num_series; x is a list of items or some "
                "series one after another: keep one of them."
            )
        layout = Layout(item_dim, num_series)
        if declares_gaps(simulator):
            items = isinstance(simulator, WithGaps) and simulator.most_items
            return replace(layout, missing="items" if items else "values")
        return layout

    @staticmethod
    def of_values(values: Mapping[str, Any]) -> Layout:
        """That of a file; before version 5 there were no series, and no gaps before version 9."""
        about = values["item_dim"], values.get("num_series", 1), tuple(values.get("gaps", ()))
        return Layout(*about, values.get("missing", "nothing"))

    def with_gaps_of(self, x_o: Tensor) -> Layout:
        """That of simulations with the gaps of x_o (p,), where it says nothing of gaps yet."""
        absent = x_o.isnan()
        if self.missing != "nothing" or not absent.any():
            return self
        rows = self.items(absent[None])[0]
        if (rows.all(dim=1) == rows.any(dim=1)).all():
            return replace(self, gaps=tuple(absent.nonzero()[:, 0].tolist()))
        return replace(self, missing="values")

    @property
    def measured(self) -> Layout:
        """That of x without the places that are left out."""
        return replace(self, gaps=())

    def hidden(self, x: Tensor) -> Tensor:
        """X (n, p) with NaN in the places that are left out."""
        return x.index_fill(1, torch.tensor(self.gaps, dtype=torch.long), torch.nan)

    def as_numbers(self, x: Tensor) -> Tensor:
        """X (n, p) without NaN, and without loss: what was measured; 0 and a mask where it varies.

        As tests of pairs take it, which look at numbers.
        """
        if self.missing == "nothing":
            return x[:, self.seen(x.shape[1])] if self.gaps else x
        return torch.cat([x.nan_to_num(nan=0.0), (~x.isnan()).to(x)], dim=1)

    def from_numbers(self, numbers: Tensor, x_dim: int) -> Tensor:
        """The inverse of :meth:`as_numbers`."""
        if self.missing == "nothing":
            x = torch.full((len(numbers), x_dim), torch.nan)
            return x.index_copy(1, torch.tensor(self.seen(x_dim)), numbers)
        values, there = numbers.split(x_dim, dim=1)
        return torch.where(there > 0.5, values, torch.nan)

    def seen(self, x_dim: int) -> list[int]:
        """The places of ``x_dim`` that are not left out."""
        return sorted(set(range(x_dim)) - set(self.gaps))

    @property
    def width(self) -> int:
        """Values that belong together, m: of one item, or of all series at one time."""
        return max(self.item_dim, self.num_series)

    def length(self, x_dim: int) -> int:
        """How many items or times ``x_dim`` values make up, k."""
        return x_dim // self.width

    def items(self, x: Tensor) -> Tensor:
        """X (n, p) as items or times, (n, k, m)."""
        if self.num_series > 1:
            return x.reshape(len(x), self.num_series, -1).transpose(1, 2)
        return x.reshape(len(x), -1, self.item_dim)


PLAIN = Layout()
"""Values of which nothing is known."""


def is_observation(x: Any, x_o: Tensor, layout: Layout = PLAIN) -> bool:
    """Whether x, in whatever shape, is the observation x_o (p,): its values, and its gaps."""
    given = as_tensor(x, "x", torch.float32).reshape(-1)
    if layout.missing == "items" and len(given) < len(x_o) and not len(given) % layout.item_dim:
        given = padded(given, len(x_o) // layout.item_dim, layout.item_dim)
    return len(given) == len(x_o) and same_values(layout.hidden(given[None])[0], x_o)


def as_observations(x: Any, x_dim: int, layout: Layout = PLAIN, several: bool = False) -> Tensor:
    """One observation (p,) or several (n, p) as rows.

    A set of items is filled up with NaN, as is each of several, which may be a list.

    Raises:
        ValueError: if they have another width, are infinite, or lack what the fit knows only whole.
    """
    if layout.missing == "items":
        most = x_dim // layout.item_dim
        if several and isinstance(x, list | tuple):
            x = torch.stack([padded(part, most, layout.item_dim, "x") for part in x])
        elif as_tensor(x, "x").shape[-1:] != (x_dim,):
            x = padded(x, most, layout.item_dim, "x")
    given = as_tensor(x, "x", torch.float32)
    rows = given[None] if given.ndim == 1 else given
    if rows.ndim != 2 or rows.shape[1] != x_dim:
        raise ValueError(
            f"`x` must hold {x_dim} values an observation, as x_o does; got shape "
            f"{tuple(given.shape)}."
        )
    rows = layout.hidden(rows)
    seen = rows[:, layout.seen(x_dim)]
    bad = int((seen.isinf() if layout.missing != "nothing" else ~seen.isfinite()).any(1).sum())
    if bad:
        hint = ""
        if seen.isnan().any():
            where = "the values that x_o has" if layout.gaps else "no gaps"
            hint = (
                f" The fit knows x with {where}: fit at that x, or declare gaps by "
                "simulators.with_gaps(simulator)."
            )
        raise ValueError(
            f"`x` must be finite; {bad} of {len(rows)} rows hold NaN or infinity.{hint}"
        )
    return rows
