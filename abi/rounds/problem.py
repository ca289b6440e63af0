"""What is asked of a fit, checked before the first simulation is spent."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from simulators import Prior, SeededSimulator, Simulations, sample_prior, simulate
from simulators.base import check_names, numbered_names
from simulators.given.observation import Observed, Returned
from simulators.given.priors import as_sampler, names_of
from simulators.given.probe import NUM_PROBES
from simulators.given.task import recognise
from simulators.random import child_seed, isolated_rng
from simulators.summary import summary

from ..encoders.layout import Layout
from ..generators.support import Support, has_density

_ATTEMPTS = 20


@dataclass(frozen=True, eq=False)
class Problem:
    """Prior, simulator and observation of one fit, in one form.

    ``layout`` says of what items or series x consists; a simulator declares it by its attributes
    ``item_dim`` or ``num_series``. ``encoder`` is the user's own, if there is one. ``returned`` is
    what one simulation is, where that is known. Where all x are asked about, the problem is
    ``amortised``, and a simulation stands in for ``x_o``: networks are read at it as they are made.
    """

    prior: Prior
    simulator: SeededSimulator
    x_o: Tensor
    support: Support
    parameter_names: tuple[str, ...]
    layout: Layout
    encoder: nn.Module | None
    returned: Returned | None = None
    amortised: bool = False

    __repr__ = summary

    @property
    def theta_dim(self) -> int:
        """Number of parameters d."""
        return len(self.parameter_names)

    @property
    def asked(self) -> Tensor | None:
        """The observation that is asked about; None where all x are."""
        return None if self.amortised else self.x_o

    def at(self, x_o: Any) -> Problem:
        """The same problem at an observation.

        Raises:
            ValueError: if it is not one finite observation of as many values.
        """
        observation = Observed.of(x_o).matched(self.returned)
        check_width(self.x_o[None], observation)
        return replace(self, x_o=observation, amortised=False)


def pose(
    prior: Any,
    simulator: Callable[..., Any],
    x_o: Any,
    parameter_names: Sequence[str] | None = None,
    encoder: nn.Module | None = None,
) -> Problem:
    """Check prior, simulator and observation, and bring them into one form.

    A plain function is called to find out how it is called: see :mod:`simulators.given.probe`.
    Without an ``x_o`` the simulator is called once more, to see what x is.

    Raises:
        ValueError: if the prior's draws are not (n, d) or lie outside its support, ``x_o`` is not
            one finite observation, the names are not d, or the encoder gives no features of x.
        TypeError: if the prior is no sampler, the simulator no callable, the encoder no module.
    """
    prior = as_sampler(prior)
    drawn = sample_prior(prior, NUM_PROBES, seed=0)
    theta_dim = drawn.shape[1]
    given = None if parameter_names is None else check_names(parameter_names, theta_dim)
    support = Support.of(prior, theta_dim)
    if not support.contains(drawn).any():
        raise ValueError("`prior` draws theta outside its own `support`; mend one of them.")
    observed = None if x_o is None else Observed.of(x_o)
    if encoder is not None and observed is not None:
        _check_encoder(encoder, observed.values.reshape(-1))
    own = names_of(prior)
    found = recognise(simulator, drawn, own, given, observed)
    if observed is None:
        observation = _one_simulation(prior, found.simulator)
        if encoder is not None:
            _check_encoder(encoder, observation)
    else:
        observation = observed.matched(found.returned)
    known = given or own or found.names or numbered_names(theta_dim)
    names = check_names(known, theta_dim)
    layout = Layout.of(simulator, len(observation))
    prior = without_inherited_density(prior)
    posed = prior, found.simulator, observation, support, names, layout, encoder
    return Problem(*posed, returned=found.returned, amortised=observed is None)


def _one_simulation(prior: Prior, simulator: SeededSimulator) -> Tensor:
    """One x (p,), of the first theta that gives one.

    Raises:
        ValueError: if none of a few does.
    """
    for attempt in range(_ATTEMPTS):
        theta = sample_prior(prior, 1, child_seed(attempt, 0))
        seed = child_seed(attempt, 1)
        runs = simulate(simulator, theta, seed=seed, progress=False, max_failure_fraction=1.0)
        if len(runs.x):
            return runs.x[0]
    raise ValueError(
        f"`simulator` failed for each of {_ATTEMPTS} draws of the prior; the last: "
        f"{runs.failures[-1].reason}"
    )


def posed_again(
    known: Problem | None, simulator: Any, prior: Any, x_o: Any, names: tuple[str, ...]
) -> Problem:
    """The problem of a fit, from what is given or what is known of it.

    Raises:
        ValueError: if prior or simulator are missing.
    """
    if simulator is None and known is None:
        raise ValueError(
            "`simulator` must be given, and `prior` if it has none: a loaded posterior holds "
            "neither."
        )
    if simulator is None and known is not None:
        return known
    prior = getattr(simulator, "prior", None) if prior is None else prior
    if prior is None:
        raise ValueError("`prior` must be given: the simulator brings none of its own.")
    return pose(prior, simulator, x_o, names)


def _check_encoder(encoder: nn.Module, x_o: Tensor) -> None:
    """Refuse a module that does not give features (n, k) of x (n, p), before it is paid for.

    Raises:
        TypeError: if it is no module.
        ValueError: if it cannot take x, or gives something else.
    """
    if not isinstance(encoder, nn.Module):
        raise TypeError(f"`encoder` must be a torch module; got {type(encoder).__name__}.")
    x = x_o.repeat(2, 1)
    try:
        with isolated_rng(0), torch.no_grad():
            features = copy.deepcopy(encoder).eval().cpu()(x)
    except (RuntimeError, IndexError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"`encoder` must take float32 x of shape (n, {len(x_o)}); given (2, {len(x_o)}) it "
            f"says: {reason}"
        ) from error
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != 2:
        got = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise ValueError(f"`encoder` must give features (n, k), two rows for two x; got {got}.")


def check_simulations(simulations: Any) -> None:
    """Refuse what does not hold pairs; None is none.

    Raises:
        TypeError: if it is something else.
    """
    if simulations is not None and not isinstance(simulations, Simulations):
        raise TypeError(
            "`simulations` must be what simulators.simulate or load_store gives; got "
            f"{type(simulations).__name__}."
        )


def check_width(x: Tensor, x_o: Tensor) -> None:
    """Refuse simulations whose length is not that of the observation."""
    if len(x) and x.shape[1] != len(x_o):
        raise ValueError(
            f"`x_o` must have as many values as a simulation; got {len(x_o)} values and "
            f"simulations of {x.shape[1]}."
        )


def check_varies(x: Tensor) -> None:
    """Refuse simulations that are all the same: they say nothing about theta."""
    if len(x) > 1 and bool((x == x[0]).all()):
        raise ValueError(
            f"`simulator` returned the same x for all {len(x)} parameters, so x says nothing "
            "about theta. Check that the simulator uses its argument."
        )


@dataclass(frozen=True)
class _SamplerPrior:
    """A prior that inherits a ``log_prob`` it does not have, without it."""

    prior: Any

    @property
    def support(self) -> Any:
        """That of the prior."""
        return self.prior.support

    def sample(self, sample_shape: Any, /) -> Tensor:
        """Draw (n, d)."""
        return torch.as_tensor(self.prior.sample(sample_shape))


def without_inherited_density(prior: Prior) -> Prior:
    """A prior as it is, or as a sampler where its ``log_prob`` cannot be called."""
    return _SamplerPrior(prior) if hasattr(prior, "log_prob") and not has_density(prior) else prior
