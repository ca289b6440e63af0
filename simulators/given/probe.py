"""How a plain function is called: found out by calling it, as seldom as the answer allows.

One theta as an array (d,) comes first: a function that takes it and returns one simulation is
called so, after a single call. Where it raises, a batch of that one theta, (1, d), comes next, and
the other of torch and numpy last; the library that the function's code names goes first. Where it
returns something as long as theta, it may work on many as well: a second call, of (1, d), tells,
and where that gives as many values, a third, of two or three equal theta, whether it draws noise
for each of them. Arguments that are as many as the parameters are given numbers.

A theta for which every form raises may be one for which the simulator fails: another is tried.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import torch
from torch import Tensor

from ..random import child_seed
from .function import Form, FunctionSimulator, asking
from .limit import TimeLimitError, time_limit
from .observation import Observed, Returned
from .raised import in_one_line
from .reads import generators_of, language, signature_of
from .values import as_row, as_rows_of

Names = Sequence[tuple[str, ...]]

NUM_PROBES = 5
"""Theta that are tried before a function is given up."""
_ENOUGH_MISFITS = 2  # theta whose simulations are not as long as x_o
_ENOUGH_LATE = 3  # theta at which a simulation takes too long
_FIRST_CALL_SECONDS = 5.0  # beyond the limit, for what compiles
_NO_NUMBERS = "TypeError: `simulator`"  # of what was returned, nothing, or complex numbers
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def find_form(
    function: Callable[..., Any],
    theta: Tensor,
    known: Names = (),
    in_order: bool = True,
    observed: Observed | None = None,
    timeout: float | None = None,
) -> tuple[Form, Returned]:
    """How a function is called, and what it returns for one theta.

    Args:
        function: a plain function of one theta, of many, or of an argument a parameter.
        theta: rows to call it with, (k, d); the first is enough where it does not fail.
        known: names of the parameters, as far as there are some: those to try first, first.
        in_order: whether as many arguments of other names are the parameters in their order.
        observed: the observation; what does not fit it is no form.
        timeout: seconds that a call may take, beyond what a first call may need to compile.

    Raises:
        TypeError: if the function's arguments are not those of the parameters.
        ValueError: if it works in no form, or its simulations are not as long as the observation.
    """
    probe = _Probe(function, observed, timeout)
    forms = forms_of(function, theta.shape[1], known, in_order)
    rows_of_another_length = 0
    for number, row in enumerate(theta):
        before, late = len(probe.misfits), probe.late
        for form in forms:
            found = probe.tried(form, row, number)
            if found is not None:
                return found
            if probe.late > late:  # it would be in any other form, too
                break
        if probe.late >= _ENOUGH_LATE:
            break
        rows_of_another_length += len(probe.misfits) > before
        if rows_of_another_length >= _ENOUGH_MISFITS:
            break
    if observed is not None and probe.misfits:
        probe.refuse_lengths()
        observed.matched(probe.misfits[-1][1])  # says what does not fit
    raise ValueError(probe.complaint(theta))


def forms_of(
    function: Callable[..., Any], theta_dim: int, known: Names = (), in_order: bool = True
) -> list[Form]:
    """What is tried, in this order: the likeliest first; one theta before many."""
    speaks = language(function)
    whole = [
        Form(batched, numpy=numpy)
        for numpy, batched in product(_either(speaks == "numpy"), (False, True))
    ]
    whole += [Form(takes="mapping", names=names, numpy=True) for names in known]
    arguments, sure = _arguments(function, theta_dim, known, in_order)
    if not arguments:
        return whole
    single = [
        Form(batched, "numbers", arguments, numpy)
        for numpy, batched in product(_either(speaks != "torch"), (False, True))
    ]
    if theta_dim == 1:  # an argument that may be a number or an array of one
        single = single[::2]
        return [*single, *whole] if arguments in known else [*whole, *single]
    return single if sure else [*single, *whole]


def _either(first: bool) -> tuple[bool, bool]:
    return first, not first


def _arguments(
    function: Callable[..., Any], theta_dim: int, known: Names, in_order: bool
) -> tuple[tuple[str, ...], bool]:
    """Names of the arguments that take a parameter each, in its order, and whether it must be so.

    Raises:
        TypeError: if there are others, or fewer.
    """
    declared = {n: p for n, p in signature_of(function).items() if n not in asking(function)}
    named = [name for name, part in declared.items() if part.kind in _NAMED]
    needed = [n for n in named if declared[n].default is inspect.Parameter.empty]
    any_name = any(part.kind is inspect.Parameter.VAR_KEYWORD for part in declared.values())
    for names in known:
        if set(needed) <= set(names) and (any_name or set(names) <= set(named)):
            return names, not any_name
    wanted = needed or named
    if in_order and len(wanted) == theta_dim:
        return tuple(wanted), bool(needed)
    if len(needed) > 1:
        has = f"has {', '.join(known[-1])}" if known else f"has {theta_dim} parameters"
        raise TypeError(
            f"`simulator` asks for {', '.join(needed)}, where `prior` {has}. Name its arguments "
            "after the parameters, and give the others a default."
        )
    return (), False


@dataclass(eq=False)
class _Probe:
    """Calls of one function, and what became of them."""

    function: Callable[..., Any]
    observed: Observed | None
    timeout: float | None = None
    misfits: list[tuple[Form, Returned]] = field(default_factory=list)
    errors: dict[Form, str] = field(default_factory=dict)
    late: int = 0

    def tried(self, form: Form, row: Tensor, number: int) -> tuple[Form, Returned] | None:
        """The form, or one it leads to, with what the function returned; None if it is none."""
        try:
            found = self._of_many(form, row, number) if form.batched else None
            found = found or self._of_one(form, row, number)
        except TimeLimitError:
            self.late += 1
            return None
        except (Exception, SystemExit) as error:
            self.errors.setdefault(form, in_one_line(error))
            return None
        if self._fits(found[1]):
            return found
        self.misfits.append(found)
        return None

    def refuse_lengths(self) -> None:
        """Refuse a function whose simulations differ in length from theta to theta.

        Raises:
            ValueError: with two of the lengths.
        """
        for form in dict(self.misfits):
            sizes = {returned.size for known, returned in self.misfits if known == form}
            if len(sizes) > 1:
                raise ValueError(
                    "`simulator` must return the same number of values for every theta; got "
                    f"{min(sizes)} and {max(sizes)}. Summarise its output, or fill it up to one "
                    "length."
                )

    def complaint(self, theta: Tensor) -> str:
        """What was tried in vain, in one line."""
        by_error = dict[str, list[str]]()
        for form, error in self.errors.items():
            by_error.setdefault(error, []).append(str(form))
        name = getattr(self.function, "__name__", "simulate")
        if self.late:
            return (
                f"`simulator` gave no result within timeout = {self.timeout:g} s at {self.late} "
                "theta of the prior. Raise `timeout`, or look for what never ends."
            )
        returned = [error for error in by_error if error.startswith(_NO_NUMBERS)]
        if returned:  # it worked in the first of these forms
            return f"{returned[0].partition(': ')[2]}."
        if len(by_error) == 1:  # not a matter of the form
            (error,) = by_error
            _, _, words = error.partition(": ")
            if words.startswith("`simulator`"):
                return f"{words}."
            numbers = ", ".join(f"{value:.4g}" for value in theta[0].tolist())
            return (
                f"`simulator` raised {error}, at {len(theta)} theta of the prior and however it "
                f"was called. Call it yourself to see more: {name}(torch.tensor([{numbers}]))."
            )
        tried = "; ".join(f"{', '.join(forms)}: {error}" for error, forms in by_error.items())
        parts = ", ".join(f"theta[{j}]" for j in range(min(theta.shape[1], 3)))
        parts += ", ..." if theta.shape[1] > 3 else ""
        return (
            f"`simulator` works in none of the forms tried, at {len(theta)} theta of the prior "
            f"({tried.rstrip('.')}). Give a function of one theta ({theta.shape[1]},) that returns "
            f"its simulated values, such as lambda theta: {name}({parts})."
        )

    def _fits(self, returned: Returned) -> bool:
        return self.observed is None or self.observed.fits(returned)

    def _call(self, form: Form, row: Tensor, number: int) -> Any:
        given = row[None] if form.batched and row.ndim == 1 else row
        simulator = FunctionSimulator(self.function, form)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of forms that are not the right one
            with time_limit(self.timeout, _FIRST_CALL_SECONDS / 2.0**self.late):
                return simulator.call(given, child_seed(0, number), generators_of(self.function))

    def _of_one(self, form: Form, row: Tensor, number: int) -> tuple[Form, Returned]:
        """Of the answer to one theta; as long as theta, it may have been taken for many."""
        returned = Returned.of(self._call(form, row, number))
        long = len(row) > 1 and returned.shape[:1] == (len(row),) and not returned.names
        if form.takes == "theta" and long:
            with suppress(Exception, SystemExit, TimeLimitError):  # of what does not take many
                many, others = self._of_many(replace(form, batched=True), row, number)
                told = len(returned.shape) > 1 or others.size != returned.size
                fits = many.batched and self._fits(others)
                if fits and (told or self._has_noise_a_row(many, row, number)):
                    return many, others
        return replace(form, values=returned.names), returned

    def _has_noise_a_row(self, form: Form, row: Tensor, number: int) -> bool:
        """Whether a function that takes one theta and many draws for each of many.

        One that draws once for all, as in ``theta + normal(size=d)``, gives equal theta equal x.
        Their number is not that of the parameters, so that rows are not taken for parameters.
        """
        count = 2 if len(row) != 2 else 3
        x = as_rows_of(self._call(form, row.repeat(count, 1), number), count)
        if x.ndim != 2 or len(x) != count:
            return False
        finite = x[torch.isfinite(x).all(dim=1)]
        return len(finite) < 2 or bool((finite != finite[0]).any())

    def _of_many(self, form: Form, row: Tensor, number: int) -> tuple[Form, Returned]:
        """Of the answer to a batch of one theta, (1, p); one of (p,) takes no more than one."""
        value = self._call(form, row, number)
        whole = Returned.of(value)
        form = replace(form, values=whole.names)
        try:
            x = as_rows_of(value, 1, lists=form.takes == "numbers")
        except ValueError:  # columns of no length
            x = as_row(value)
        if x.ndim < 2 and form.takes == "theta":
            return replace(form, batched=False, takes="row"), whole
        if x.ndim != 2 or len(x) != 1:
            raise ValueError(f"x of shape {tuple(x.shape)}")
        images = len(whole.shape) > 2 and whole.shape[0] == 1
        shape = whole.shape[1:] if images else (x.shape[1],)
        return form, replace(whole, shape=shape)
