"""What is asked of a fit, checked before the first simulation is spent."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from simulators import Prior, SeededSimulator, Simulations, sample_prior, simulate
from simulators.base import check_length, check_names, numbered_names, unresolved
from simulators.gaps.mechanism import WithGaps, declares_gaps, with_places
from simulators.gaps.trials import padded
from simulators.given.function import refuse_other
from simulators.given.observation import Observed, Returned
from simulators.given.priors import as_sampler, check_drawn_anew, names_of
from simulators.given.probe import NUM_PROBES
from simulators.given.task import recognise
from simulators.random import child_seed
from simulators.running.engines import open_engine
from simulators.summary import summary

from ..encoders.layout import Layout
from ..encoders.own import check_own_encoder
from ..generators.support import Support, without_inherited_density

_OWN_ARRAYS = (
    "Of float32 tensors theta (n, d) and x (n, p) of your own, make "
    "simulators.Simulations(theta, x, torch.arange(len(theta)), (), 0)."
)
_ATTEMPTS = 20
_LOOKED_AT = 10_000  # simulations that tell how far values spread


@dataclass(frozen=True, eq=False)
class Problem:
    """Prior, simulator and observation of one fit, in one form.

    ``layout`` says of what items or series x consists; a simulator declares it by its attributes
    ``item_dim`` or ``num_series``. ``encoder`` is the user's own, if there is one. ``returned`` is
    what one simulation is, where that is known. Where all x are asked about, the problem is
    ``amortised``, and a simulation stands in for ``x_o``: networks are read at it as they are made.
    So does the first of ``several`` observations (K, p) that are asked about together.
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
    several: Tensor | None = None

    __repr__ = summary

    @property
    def theta_dim(self) -> int:
        """Number of parameters d."""
        return len(self.parameter_names)

    @property
    def asked(self) -> Tensor | None:
        """The one observation that is asked about; None where all x are, or several."""
        return None if self.amortised else self.x_o

    def at(self, x_o: Any) -> Problem:
        """The same problem at an observation.

        Raises:
            ValueError: if it is not one finite observation of as many values.
        """
        observation = self.layout.hidden(self.row(x_o)[None])[0]
        undeclared = observation.isnan().any() and not declares_gaps(self.simulator)
        if undeclared and not torch.equal(observation.isnan(), self.x_o.isnan()):
            raise ValueError(
                "`x_o` has gaps, but the fit's simulations had none. Fit at this x_o, or fit "
                "simulators.with_gaps(simulator, missing), which says what may go missing."
            )
        return replace(self, x_o=observation, amortised=False, several=None)

    def row(self, x_o: Any) -> Tensor:
        """An observation as the simulator gives it, (p,).

        Raises:
            ValueError: if it is not one of as many values.
        """
        observation = observed_by(self.simulator, x_o).matched(self.returned)
        check_width(self.x_o[None], observation)
        return observation

    @property
    def whole(self) -> SeededSimulator:
        """The simulator without the gaps of x_o, where it declares none itself."""
        simulator: Any = self.simulator
        whole: SeededSimulator = simulator
        if getattr(simulator, "places", ()):
            whole = simulator.simulator
        return whole

    def seen(self, x: Tensor, seed: int) -> Tensor:
        """Simulations made before, (n, p), without what goes missing, unless they lack it."""
        if isinstance(self.simulator, WithGaps) and not x.isnan().any():
            return self.simulator.left_out(x, seed)
        return x


def pose(
    prior: Any,
    simulator: Callable[..., Any],
    x_o: Any,
    parameter_names: Sequence[str] | None = None,
    encoder: nn.Module | None = None,
    timeout: float | None = None,
) -> Problem:
    """Check prior, simulator and observation, and bring them into one form.

    A plain function is called to find out how it is called, each time for no longer than
    ``timeout`` and a few seconds: see :mod:`simulators.given.probe`. Without an ``x_o`` the
    simulator is called once more, under the same limit, to see what x is.

    Raises:
        ValueError: if the prior's draws are not (n, d) or lie outside its support, ``x_o`` is not
            one finite observation, the names are not d, or the encoder gives no features of x.
        TypeError: if the prior is no sampler, the simulator no callable, the encoder no module.
    """
    refuse_other(simulator, "simulator", "(prior, simulator, x_o)")
    prior = as_sampler(prior)
    drawn = sample_prior(prior, NUM_PROBES, seed=0)
    check_drawn_anew(prior, drawn)
    theta_dim = drawn.shape[1]
    given = None if parameter_names is None else check_names(parameter_names, theta_dim)
    support = Support.of(prior, theta_dim)
    if not support.contains(drawn).any():
        raise ValueError("`prior` draws theta outside its own `support`; correct one of them.")
    if coarse := unresolved(drawn):
        raise ValueError(f"`prior`: {coarse}; let theta be the difference from a constant.")
    observed = None if x_o is None else observed_by(simulator, x_o)
    if encoder is not None and observed is not None:
        check_own_encoder(encoder, observed.values.reshape(-1))
    own = names_of(prior)
    found = recognise(simulator, drawn, own, given, observed, timeout)
    if observed is None:
        observation = _one_simulation(prior, found.simulator, timeout)
        if encoder is not None:
            check_own_encoder(encoder, observation)
    else:
        observation = observed.matched(found.returned)
    known = given or own or found.names or numbered_names(theta_dim)
    names = check_names(known, theta_dim)
    layout = Layout.of(simulator, len(observation)).with_gaps_of(observation)
    seeded = found.simulator
    if layout.missing == "nothing" or not declares_gaps(seeded):
        check_measured(observation, seeded)
        seeded = with_places(seeded, observation)
    prior = without_inherited_density(prior)
    posed = prior, seeded, observation, support, names, layout, encoder
    return Problem(*posed, returned=found.returned, amortised=observed is None)


