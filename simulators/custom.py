"""The user's own simulator: any function, made seeded, and bundled with its prior."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from .base import (
    Prior,
    SeededSimulator,
    as_rows,
    as_sampler,
    check_names,
    numbered_names,
    sample_prior,
)
from .random import child_seed, isolated_rng, stream_seed


@dataclass(frozen=True)
class FunctionSimulator:
    """A plain function as a seeded simulator.

    Each call of the function runs with the global random streams of Python, numpy and torch
    seeded for it and restored afterwards; a function with a ``seed`` parameter is given the
    seed too. With ``batched=False`` the function sees one theta (d,) at a time and row i depends on
    ``(seed, first_row + i)`` alone; with ``batched=True`` it sees theta (n, d), and its noise
    depends on ``(seed, first_row)`` and on how many rows it is given at once.
    """

    function: Callable[..., Any]
    batched: bool

    @property
    def row_wise(self) -> bool:
        """Whether the function sees one theta a call, so that any cut gives the same rows."""
        return not self.batched

    @property
    def failure_reason(self) -> Callable[[Tensor, Tensor], str | None] | None:
        """What the function offers to explain rows that are not finite."""
        return getattr(self.function, "failure_reason", None)

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, d) -> x (n, p), float32."""
        seed = stream_seed(seed)
        theta = theta.clone()  # the function may write into what it is given
        if self.batched:
            return as_float(self._call(theta, child_seed(seed, first_row)))
        rows = [
            as_float(self._call(row, child_seed(seed, first_row + i))).reshape(-1)
            for i, row in enumerate(theta)
        ]
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            raise ValueError(
                f"`simulator` must return the same number of values for every theta; "
                f"got {min(widths)} and {max(widths)}."
            )
        return torch.stack(rows)

    def _call(self, theta: Tensor, seed: int) -> Any:
        keywords = {"seed": seed} if "seed" in parameters_of(self.function) else {}
        with isolated_rng(seed):
            return self.function(theta, **keywords)


@dataclass(frozen=True)
class CustomTask:
    """The user's simulator with its prior; made by :func:`from_function`."""

    simulator: SeededSimulator
    prior: Prior
    names: tuple[str, ...] | None = None
    item_dim: int = 1
    num_series: int = 1

    @cached_property
    def theta_dim(self) -> int:
        """Number of parameters, read off one prior draw."""
        return sample_prior(self.prior, 1, seed=0).shape[1]

    @cached_property
    def x_dim(self) -> int:
        """Number of values of one simulation, read off one extra simulator call."""
        return self.simulator(sample_prior(self.prior, 1, seed=0), 0).shape[1]

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """The names given, or theta_1 ... theta_d."""
        return self.names or numbered_names(self.theta_dim)

    @property
    def observation(self) -> Tensor:
        """A custom simulator has no default observation."""
        raise NotImplementedError("a custom simulator has no default observation; pass your own.")

    @property
    def row_wise(self) -> bool:
        """Whether the simulator takes one theta at a time."""
        return bool(getattr(self.simulator, "row_wise", False))

    @property
    def failure_reason(self) -> Callable[[Tensor, Tensor], str | None] | None:
        """What the simulator offers to explain rows that are not finite."""
        return getattr(self.simulator, "failure_reason", None)

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, d) -> x (n, p), float32."""
        rows = as_rows(theta, self.theta_dim)
        if not len(rows):
            return torch.empty(0, self.x_dim)
        return self.simulator(rows, seed, first_row=first_row)

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """A custom simulator has no known exact posterior."""
        raise NotImplementedError("no exact posterior is known for a custom simulator.")


def from_function(
    f: Callable[..., Any],
    prior: Prior | Callable[[int], Any],
    batched: bool = False,
    parameter_names: Sequence[str] | None = None,
    item_dim: int = 1,
    num_series: int = 1,
) -> CustomTask:
    """Make a task of your own function and prior.

    Args:
        f: the simulator. ``batched=False``: theta (d,) -> p values. ``batched=True``: theta (n, d)
            -> x (n, p). It may use the global random streams of Python, numpy or torch (they are
            seeded for each call and restored; numba's is not) or take ``seed``, below 2^63.
        prior: anything with ``sample((n,)) -> (n, d)``, or a function n -> (n, d); no density is
            needed.
        batched: whether ``f`` takes many parameters at once. Row i of x then depends on how many
            rows it is given at once; one theta at a time, it depends on ``(seed, i)`` alone.
        parameter_names: one name a parameter, in order.
        item_dim: where x is a list of items whose order may not matter, the values of one item.
        num_series: where x is some series of equal length, one after another, how many.

    Raises:
        ValueError: if the names are not as many different ones as there are parameters.
        TypeError: if the prior can neither be sampled nor called.

    >>> import torch
    >>> prior = torch.distributions.Independent(
    ...     torch.distributions.Uniform(torch.zeros(2), torch.ones(2)), 1)
    >>> task = from_function(lambda theta: theta + torch.randn(2), prior)
    >>> task(torch.zeros(3, 2), seed=1).shape
    torch.Size([3, 2])
    """
    task = CustomTask(FunctionSimulator(f, batched), as_sampler(prior), None, item_dim, num_series)
    if parameter_names is None:
        return task
    return replace(task, names=check_names(parameter_names, task.theta_dim))


def as_seeded(simulator: Callable[..., Any]) -> SeededSimulator:
    """Return a simulator whose rows are seeded; a plain function is taken as batched."""
    if not callable(simulator):
        raise TypeError(
            f"`simulator` must be a callable theta (n, d) -> x (n, p); "
            f"got {type(simulator).__name__}."
        )
    if {"seed", "first_row"} <= parameters_of(simulator):
        return cast(SeededSimulator, simulator)
    return FunctionSimulator(simulator, batched=True)


def parameters_of(function: Callable[..., Any]) -> set[str]:
    """Names of the parameters a callable declares; empty where it cannot be inspected."""
    try:
        return set(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return set()


def as_float(values: Any) -> Tensor:
    """Real numbers of any kind as float32 on the CPU; what it cannot hold becomes infinite.

    Raises:
        TypeError: if they are complex.
    """
    if not isinstance(values, Tensor):
        array = np.asarray(values)
        values = torch.as_tensor(array if np.iscomplexobj(array) else array.astype(np.float64))
    if values.is_complex():
        raise TypeError(
            f"`simulator` must return real numbers; got {values.dtype}. "
            "Return real and imaginary parts as values of their own, or the absolute value."
        )
    rows: Tensor = values.detach().to("cpu", torch.float32)
    return rows
