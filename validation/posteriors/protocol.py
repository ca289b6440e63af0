"""What a posterior is to the tests: something that draws ``theta ~ q(. | x)`` for many x.

One layout everywhere: ``q.sample(num_samples, x)`` maps x (n, ...) to (num_samples, n, d),
sample axis first, as sbi, zuko and torch.distributions lay samples out. An observation has the
shape that q was trained on: a vector (p,), an image, a set of trials. :func:`as_posterior` brings
other things into that form, and refuses a shape that could be read in two ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from simulators.random import isolated_rng
from simulators.running.progress import screen
from simulators.summary import summary

from ..seeds import part_seed
from .pairs.arrays import as_numbers

_bar_is_shown: ContextVar[bool] = ContextVar("_bar_is_shown", default=False)

# What torch says of an input whose shape is not that of a layer.
_OTHER_SHAPE = ("shapes cannot be multiplied", "input to conv", "expected input")


@runtime_checkable
class Posterior(Protocol):
    """What every test asks of a posterior: draws of theta at many x.

    The same arguments, seed included, must give the same draws. A posterior may also offer
    ``log_prob(theta (K, n, d), x (n, ...)) -> (K, n)``, up to a constant at each x, and, if it is a
    flow from N(0, I), its inverse ``to_base(theta (n, d), x (n, ...)) -> z (n, d)``.
    """

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, d) given x (n, ...)."""
        ...


@dataclass(frozen=True, eq=False)
class BatchedPosterior(Posterior):
    """A function ``(num_samples, x) -> samples`` called a batch of observations at a time.

    Each batch runs with the global random streams of Python, numpy and torch at its own seed, and
    they are restored afterwards.
    """

    draw: Callable[[int, Tensor], Any]
    """(num_samples, x (b, ...)) -> (num_samples, b, d)."""
    name: str
    """What the errors call it."""
    density: Callable[[Tensor, Tensor], Any] | None = None
    """(theta (K, n, d), x (n, ...)) -> log q up to a constant for each x, (K, n)."""
    base: Callable[[Tensor, Tensor], Any] | None = None
    """(theta (n, d), x (n, ...)) -> z (n, d), N(0, I) under q."""
    batch_size: int = 1_000
    """Most observations in one call of ``draw``."""
    progress: bool = False
    """Whether to show a bar over the batches, with the time left."""
    looped: Callable[[Tensor], bool] = lambda _: False
    """Whether ``draw`` takes x like these (n, ...) one at a time, as (1, ...)."""

    __repr__ = summary

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, d) given x (n, ...).

        Raises:
            ValueError: if the draws have another shape, with the shape that was expected, or x has
                one that a network in q does not take.
        """
        x = as_observations(x, "x")
        batches = list(self._batches(num_samples, len(x), 1 if self.looped(x) else self.batch_size))
        parts = []
        run = _Graphless()
        with progress_bar(len(batches), f"sampling {self.name}", self.progress) as advance:
            for k, (start, stop) in enumerate(batches):
                asked = partial(self._drawn, num_samples, x[start:stop])
                drawn = run(asked, part_seed(seed, k))
                parts.append(check_samples(drawn, num_samples, stop - start, self.name))
                advance()
        return torch.cat(parts, dim=1)

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Log q(theta | x) up to a constant for each x: theta (K, n, d), x (n, ...) -> (K, n).

        Raises:
            NotImplementedError: if this posterior offers draws only.
        """
        if self.density is None:
            raise NotImplementedError(f"{self.name} offers draws only, no density.")
        x = as_observations(x, "x")
        values = torch.as_tensor(_Graphless()(partial(self.density, theta, x), 0))
        # A distribution over single parameters: independent ones, whose log-densities add up.
        values = values.sum(dim=-1) if values.ndim == 3 else values
        if values.shape != theta.shape[:2]:
            raise ValueError(
                f"`log_prob` of {self.name} must give one value for each of the "
                f"{tuple(theta.shape[:2])} draws; got shape {tuple(values.shape)}."
            )
        return values.detach().to("cpu", torch.float32)

    def to_base(self, theta: Tensor, x: Tensor) -> Tensor:
        """Map theta (n, d) to the base N(0, I) of a flow, given x (n, ...).

        Raises:
            NotImplementedError: if this posterior is not a flow with a known inverse.
        """
        if self.base is None:
            raise NotImplementedError(
                f"{self.name} is not a flow with a known inverse; use flow=False."
            )
        x = as_observations(x, "x")
        z = torch.as_tensor(_Graphless()(partial(self.base, theta, x), 0))
        return z.detach().to("cpu", torch.float32)

    def _drawn(self, num_samples: int, x: Tensor) -> Any:
        """Draws at x (b, ...), or what shape of x the network in q cannot take."""
        try:
            return self.draw(num_samples, x)
        except RuntimeError as error:
            line = str(error).partition("\n")[0]
            if not any(words in line for words in _OTHER_SHAPE):
                raise
            raise ValueError(
                f"`q` ({self.name}) failed at x of shape {tuple(x.shape)}, which its network does "
                f"not take ({line}). Was it built for other x, or are theta and x swapped?"
            ) from error

    @staticmethod
    def _batches(num_samples: int, rows: int, most: int) -> Iterator[tuple[int, int]]:
        """Cut the rows, so many at most; no batch has as many rows as samples.

        A batch of shape (K, K, d) could be laid out either way without anyone noticing.
        """
        start = 0
        while start < rows:
            stop = min(start + most, rows)
            if stop - start == num_samples and num_samples > 1:
                stop -= 1
            yield start, stop
            start = stop