def observed_by(simulator: Any, x_o: Any) -> Observed:
    """An observation as it was given; a set of items is filled up to the most there may be."""
    if isinstance(simulator, WithGaps) and simulator.most_items is not None:
        x_o = padded(x_o, simulator.most_items, getattr(simulator, "item_dim", 1))
    return Observed.of(x_o)


def check_measured(x_o: Tensor, simulator: Any) -> None:
    """Refuse an observation (p,) of nothing, where the simulator does not say that this informs.

    Raises:
        ValueError: if all values are missing.
    """
    if x_o.isnan().all() and not declares_gaps(simulator):
        raise ValueError(
            f"`x_o` must hold a value that was measured; all {len(x_o)} are NaN, and the posterior "
            "is the prior. If seeing nothing is itself informative, declare how values go missing: "
            "simulators.with_gaps(simulator)."
        )


def _one_simulation(prior: Prior, simulator: SeededSimulator, timeout: float | None) -> Tensor:
    """One x (p,), of the first theta that gives one.

    Raises:
        ValueError: if none of a few does.
    """
    engine = open_engine(1, timeout)
    try:
        for attempt in range(_ATTEMPTS):
            theta = sample_prior(prior, 1, child_seed(attempt, 0))
            seed = child_seed(attempt, 1)
            runs = simulate(
                simulator, theta, engine=engine, seed=seed, progress=False, max_failure_fraction=1.0
            )
            if len(runs.x):
                return runs.x[0]
    finally:
        engine.close()
    raise ValueError(
        f"`simulator` failed for each of {_ATTEMPTS} draws of the prior; the last: "
        f"{runs.failures[-1].reason}"
    )


def posed_again(
    known: Problem | None,
    simulator: Any,
    prior: Any,
    x_o: Any,
    names: tuple[str, ...],
    timeout: float | None = None,
    *,
    layout: Layout,
) -> Problem:
    """The problem of a fit, from what is given or what is known of it.

    Raises:
        ValueError: if prior or simulator are missing, or the simulator has not the fit's ``layout``
            of gaps.
    """
    if simulator is None and known is None:
        raise ValueError(
            "`simulator` must be given, and `prior` if it has none, for a loaded posterior holds "
            "neither: posterior.check(600, simulator=simulator, prior=prior)."
        )
    if simulator is None and known is not None:
        return known
    prior = getattr(simulator, "prior", None) if prior is None else prior
    if prior is None:
        raise ValueError("`prior` must be given: the simulator brings none of its own.")
    problem = pose(prior, simulator, x_o, names, timeout=timeout)
    now = problem.layout
    if (now.gaps, now.missing) != (layout.gaps, layout.missing):
        raise ValueError(
            "`simulator` must say of gaps what the fit's own said; wrap it in the same way: "
            "simulators.with_gaps or simulators.trials."
        )
    return problem


def check_simulations(simulations: Any) -> None:
    """Refuse what does not hold pairs; None is none.

    Raises:
        TypeError: if it is something else.
        ValueError: if its theta and x are no rows of numbers, or not as many.
    """
    if simulations is None:
        return
    if not isinstance(simulations, Simulations):
        raise TypeError(
            "`simulations` must be what simulators.simulate or load_store gives; got "
            f"{type(simulations).__name__}. {_OWN_ARRAYS}"
        )
    both = simulations.theta, simulations.x  # of a user's making they may be anything
    rows = all(isinstance(p, Tensor) and p.dtype == torch.float32 and p.ndim == 2 for p in both)
    if not rows or len(both[0]) != len(both[1]):
        raise ValueError(f"`simulations` must hold as many theta as x. {_OWN_ARRAYS}")


def check_width(x: Tensor, x_o: Tensor) -> None:
    """Refuse simulations whose length is not that of the observation."""
    if len(x):
        check_length(len(x_o), x.shape[1])


def check_shapes(simulations: Simulations, theta_dim: int, x_o: Tensor) -> None:
    """Refuse pairs made before whose theta or x are not as long as those of the fit."""
    check_width(simulations.x, x_o)
    if simulations.theta.shape[1:] != (theta_dim,):
        raise ValueError(
            f"`simulations` must hold {theta_dim} parameters a row, as the prior draws them; got "
            f"theta of shape {tuple(simulations.theta.shape)}."
        )


def check_varies(x: Tensor) -> None:
    """Refuse simulations that are all the same, and warn of values that float32 hardly resolves."""
    if len(x) > 1 and bool(((x == x[0]) | (x.isnan() & x[0].isnan())).all()):
        raise ValueError(
            f"`simulator` returned the same x for all {len(x)} parameters, so x says nothing "
            "about theta. Check that the simulator uses its argument, and that its x differ by "
            "more than float32 resolves, seven digits."
        )
    if coarse := unresolved(x[:_LOOKED_AT]):
        warnings.warn(
            f"`simulator`: of x, {coarse}, and networks learn in float32. If it matters, subtract "
            "a constant from it, in the simulator and in x_o.",
            stacklevel=2,
        )
