"""What is asked of a fit, checked before the first simulation is spent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from simulators import Prior, SeededSimulator, Simulations, sample_prior
from simulators.arguments import count, number, settle
from simulators.base import check_length, check_names, numbered_names
from simulators.given.function import refuse_other
from simulators.given.observation import Observed
from simulators.given.priors import as_sampler, names_of
from simulators.given.probe import NUM_PROBES
from simulators.given.task import recognise
from simulators.random import as_count
from simulators.summary import summary

from ..config import WITHOUT_DENSITY, ABIConfig
from ..encoders.layout import Layout
from ..encoders.own import check_own_encoder
from ..generators.support import Support, has_density

StopWhen = Literal["passes"] | float | None
"""When a fit may end early: as an answer passes, or no mean is off by more than so many sds."""

CHECK_FRACTION = 0.07
"""Of the calls of a fit, those that check its answer, ..."""
MOST_CHECKS = 1_000
"""... but no more: they show a bias of a tenth of an sd, and judging takes time with each."""
_FOR_ANOTHER = 750, 2_000  # calls, for a third round and a fourth
_LEAST_CALLS = 100  # a round with fewer pairs cannot train a network


@dataclass(frozen=True, eq=False)
class Problem:
    """Prior, simulator and observation of one fit, in one form.

    ``layout`` says of what items or series x consists; a simulator declares it by its attributes
    ``item_dim`` or ``num_series``. ``encoder`` is the user's own, if there is one.
    """

    prior: Prior
    simulator: SeededSimulator
    x_o: Tensor
    support: Support
    parameter_names: tuple[str, ...]
    layout: Layout
    encoder: nn.Module | None

    __repr__ = summary

    @property
    def theta_dim(self) -> int:
        """Number of parameters d."""
        return len(self.parameter_names)


@dataclass(frozen=True)
class Plan:
    """How much work a fit may do, and from which seed.

    ``check_fraction`` of the calls are kept for pairs that judge the answer; no training sees
    them. ``stop_when`` an answer is good enough, the rounds end.
    """

    num_simulations: int
    num_rounds: int
    seed: int
    config: ABIConfig
    check_fraction: float = 0.0
    stop_when: StopWhen = None

    def __post_init__(self) -> None:
        settle(
            self,
            num_simulations=count(),
            num_rounds=count(),
            seed=count(0),
            check_fraction=number("in [0, 1/2]", lambda value: 0.0 <= value <= 0.5),
            stop_when=_stop_when,
        )
        least, retries = self._least, self._retries
        if self.num_simulations < least:
            tried = f" with max_retries={retries}" if retries > _LEAST_CALLS else ""
            rounds = f"{self.num_rounds} round{'' if self.num_rounds == 1 else 's'}"
            raise ValueError(
                f"`num_simulations` must be at least {least} for {rounds}{tried}; got "
                f"{self.num_simulations}. Ask for more simulations or fewer rounds."
            )
        tolerances = self.config.tolerances
        if tolerances is not None and len(tolerances) != self.num_rounds:
            raise ValueError(
                f"`tolerances` must give one value a round ({self.num_rounds}); "
                f"got {len(tolerances)}."
            )

    @property
    def _retries(self) -> int:
        return self.config.max_retries if self.config.proposal == "generator" else 1

    @property
    def _least(self) -> int:
        """Calls that the rounds cannot do without."""
        return max(_LEAST_CALLS, self._retries) * self.num_rounds

    @property
    def num_check(self) -> int:
        """Simulator calls kept for the check of the answer."""
        wanted = min(int(self.check_fraction * self.num_simulations), MOST_CHECKS)
        return min(wanted, self.num_simulations - self._least)

    def calls(self, number: int, first: int = 1) -> int:
        """Simulator calls a round may make: growing shares of what is not kept for the check.

        Args:
            number: the round, first, ..., num_rounds.
            first: the first round that simulates.
        """
        weights = [self.config.growth**k for k in range(self.num_rounds + 1 - first)]
        done = number - first
        budget = self.num_simulations - self.num_check
        ends = [int(budget * sum(weights[:k]) / sum(weights)) for k in (done, done + 1)]
        return ends[1] - ends[0]


def _stop_when(value: Any, name: str) -> StopWhen:
    if value is None or value == "passes":
        return value  # type: ignore[no-any-return]
    rule = '"passes", a largest bias in posterior sds such as 0.2, or None'
    checked: float = number(rule, lambda bias: bias > 0.0)(value, name)
    return checked


def default_rounds(num_simulations: int) -> int:
    """Rounds of a fit that names none: each narrows the proposal, and needs pairs to do so."""
    return 2 + sum(as_count(num_simulations, "num_simulations", 1) >= n for n in _FOR_ANOTHER)


def answers_elsewhere(config: ABIConfig, num_rounds: int) -> bool:
    """Whether the answer is flows of theta given x whose pairs have the prior's theta given x."""
    from_prior = config.proposal == "truncated" or num_rounds == 1
    return config.adjustment == "conditional" and from_prior


def check_generator(plan: Plan) -> None:
    """Refuse a generator that would not be used, or cannot be where it would.

    Raises:
        ValueError: if all rounds fit conditional flows and ``config.generator`` is another; if
            rounds would cut the prior by a density that it does not have.
    """
    config, several = plan.config, plan.num_rounds > 1
    truncated = config.proposal == "truncated"
    conditional = config.adjustment == "conditional"
    if conditional and (truncated or not several) and config.generator != "flow":
        raise ValueError(
            f"`generator` {config.generator!r} would not be used: adjustment='conditional' fits "
            "flows of theta given x. Choose adjustment='none' or 'quantile' with it."
        )
    if truncated and several and not conditional and config.generator in WITHOUT_DENSITY:
        raise ValueError(
            f"`generator` must have a density where proposal='truncated' cuts the prior by it; "
            f"got {config.generator!r}. Use proposal='generator', or the flow or the mixture."
        )


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
    ``timeout`` and a few seconds: see :mod:`simulators.given.probe`.

    Raises:
        ValueError: if the prior's draws are not (n, d) or lie outside its support, ``x_o`` is not
            one finite observation, the names are not d, or the encoder gives no features of x.
        TypeError: if the prior is no sampler, the simulator no callable, the encoder no module.
    """
    refuse_other(simulator, "simulator", "(prior, simulator, x_o)")
    prior = as_sampler(prior)
    drawn = sample_prior(prior, NUM_PROBES, seed=0)
    theta_dim = drawn.shape[1]
    given = None if parameter_names is None else check_names(parameter_names, theta_dim)
    support = Support.of(prior, theta_dim)
    if not support.contains(drawn).any():
        raise ValueError("`prior` draws theta outside its own `support`; correct one of them.")
    observed = Observed.of(x_o)
    if encoder is not None:
        check_own_encoder(encoder, observed.values.reshape(-1))
    own = names_of(prior)
    found = recognise(simulator, drawn, own, given, observed, timeout)
    observation = observed.matched(found.returned)
    known = given or own or found.names or numbered_names(theta_dim)
    names = check_names(known, theta_dim)
    layout = Layout.of(simulator, len(observation))
    prior = without_inherited_density(prior)
    return Problem(prior, found.simulator, observation, support, names, layout, encoder)


def posed_again(
    known: Problem | None, simulator: Any, prior: Any, x_o: Tensor, names: tuple[str, ...]
) -> Problem:
    """The problem of a fit, from what is given or what is known of it.

    Raises:
        ValueError: if prior or simulator are missing.
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
    return pose(prior, simulator, x_o, names)


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
    if len(x):
        check_length(len(x_o), x.shape[1])


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
