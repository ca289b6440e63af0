"""What is shown of a posterior: its draws and, beside them, its prior, the truth, exact draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from simulators import sample_prior
from simulators.arguments import as_tensor
from simulators.random import child_seed

from ..files.arviz_data import Fit
from ..generators.base import GenerativeModel
from ..generators.support import Support
from ..rounds.problem import Problem
from .marginals import Marginal, marginals_of

NUM_PRIOR = 10_000
_MOST_DRAWS, _MOST_VALUES = 10_000, 200_000
_BATCH = 50_000


class Shown(Fit, Protocol):
    """As much of an :class:`~abi.ABIPosterior` as a picture needs."""

    @property
    def x_o(self) -> Tensor | None:
        """The observation, (p,); None of a posterior for every x."""
        ...

    @property
    def model(self) -> GenerativeModel:
        """The answer, with its support where it knows one."""
        ...

    @property
    def problem(self) -> Problem | None:
        """Prior and simulator, where they are known."""
        ...


def draws_of(posterior: Fit, num_samples: int | None, seed: int) -> Tensor:
    """Draws (n, d), in batches: an autoregressive flow holds d passes of all rows at once.

    Args:
        posterior: the posterior.
        num_samples: how many; None for ten thousand, or fewer where parameters are many.
        seed: of the draws.
    """
    dim = len(posterior.parameter_names)
    num = num_samples or min(_MOST_DRAWS, max(1_000, _MOST_VALUES // dim))
    size = max(100, _BATCH // dim)
    sizes = [min(size, num - start) for start in range(0, num, size)]
    parts = [posterior.sample((n,), seed=child_seed(seed, i)) for i, n in enumerate(sizes)]
    return torch.cat(parts)


def shown_marginals(
    posterior: Shown, num_samples: int | None, seed: int, prior: Any = None, exact: Any = None
) -> list[Marginal]:
    """Every parameter with its draws, those of the prior and those of the exact posterior.

    Args:
        posterior: the posterior.
        num_samples: draws of it, as of :func:`draws_of`.
        seed: of all draws.
        prior: the prior, as :func:`abi.fit` takes it; that of the fit, where it is known, when
            None; none when False.
        exact: draws of the exact posterior, (k, d), or None.

    Raises:
        ValueError: if prior or exact draws are of another number of parameters.
    """
    names, known = posterior.parameter_names, posterior.problem
    support = None if known is None else known.support
    support = getattr(posterior.model, "support", support)
    if prior is None and known is not None:
        prior = known.prior
    before = None
    if prior is not None and prior is not False:
        before = sample_prior(prior, NUM_PRIOR, child_seed(seed, 1))
        _check_width(before, len(names), "prior")
        support = Support.of(prior, len(names)) if support is None else support
    if exact is not None:
        exact = as_tensor(exact, "exact", torch.float32)
        _check_width(exact, len(names), "exact")
    samples = draws_of(posterior, num_samples, child_seed(seed, 0))
    return marginals_of(names, samples, before, exact, support)


def exact_draws(
    simulator: Any,
    x_o: Tensor | None,
    num_samples: int,
    broken: Callable[[Exception], None],
    *seed: int,
) -> Tensor | None:
    """Draws of the exact posterior, (n, d), where the simulator knows it; None where it does not.

    Args:
        simulator: what may have ``reference_posterior``.
        x_o: the observation, (p,); the simulator may know the posterior at some only.
        num_samples: n.
        broken: is told what the simulator raised in place of draws, on which no answer depends.
        seed: of the draws; the simulator's default when omitted.
    """
    reference = getattr(simulator, "reference_posterior", None)
    if reference is None:
        return None
    try:
        draws: Tensor = reference(x_o, num_samples, *seed)
    except NotImplementedError:
        return None
    except Exception as error:
        broken(error)
        return None
    return draws


def truth_by_name(truth: Any, names: Sequence[str]) -> dict[str, float]:
    """The true parameters that are known, by name.

    Args:
        truth: d values, or a mapping that may lack some; None for none.
        names: d names.

    Raises:
        ValueError: if they are not d values, or a name is not one of a parameter.
    """
    if truth is None:
        return {}
    if isinstance(truth, Mapping):
        check_known(list(truth), names, "truth")
        return {name: float(value) for name, value in truth.items()}
    values = torch.as_tensor(truth).reshape(-1).tolist()
    if len(values) != len(names):
        raise ValueError(
            f"`truth` must be {len(names)} values, of {', '.join(names)}, or a dict of some; got "
            f"{len(values)}."
        )
    return dict(zip(names, values, strict=True))


def chosen(parameters: Sequence[str] | None, names: Sequence[str], most: int) -> list[int]:
    """Places of the parameters that are asked for, in that order, or of the first few.

    Raises:
        ValueError: if one of them is not there.
    """
    if parameters is None:
        return list(range(min(len(names), most)))
    parameters = [parameters] if isinstance(parameters, str) else list(parameters)
    check_known(parameters, names, "parameters")
    if not parameters:
        raise ValueError(f"`parameters` must name one at least: of {', '.join(names)}.")
    return [list(names).index(name) for name in dict.fromkeys(parameters)]


def check_known(asked: Sequence[str], names: Sequence[str], argument: str) -> None:
    """Refuse a name that no parameter has."""
    unknown = [name for name in asked if name not in names]
    if unknown:
        raise ValueError(
            f"`{argument}` must name parameters, {', '.join(names)}; got {unknown[0]!r}."
        )


def _check_width(draws: Tensor, dim: int, argument: str) -> None:
    if draws.ndim != 2 or draws.shape[1] != dim or not len(draws):
        raise ValueError(
            f"`{argument}` must give draws of shape (n, {dim}), as the posterior's; got "
            f"{tuple(draws.shape)}."
        )
