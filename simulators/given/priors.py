"""What a prior may be: a sampler, a distribution, some of them by name, or a function of n."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.distributions import constraints

from ..arguments import as_tensor, refuse_class
from ..base import Prior, as_draws, check_names
from ..random import isolated_rng
from .distributions import Part, as_part, freshly_seeded
from .function import asked_for, asking
from .raised import in_one_line
from .reads import generators_of
from .values import named_parts

EXAMPLE = '{"rate": scipy.stats.uniform(low, high - low)}'
"""A prior as messages show it."""
_DRAWS, _FEW = 64, 8


@dataclass(frozen=True)
class FunctionPrior:
    """A function n -> theta (n, d) as a prior; it may ask for a ``seed`` or an ``rng``, too.

    A data frame or a dict of columns names the parameters.
    """

    function: Callable[..., Any]

    @property
    def parameter_names(self) -> tuple[str, ...] | None:
        """The names of its columns, where it has some."""
        with isolated_rng(0):
            columns = named_parts(self._draw(1))
        return None if columns is None else tuple(columns)

    def sample(self, sample_shape: Any, /) -> Tensor:
        """Draw (n, d) for ``sample_shape`` (n,)."""
        draws = self._draw(int(sample_shape[0]))
        columns = named_parts(draws)
        if columns is None:
            return torch.as_tensor(draws)
        return torch.from_numpy(np.stack([np.asarray(part) for part in columns.values()], axis=-1))

    def _draw(self, count: int) -> Any:
        if not asking(self.function):
            return self.function(count)
        return self.function(count, **asked_for(self.function, int(torch.randint(1 << 62, ()))))


@dataclass(frozen=True, eq=False)
class IndependentPrior:
    """Independent distributions of torch or scipy, one parameter or several each."""

    parts: tuple[Part, ...]
    names: tuple[str, ...] | None = None

    @property
    def parameter_names(self) -> tuple[str, ...] | None:
        """A name a parameter: those of several that have one name are numbered."""
        if self.names is None:
            return None
        return tuple(
            name if part.width == 1 else f"{name}_{j + 1}"
            for name, part in zip(self.names, self.parts, strict=True)
            for j in range(part.width)
        )

    @property
    def support(self) -> Any:
        """The supports of the parts, one after the other."""
        widths = [part.width for part in self.parts]
        return constraints.cat([part.support for part in self.parts], dim=-1, lengths=widths)

    def sample(self, sample_shape: Any, /) -> Tensor:
        """Draw (n, d) for ``sample_shape`` (n,)."""
        return torch.cat([part.draw(int(sample_shape[0])) for part in self.parts], dim=1)

    def log_prob(self, theta: Tensor) -> Tensor:
        """Log density at theta (n, d) -> (n,)."""
        blocks = theta.split([part.width for part in self.parts], dim=1)
        logs = [part.log_prob(block) for part, block in zip(self.parts, blocks, strict=True)]
        return torch.stack(logs).sum(dim=0)


def as_sampler(prior: Any) -> Prior:
    """A prior as it is, or what stands for one as a prior.

    Args:
        prior: anything with ``sample((n,)) -> (n, d)``, the posterior of another fit, too; a
            distribution of torch or scipy of one parameter; a dict or a list of pairs, name and
            distribution; a list of distributions; or a function n -> (n, d), or to a data frame or
            a dict of columns.

    Raises:
        TypeError: if it is none of these.
        ValueError: if there is nothing in it, or a name twice.
    """
    refuse_class(prior, "prior")
    if hasattr(prior, "prior") and callable(prior) and not hasattr(prior, "sample"):
        raise TypeError(
            "`prior` is a simulator that brings its prior: pass task.prior, as in "
            "abi.fit(task.prior, task, x_o)."
        )
    if isinstance(prior, Mapping):
        return _independent(list(prior.items()))
    if isinstance(prior, list | tuple):
        return _independent(prior)
    if type(prior).__module__.partition(".")[0] == "scipy":
        return IndependentPrior((as_part(prior, "`prior`"),))
    if hasattr(prior, "sample"):
        one = getattr(prior, "batch_shape", None) == getattr(prior, "event_shape", 0) == ()
        if one:
            return IndependentPrior((as_part(prior, "`prior`"),))
        return cast(Prior, freshly_seeded(prior))
    if callable(prior):
        return FunctionPrior(prior)
    raise TypeError(
        "`prior` must have sample((n,)) -> (n, d), be a dict of distributions by name, or a "
        f"function n -> (n, d); got {type(prior).__name__}. For example: {EXAMPLE}."
    )


def names_of(prior: Any) -> tuple[str, ...] | None:
    """The names of the parameters, where the prior knows them."""
    names = getattr(prior, "parameter_names", None)
    return None if names is None else tuple(names)


def sample_prior(prior: Any, num_samples: int, seed: int) -> Tensor:
    """Draw from a prior of any form: (num_samples, d), float32.

    Args:
        prior: a dict or a list of pairs of names and distributions of torch or scipy; any object
            with ``sample((n,)) -> (n, d)``; or a function n -> (n, d).
        num_samples: number of draws.
        seed: the same seed gives the same draws. Global random streams are left as they were.

    Raises:
        TypeError: if the prior is none of these.
        ValueError: if it raises an error, or its draws are not (num_samples, d) or not finite.
    """
    num_samples, seed = as_draws(num_samples, seed)
    sampler = as_sampler(prior)
    try:
        with isolated_rng(seed):
            draws = sampler.sample((num_samples,))
    except Exception as error:  # of the user's code, or of what is no prior
        raise ValueError(_failed(sampler, num_samples, error)) from error
    theta = as_tensor(draws, "prior", torch.float32)
    if theta.ndim != 2 or len(theta) != num_samples:
        raise ValueError(
            f"`prior` must give draws of shape (n, d); sample(({num_samples},)) gave "
            f"{tuple(theta.shape)}.{_mended(theta, num_samples)}"
        )
    if not torch.isfinite(theta).all():
        raise ValueError("`prior` gave draws that are not finite; correct its sample method.")
    return theta


def check_drawn_anew(prior: Any, drawn: Tensor) -> None:
    """Refuse a prior that gives the same theta over and over, as if they were new ones.

    Args:
        prior: of any form.
        drawn: its draws at seed 0, (n, d).

    Raises:
        ValueError: if its draws do not depend on the seed.
    """
    sampler = as_sampler(prior)
    called = sampler.function if isinstance(sampler, FunctionPrior) else sampler.sample
    if generators_of(called):  # it goes on from draw to draw, and stays where it is
        return
    if not torch.equal(sample_prior(prior, len(drawn), 1), drawn):
        return
    first, second = (sample_prior(prior, _DRAWS, seed) for seed in (0, 1))
    # Of a prior with few values, and of a constant, draws may be alike by chance.
    if torch.equal(first, second) and len(first.unique(dim=0)) > _FEW:
        raise ValueError(
            "`prior` gives the same draws each time. Make its random generator once, outside of "
            "it; or let it be prior(n, rng), which is given one."
        )


def _are_numbers(item: Any) -> bool:
    parts = item if isinstance(item, tuple | list) else [item]
    return all(isinstance(part, Real) for part in parts)


def _failed(sampler: Any, num_samples: int, error: Exception) -> str:
    """What to say of a prior that raises as it is drawn from."""
    call, rule = f"sample(({num_samples},))", "It must give draws of shape (n, d)."
    if isinstance(sampler, FunctionPrior):
        call = f"called with n = {num_samples}, it"
        rule = "It must be a function n -> (n, d); the order is abi.fit(prior, simulator, x_o)."
    return f"`prior` cannot be drawn from: {call} raised {in_one_line(error)}. {rule}"


def _mended(draws: Tensor, num_samples: int) -> str:
    """What turns draws of another shape into (n, d)."""
    if draws.ndim == 2 and draws.shape[1] == num_samples:
        return " Return the transpose."
    if draws.ndim == 1 and len(draws) == num_samples:
        return " For one parameter return shape (n, 1)."
    return " Return n rows, one a draw."


def _independent(given: Sequence[Any]) -> IndependentPrior:
    """A prior of pairs, name and distribution, or of distributions."""
    if not given:
        raise ValueError(f"`prior` holds no distribution; give some, as in {EXAMPLE}.")
    pairs = [isinstance(item, tuple | list) and len(item) == 2 for item in given]
    if all(map(_are_numbers, given)):
        raise TypeError(
            f"`prior` must be of distributions; got numbers, {given!r:.60}. For parameters between "
            f"two ends write {EXAMPLE}."
        )
    if not any(pairs):
        return IndependentPrior(
            tuple(as_part(item, f"`prior` number {j + 1}") for j, item in enumerate(given))
        )
    if not all(pairs):
        odd = given[pairs.index(False)]
        raise TypeError(f"`prior` must consist of pairs, (name, distribution); got {odd!r:.60}.")
    if not all(isinstance(name, str) for name, _ in given):
        raise TypeError(
            f"`prior` must name parameters by strings; got {[n for n, _ in given]!r:.60}."
        )
    parts = tuple(as_part(distribution, f"`prior` {name!r}") for name, distribution in given)
    return IndependentPrior(parts, check_names([name for name, _ in given], len(given)))
