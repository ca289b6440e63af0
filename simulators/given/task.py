"""A simulator with its prior, and what a user brings recognised as one or the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, cast, runtime_checkable

import torch
from torch import Tensor

from ..base import Prior, SeededSimulator, Task, as_rows, check_names, numbered_names
from ..random import as_count, child_seed, stream_seed
from .function import Form, FunctionSimulator, as_seeded, declared_form, is_seeded, refuse_other
from .observation import Observed, Returned
from .priors import as_sampler, names_of, sample_prior
from .probe import NUM_PROBES, find_form


@runtime_checkable
class Around(Protocol):
    """What says something of a simulator that it holds, of whatever form, and acts in its place."""

    @property
    def simulator(self) -> Any:
        """The one inside."""
        ...

    def around(self, simulator: Any) -> Self:
        """The same around another."""
        ...

    def __call__(self, theta: Tensor, seed: int | None = None, *, first_row: int = 0) -> Tensor:
        """Simulate, as a seeded simulator."""
        ...


@dataclass(frozen=True)
class Recognised:
    """A simulator whose rows are seeded, the names it gives its parameters, and what x is.

    What x is remains to be seen of a task made of a function, and of a command.
    """

    simulator: SeededSimulator
    names: tuple[str, ...] | None = None
    returned: Returned | None = None


def recognise(
    simulator: Any,
    theta: Tensor,
    own: tuple[str, ...] | None = None,
    given: tuple[str, ...] | None = None,
    observed: Observed | None = None,
    timeout: float | None = None,
) -> Recognised:
    """Whatever simulates, as a seeded simulator.

    A task or a seeded simulator is taken as it is. A plain function is called to find out its form,
    mostly once: see :mod:`simulators.given.probe`. These calls leave no trace in random streams.

    Args:
        simulator: a task, a seeded simulator, or a plain function.
        theta: some draws of the prior, (k, d), ``NUM_PROBES`` at best.
        own: the names that the prior has for its parameters.
        given: the names that the user gives them.
        observed: the observation, which tells forms apart.
        timeout: seconds that a call of a plain function may take.

    Raises:
        TypeError: if it cannot be called, or asks for other arguments than the parameters.
        ValueError: if a plain function works in no form.
    """
    if isinstance(simulator, Around):
        found = recognise(simulator.simulator, theta, own, given, observed, timeout)
        return replace(found, simulator=simulator.around(found.simulator))
    if isinstance(simulator, CustomTask):
        if simulator.form is not None or simulator.seeds_itself:
            return Recognised(simulator, simulator.names)
        found = recognise(
            simulator.function, theta, own, given or simulator.names, observed, timeout
        )
        form = found.simulator.form  # type: ignore[attr-defined]
        names = simulator.names or found.names
        return replace(found, simulator=replace(simulator, form=form), names=names)
    _check_order(own, given, "parameter_names")
    refuse_other(simulator)
    if is_seeded(simulator):
        seeded, names = as_seeded(simulator), getattr(simulator, "parameter_names", None)
        _check_order(own, names, "simulator")
        if names is not None and len(names) != theta.shape[1]:
            raise ValueError(
                f"`prior` must draw the parameters of `simulator`, {', '.join(names)}; got draws "
                f"of {theta.shape[1]}."
            )
        x_dim = getattr(simulator, "x_dim", None)
        return Recognised(seeded, names, None if x_dim is None else Returned((x_dim,)))
    declared = declared_form(simulator)
    known = [names for names in dict.fromkeys((own, given)) if names is not None]
    if declared is not None:
        form, returned = _with_names(declared, theta.shape[1], known, own), None
    else:
        form, returned = find_form(simulator, theta, known, own is None, observed, timeout)
    names = form.names or getattr(simulator, "parameter_names", None) or None
    return Recognised(FunctionSimulator(simulator, form), names, returned)


def _check_order(own: tuple[str, ...] | None, names: Any, argument: str) -> None:
    """Refuse the prior's names in another order: each theta would be taken for another."""
    if own and names and own != tuple(names) and set(own) == set(names):
        raise ValueError(
            f"`prior` and `{argument}` must name the parameters in one order; got "
            f"{', '.join(own)} and {', '.join(names)}."
        )


def _with_names(
    form: Form, theta_dim: int, known: Sequence[tuple[str, ...]], own: tuple[str, ...] | None
) -> Form:
    """A form that names its arguments, with these in the order of the prior's parameters."""
    for names in known:
        if set(names) == set(form.names):
            return replace(form, names=names)
    if own or theta_dim != len(form.names):
        has = ", ".join(own) if own else f"{theta_dim} parameters"
        raise ValueError(
            f"`simulator` has places for {', '.join(form.names)}, where `prior` has {has}. Give it "
            "one place a parameter, of the same name."
        )
    return form


