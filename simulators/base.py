"""What a prior, a simulator and a task are, and what a run of simulations returns.

A simulator is a callable ``theta (n, d) -> x (n, p)``. A *seeded* simulator also takes
``seed`` and ``first_row`` and promises that row ``i`` of its output depends on
``(seed, first_row + i)`` alone, so that a call split into batches, over any number of
workers, gives the rows of one big call bit for bit. A task bundles a seeded simulator with
its prior, the names and units of its parameters, a default observation and, where a method
exists, an exact posterior for any observation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from .arguments import as_tensor
from .random import as_count, as_seed, fresh_seed
from .summary import summary


@runtime_checkable
class Prior(Protocol):
    """Where parameters are drawn from. A density is used only where ``log_prob`` is there too."""

    def sample(self, sample_shape: Any, /) -> Tensor:
        """Draw parameters; ``sample((n,))`` has shape (n, d)."""
        ...


@runtime_checkable
class SeededSimulator(Protocol):
    """A simulator whose row i depends on its theta and on ``(seed, first_row + i)`` alone."""

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate theta (n, d) -> x (n, p); row i uses the stream ``(seed, first_row + i)``."""
        ...


@runtime_checkable
class Task(SeededSimulator, Protocol):
    """A simulator with its prior, a default observation and, if known, an exact posterior."""

    @property
    def prior(self) -> Prior: ...  # noqa: D102
    @property
    def parameter_names(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def theta_dim(self) -> int: ...  # noqa: D102
    @property
    def x_dim(self) -> int: ...  # noqa: D102
    @property
    def observation(self) -> Tensor: ...  # noqa: D102

    def reference_posterior(self, x_o: Tensor, num_samples: int, seed: int = 0) -> Tensor:
        """Draw from the exact posterior.

        Args:
            x_o: the observation, (p,) or (1, p).
            num_samples: number of draws.
            seed: the draws are a function of it and the other arguments.

        Returns:
            theta (num_samples, d), float32.

        Raises:
            NotImplementedError: where no method is known.
            ValueError: if ``x_o`` is not finite, of another width, or impossible.
        """
        ...


@dataclass(frozen=True)
class Failure:
    """A simulation that gave no usable result.

    Attributes:
        index: its row in the theta that were given.
        reason: why, in a line.
        theta: its parameters.
    """

    index: int
    reason: str
    theta: tuple[float, ...] = ()


@dataclass(frozen=True, eq=False)
class Simulations:
    """What :func:`simulate` returns: the simulations that did not fail, and the failures.

    They are in the order of the theta that were given; in the order in which they finish, fast ones
    would be favoured.
    """

    theta: Tensor
    """Parameters of the simulations, (m, d)."""
    x: Tensor
    """What was simulated, (m, p)."""
    index: Tensor
    """Row of each in the theta that were given, (m,), increasing."""
    failures: tuple[Failure, ...]
    """The simulations that failed, in the same order."""
    seed: int
    """The seed that was used, also where none was given."""

    __repr__ = summary

    @property
    def num_submitted(self) -> int:
        """Simulator calls made, failed ones included."""
        return len(self.theta) + len(self.failures)


def as_rows(theta: Any, theta_dim: int | None = None, row: str = "simulation") -> Tensor:
    """Parameters as contiguous float32 rows (n, theta_dim), or what is wrong with them.

    Args:
        theta: an array or a tensor.
        theta_dim: number of parameters; any number where omitted.
        row: what one row is of.

    Raises:
        TypeError: if they are no numbers.
        ValueError: if they have another shape.
    """
    rows = as_tensor(theta, "theta", torch.float32)
    if rows.ndim != 2 or theta_dim not in (None, rows.shape[1]):
        wanted = "d" if theta_dim is None else theta_dim
        one = rows.ndim == 1 and theta_dim in (None, len(rows))
        hint = " For one theta write theta[None]." if one else ""
        hint = " For one parameter write theta[:, None]." if rows.ndim == theta_dim == 1 else hint
        got = f"{tuple(rows.shape)}.{hint}"
        raise ValueError(f"`theta` must have shape (n, {wanted}), one row a {row}; got {got}")
    return rows.contiguous()


def as_observation(x_o: Any, x_dim: int | None = None, *, gaps: bool = False) -> Tensor:
    """Return one observation as float32 (p,), accepting (1, p), or say what is wrong with it.

    Args:
        x_o: its values.
        x_dim: how many values a simulation has; any number where that is not known yet.
        gaps: whether some may be NaN, which were not measured.

    Raises:
        TypeError: if they are no numbers.
        ValueError: if they are not one observation, not finite, or not ``x_dim``.
    """
    values = as_tensor(x_o, "x_o", torch.float32)
    if values.ndim == 2 and len(values) == 1:
        values = values[0]
    if values.ndim != 1 or len(values) == 0:
        several = values.ndim > 1 and len(values) > 0
        hint = " Pass one row, x_o[0], or all of it as one, x_o.reshape(-1)." if several else ""
        raise ValueError(
            f"`x_o` must be one observation, (p,) or (1, p); got shape {tuple(values.shape)}.{hint}"
        )
    if x_dim is not None:
        check_length(len(values), x_dim)
    bad = int((values.isinf() if gaps else ~values.isfinite()).sum())
    if bad and gaps:
        raise ValueError(
            f"`x_o` must be finite, or NaN where nothing was measured; {bad} of its {len(values)} "
            "values are infinite in float32. Correct or rescale them, or write NaN."
        )
    if bad:
        raise ValueError(
            f"`x_o` must be finite; {bad} of its {len(values)} values are NaN or infinite in "
            "float32. Impute or drop them, or rescale x, in x_o and in the simulator alike."
        )
    return values


def unresolved(rows: Tensor) -> str:
    """The first column of rows (n, k) that float32 hardly resolves, in words; "" if none.

    That is one whose spread is less than a hundred steps of float32 where it lies.
    """
    if len(rows) < 2:
        return ""
    spread, place = rows.double().std(dim=0), rows.double().abs().amax(dim=0)
    coarse = (spread > 0) & (spread < 100 * torch.finfo(torch.float32).eps * place)
    if not coarse.any():
        return ""
    j = int(coarse.nonzero()[0, 0])
    step = float(np.spacing(np.float32(place[j])))
    return (
        f"column {j} varies by {float(spread[j]):.2g} around {float(place[j]):.8g}, "
        f"of which float32 keeps only steps of {step:.2g}"
    )


def check_length(num_values: int, x_dim: int, of: str = "") -> None:
    """Refuse an observation that is not as long as a simulation.

    Args:
        num_values: values of the observation.
        x_dim: values of a simulation.
        of: the part of the observation that is meant, such as " of 'counts'".

    Raises:
        ValueError: if the two differ.
    """
    if num_values != x_dim:
        raise ValueError(
            f"`x_o` must have as many values as a simulation; got {num_values}{of or ' values'} "
            f"and simulations of {x_dim}. Pass x_o in the form in which the simulator returns x."
        )


def as_draws(num_samples: int, seed: int | None) -> tuple[int, int]:
    """Return the number of draws and their seed as ints, or say what is wrong with them."""
    count = as_count(num_samples, "num_samples")
    return count, fresh_seed() if seed is None else as_seed(seed)


def numbered_names(theta_dim: int) -> tuple[str, ...]:
    """theta_1 ... theta_d."""
    return tuple(f"theta_{j + 1}" for j in range(theta_dim))


def check_names(names: Sequence[str], theta_dim: int) -> tuple[str, ...]:
    """Return the names of parameters, ``theta_dim`` different ones, or say what is wrong."""
    if isinstance(names, str):
        raise TypeError(
            f"`parameter_names` must be a list of names; got the string {names!r}. "
            f"For one parameter pass [{names!r}]."
        )
    given = tuple(names)
    if len(given) != theta_dim:
        raise ValueError(
            f"`parameter_names` must name the {theta_dim} parameters of the prior; "
            f"got {len(given)} names."
        )
    repeated = [name for name in given if given.count(name) > 1]
    if repeated:
        raise ValueError(f"`parameter_names` must differ; {repeated[0]!r} appears twice.")
    return given
