"""How values of x go missing: as in x_o, by the simulator itself, or by a mechanism of its own.

A missing value is NaN in x, wherever x goes. Elsewhere NaN is a failed simulation, so a simulator
whose NaN are data says so, by :func:`with_gaps`. What informs about theta is then part of the
model: a detection limit that hides small values makes their absence a datum. Where an observation
has gaps and its simulator says nothing, what is missing says nothing either, and simulations get
the gaps of the observation (:func:`with_places`): p(theta | what was measured), exactly.

Source: Rubin (1976), "Inference and missing data", for when the mechanism may be left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..given.function import Form, FunctionSimulator, as_seeded, refuse_other
from ..given.reads import language
from ..random import child_seed, stream_seed, torch_generator

_OF_SIMULATOR = {
    "prior", "parameter_names", "theta_dim", "x_dim", "item_dim", "num_series", "observation",
    "times",
}  # fmt: skip
"""What is known of the simulator inside; its exact posterior knows no gaps."""
UNDECLARED = (
    "it returns NaN itself where x_o has gaps; if NaN is a value not measured, say so: "
    "simulators.with_gaps(simulator)"
)
"""Why a simulation is not taken whose own NaN lie where x_o has gaps: they may inform."""
_MASK_KEY = 1  # of a seed, for what goes missing


@dataclass(frozen=True)
class WithGaps:
    """A simulator of which some NaN are values that are missing; made by :func:`with_gaps`.

    Attributes:
        simulator: what simulates.
        missing: None: its own NaN; a function that says what goes missing; or places of x that
            never are measured.
        most_items: items that x has place for, where it is a set of items.
    """

    simulator: Callable[..., Any]
    missing: Callable[..., Any] | tuple[int, ...] | None = None
    most_items: int | None = None

    @property
    def batched(self) -> bool:
        """Whether the simulator inside is a plain function of many theta."""
        return bool(getattr(as_seeded(self.simulator), "batched", False))

    @property
    def row_wise(self) -> bool:
        """Whether the simulator inside takes one theta at a time."""
        return bool(getattr(as_seeded(self.simulator), "row_wise", False))

    @property
    def places(self) -> tuple[int, ...]:
        """Places of x that never are measured."""
        return self.missing if isinstance(self.missing, tuple) else ()

    def around(self, simulator: Callable[..., Any]) -> WithGaps:
        """The same gaps in what another simulates."""
        return replace(self, simulator=simulator)

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, d) -> x (n, p), NaN where a value is missing."""
        seed = stream_seed(seed)
        x = as_seeded(self.simulator)(theta, seed, first_row=first_row)
        return self.left_out(x, seed, first_row=first_row) if self.missing is not None else x

    def left_out(self, x: Tensor, seed: int, *, first_row: int = 0) -> Tensor:
        """Simulations x (n, p) without what goes missing; those that failed stay so.

        Raises:
            ValueError: if the mechanism gives anything but True or False for each value.
        """
        if self.missing is None:
            return x
        if self.places:
            places = torch.tensor([place for place in self.places if place < x.shape[1]])
            gaps = torch.where(x[:, places].isnan(), torch.inf, torch.nan)
            return x.index_copy(1, places, gaps)
        kind = Form(numpy=language(self.missing) == "numpy")
        hide = FunctionSimulator(self.missing, kind)  # type: ignore[arg-type]
        mask = hide(x, child_seed(seed, _MASK_KEY), first_row=first_row)
        if mask.shape != x.shape or not ((mask == 0) | (mask == 1)).all():
            got = f"{tuple(mask.shape[1:])} values" if mask.shape != x.shape else "other values"
            raise ValueError(
                f"`missing` must give True or False for each of the {x.shape[1]} values of one "
                f"simulation x (p,); got {got}. True is missing."
            )
        failed = torch.from_numpy(~_usable(self.simulator, x.numpy()))[:, None]
        hidden = torch.where(mask.bool() & ~failed, torch.nan, x)
        return torch.where(failed & x.isnan(), torch.inf, hidden)

    def usable_rows(self, x: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Which simulations (n, p) did not fail, (n,): infinite values never are data."""
        seen = np.ones(x.shape[1], bool)
        seen[[place for place in self.places if place < len(seen)]] = False
        usable = ~np.isinf(x).any(axis=1)
        return np.asarray(usable & ~np.isnan(x[:, seen]).any(axis=1) if self.places else usable)

    def failure_reason(self, theta: Tensor, x: Tensor) -> str | None:
        """What the simulator says of a row, or that its NaN lie where x_o has gaps."""
        places = torch.tensor(self.places, dtype=torch.long)
        others = x.index_fill(0, places, 0.0)
        if self.places and others.isfinite().all():
            return UNDECLARED
        own = getattr(self.simulator, "failure_reason", None)
        return None if own is None else own(theta, x)

    def __getattr__(self, name: str) -> Any:
        if name not in _OF_SIMULATOR:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.simulator, name)


def with_gaps(simulator: Callable[..., Any], missing: Callable[..., Any] | None = None) -> WithGaps:
    """Say that values of x may be missing: NaN in a simulation is then data, not a failure.

    Needed where what is missing may say something about theta, or where you ask about observations
    with different gaps. An x_o with gaps, of a simulator that returns none, needs nothing: its
    gaps are taken to say nothing.

    Args:
        simulator: your own function, or a task. Without ``missing`` it returns NaN itself where a
            value would be missing, as below a detection limit; an error of its still is a failed
            simulation, as are infinite values.
        missing: function that says which values of one simulation x (p,) go missing: it returns
            p times True (missing) or False. It may draw from the global random streams, or have an
            argument ``seed``, ``rng``, ``generator`` or ``random_state``, as a simulator may.

    Returns:
        A simulator for :func:`simulate`, :func:`from_function`, :func:`sample_joint` (of a task)
        and ``abi.fit``; x_o there holds NaN where a value is missing.

    Raises:
        TypeError: if one of them is no function.

    >>> import torch
    >>> def simulate(theta):  # what is below 1 is not seen
    ...     x = theta + torch.tensor([0.5, 2.0])
    ...     return torch.where(x < 1.0, torch.nan, x)
    >>> with_gaps(simulate)(torch.zeros(1, 2), seed=0)
    tensor([[nan, 2.]])
    """
    refuse_other(simulator)
    if missing is not None and not callable(missing):
        raise TypeError(
            "`missing` must be a function of one simulation x (p,) that returns p times True "
            f"(missing) or False; got {missing!r:.60}."
        )
    return WithGaps(simulator, missing)


def with_places(simulator: Callable[..., Any], x_o: Tensor) -> Callable[..., Any]:
    """A simulator whose simulations have the gaps of x_o (p,), where it declares none itself."""
    places = x_o.isnan().nonzero()[:, 0].tolist()
    return WithGaps(simulator, tuple(places)) if places else simulator


def with_gaps_of(simulator: Callable[..., Any], observations: Tensor) -> WithGaps:
    """A simulator whose simulations have the gaps of one of some observations (K, p), at random."""
    return WithGaps(simulator, GapsOf(observations.isnan()))


@dataclass(frozen=True, eq=False)
class GapsOf:
    """A mechanism: what is missing in one of some observations, (K, p), whatever is simulated."""

    missing: Tensor

    def __call__(self, x: Tensor, seed: int) -> Tensor:
        """Places of x (p,) that go missing, (p,)."""
        row = torch.randint(len(self.missing), (1,), generator=torch_generator(seed))
        return self.missing[row[0]]


def declares_gaps(simulator: Any) -> bool:
    """Whether a simulator says of itself that its NaN are data."""
    return isinstance(simulator, WithGaps) and not simulator.places


def _usable(simulator: Any, x: NDArray[np.float32]) -> NDArray[np.bool_]:
    own = getattr(simulator, "usable_rows", None)
    return np.asarray(np.isfinite(x).all(axis=1)) if own is None else own(x)