@dataclass(frozen=True)
class CustomTask:
    """Your own simulator with its prior, made by :func:`from_function`."""

    function: Callable[..., Any]
    prior: Prior
    form: Form | None = None
    names: tuple[str, ...] | None = None
    item_dim: int = 1
    num_series: int = 1

    @property
    def seeds_itself(self) -> bool:
        """Whether the function takes seeds and rows by itself."""
        return self.form is None and is_seeded(self.function)

    @cached_property
    def simulator(self) -> SeededSimulator:
        """The function as a seeded simulator; its form is found out where none is given."""
        if self.form is not None:
            return FunctionSimulator(self.function, self.form)
        theta = sample_prior(self.prior, NUM_PROBES, seed=0)
        return recognise(self.function, theta, names_of(self.prior), self.names).simulator

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
        """The names given, those that the prior or the function's arguments have, or theta_1 ..."""
        known = self.names or names_of(self.prior)
        if known is None and not self.seeds_itself:
            known = self.simulator.form.names or None  # type: ignore[attr-defined]
        return known or numbered_names(self.theta_dim)

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
    prior: Any,
    batched: bool | None = None,
    parameter_names: Sequence[str] | None = None,
    item_dim: int = 1,
    num_series: int = 1,
) -> CustomTask:
    """Make a simulator of your own function and prior, with seeds and names.

    Args:
        f: your function, in numpy or torch. It takes one theta (d,) and returns its p values (a
            number, an array, a list, a dict); or many theta (n, d), and returns x (n, p); or one
            argument for each parameter. For its noise it may use the global random streams of
            Python, numpy or torch, or a generator that its code names: they are seeded for each
            call and restored (numba's stream is not). Or it may have an argument ``seed`` (below
            2^32), ``rng``, ``generator`` or ``random_state``, and is given one.
        prior: a dict of names and distributions of torch or scipy; any object with
            ``sample((n,)) -> (n, d)``; or a function n -> (n, d). No density is needed.
        batched: True if ``f`` takes theta (n, d) as a tensor, False if it takes one theta (d,).
            When omitted, ``f`` is called once or a few times to find out. With one theta at a time,
            row i of x depends on ``(seed, i)`` alone; with many, also on how many there are.
        parameter_names: d names, in order.
        item_dim: where x is a list of items in any order, the number of values of one item.
        num_series: where x is several series of the same length, one after another, how many.

    Returns:
        A task: call it with theta (n, d), or give it to :func:`simulate` and ``abi.fit``.

    Raises:
        TypeError: if ``f`` is no function, or the prior none of these.
        ValueError: if there are not d different names.

    >>> import torch
    >>> prior = torch.distributions.Independent(
    ...     torch.distributions.Uniform(torch.zeros(2), torch.ones(2)), 1)
    >>> task = from_function(lambda theta: theta + torch.randn(2), prior)
    >>> task(torch.zeros(3, 2), seed=1).shape
    torch.Size([3, 2])
    """
    refuse_other(f, "f", "from_function(f, prior)")
    if isinstance(f, Around):
        item_dim = getattr(f, "item_dim", item_dim)
        how = prior, batched, parameter_names, item_dim, num_series
        return cast(CustomTask, f.around(from_function(f.simulator, *how)))  # acts as one
    form = None if batched is None else Form(batched=batched)
    task = CustomTask(f, as_sampler(prior), form, None, item_dim, num_series)
    if parameter_names is None:
        return task
    return replace(task, names=check_names(parameter_names, task.theta_dim))


def sample_joint(task: Task, n: int, seed: int | None = None) -> tuple[Tensor, Tensor]:
    """Draw n parameters from the prior and simulate each: theta (n, d) and x (n, p), float32.

    Args:
        task: a simulator with its prior, such as :func:`from_function` makes.
        n: number of pairs.
        seed: the same seed gives the same pairs; a new one is drawn when omitted.

    Raises:
        TypeError: if ``task`` is not a simulator with a prior.
        ValueError: if ``n`` or ``seed`` is no whole number of at least 0, or the task does not
            return one row of x for each theta.
    """
    seed = stream_seed(seed)
    if isinstance(task, type) or not (callable(task) and hasattr(task, "prior")):
        got = f"the class {task.__name__}" if isinstance(task, type) else type(task).__name__
        raise TypeError(
            f"`task` must be a simulator with its prior; got {got}. Make one by "
            "simulators.from_function(simulator, prior)."
        )
    theta = sample_prior(task.prior, as_count(n, "n"), child_seed(seed, 0))
    x = task(theta, child_seed(seed, 1))
    if x.ndim != 2 or len(x) != len(theta):
        raise ValueError(
            f"`task` must give x of shape (n, p), a row for each theta; of {len(theta)} theta it "
            f"gave {tuple(x.shape)}. For one value a simulation return shape (n, 1)."
        )
    return theta, x