class _Graphless:
    """Calls at a seed of their own, without a graph where that can be.

    The graph of a flow holds every layer's output for all draws of a batch. What differentiates
    (Langevin, HMC) cannot do without: it begins again, at the same seed, and later calls begin so.
    """

    def __init__(self) -> None:
        self.grad = False

    def __call__(self, call: Callable[[], Any], seed: int) -> Any:
        try:
            with isolated_rng(seed), torch.set_grad_enabled(self.grad):
                return call()
        except RuntimeError as error:
            if self.grad or "require grad" not in str(error):
                raise
        self.grad = True
        return self(call, seed)


def check_samples(samples: Any, num_samples: int, rows: int, name: str) -> Tensor:
    """Return draws as float32 (num_samples, rows, d), or say which shape was expected.

    Raises:
        TypeError: if they are no array, with what came instead.
        ValueError: if their shape is another.
    """
    try:
        values = torch.as_tensor(samples).detach().to("cpu", torch.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        cure = "End it with return." if samples is None else "Return one tensor or numpy array."
        raise TypeError(
            f"`q` ({name}) must return an array of samples (num_samples, n, d); it returned "
            f"{'None' if samples is None else type(samples).__name__}. {cure}"
        ) from error
    if values.ndim == 3 and values.shape[:2] == (num_samples, rows):
        return values
    expected = f"({num_samples}, {rows}, d), that is (num_samples, n, d)"
    hint = "Return the sample axis first, then one row for each observation, then parameters."
    if values.ndim == 3 and values.shape[:2] == (rows, num_samples):
        hint = (
            "They look laid out (n, num_samples, d): say layout='observations_first' to "
            "as_posterior, or swap the axes with .transpose(0, 1)."
        )
    elif values.shape == (num_samples, rows):
        hint = "For one parameter, keep the last axis: samples[..., None]."
    raise ValueError(
        f"`q` ({name}) must draw samples of shape {expected}; got {tuple(values.shape)}. {hint}"
    )


def as_observations(values: Any, argument: str) -> Tensor:
    """Return observations (n, ...), each in its own shape, as float32 on the CPU.

    Raises:
        ValueError: if there is no axis of observations besides those of one observation.
    """
    rows = as_numbers(values, argument).float()
    if rows.ndim < 2:
        raise ValueError(
            f"`{argument}` must hold one observation a row, shape (n, p) or (n, *shape); got "
            f"{tuple(rows.shape)}. For one column use {argument}[:, None], for one row "
            f"{argument}[None, :]."
        )
    return rows.contiguous()


def as_matrix(values: Any, argument: str) -> Tensor:
    """Return ``values`` as a float32 matrix on the CPU, one row a draw."""
    rows = as_numbers(values, argument).float()
    if rows.ndim != 2:
        raise ValueError(
            f"`{argument}` must be a matrix, one row a draw; got shape {tuple(rows.shape)}. "
            f"For one column use {argument}[:, None], for one row {argument}[None, :]."
        )
    return rows.contiguous()


@contextmanager
def progress_bar(total: int, label: str, show: bool) -> Iterator[Callable[[], None]]:
    """Give a function that advances a bar of ``total`` steps; silent unless ``show``.

    The bar counts the steps and says how long the rest will take. One inside another stays silent:
    the terminal shows one at a time.
    """
    if not show or total < 2 or _bar_is_shown.get():
        yield lambda: None
        return
    with isolated_rng(0):  # importing rich draws from Python's global stream
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    columns = ("{task.description}", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    token = _bar_is_shown.set(True)
    try:
        console, redrawn = screen()
        with Progress(*columns, console=console, transient=True, disable=not redrawn) as bar:
            task = bar.add_task(label, total=total)
            yield lambda: bar.advance(task)
    finally:
        _bar_is_shown.reset(token)
