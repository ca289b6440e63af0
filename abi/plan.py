"""How much work a fit may do, in how many rounds, and from which seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from simulators.arguments import count, flag, number, settle
from simulators.random import as_count

from .config import WITHOUT_DENSITY, ABIConfig

StopWhen = Literal["passes"] | float | None
"""When a fit may end early: as an answer passes, or no mean is off by more than so many sds."""

CHECK_FRACTION = 0.07
"""Of the calls of a fit, those that check its answer, ..."""
MOST_CHECKS = 1_000
"""... but no more: they show a bias of a tenth of an sd, and judging takes time with each."""
_MOST_OF_FURTHER = 4
_FOR_ANOTHER = 750, 2_000  # calls, for a third round and a fourth
_LEAST_CALLS = 100  # a round with fewer pairs cannot train a network


@dataclass(frozen=True)
class Plan:
    """How much work a fit may do, and from which seed.

    ``check_fraction`` of the calls are kept for pairs that judge the answer; no training sees
    them. ``stop_when`` an answer is good enough, the rounds end. Where a finished fit goes on,
    ``rounds_before`` and ``calls_before`` are what it has done, its checks included.
    ``num_observations`` share the calls. Where it is ``adaptive``, rounds are added as long as they
    narrow (:mod:`abi.rounds.schedule`).
    """

    num_simulations: int
    num_rounds: int
    seed: int
    config: ABIConfig
    check_fraction: float = 0.0
    stop_when: StopWhen = None
    rounds_before: int = 0
    calls_before: int = 0
    num_observations: int = 1
    adaptive: bool = False

    def __post_init__(self) -> None:
        settle(
            self,
            num_simulations=count(),
            num_rounds=count(),
            seed=count(0),
            check_fraction=number("in [0, 1/2]", lambda value: 0.0 <= value <= 0.5),
            stop_when=_stop_when,
            rounds_before=count(0),
            calls_before=count(0),
            num_observations=count(),
            adaptive=flag,
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
    def last_round(self) -> int:
        """The number of the last round that is planned."""
        return self.rounds_before + self.num_rounds

    def ends_with(self, number: int) -> bool:
        """Whether the round of this number is the last for certain: none can be added."""
        return not self.adaptive and number >= self.last_round

    @property
    def num_check(self) -> int:
        """Simulator calls kept for the check of the answer.

        Where a fit goes on, its share is of all calls that were ever made, so that the new verdict
        rests on as many pairs as that of a fit of so many calls; a quarter of the further calls at
        most.
        """
        all_calls = self.calls_before + self.num_simulations
        most = MOST_CHECKS * self.num_observations
        wanted = min(int(self.check_fraction * all_calls), most)
        if self.calls_before:
            wanted = min(wanted, self.num_simulations // _MOST_OF_FURTHER)
        return min(wanted, self.num_simulations - self._least)

    def calls(self, number: int, first: int = 1) -> int:
        """Simulator calls a round may make: growing shares of what is not kept for the check.

        Args:
            number: the round, first, ..., last_round.
            first: the first round that simulates, of those of this plan.
        """
        weights = [self.config.growth**k for k in range(self.num_rounds + 1 - first)]
        done = number - self.rounds_before - first
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


def plan_of_fit(
    num_simulations: int,
    num_rounds: int | None,
    seed: int,
    check_fraction: float,
    stop_when: StopWhen,
    config: ABIConfig,
    *,
    amortised: bool = False,
    known_distance: bool = False,
) -> Plan:
    """The plan of a new fit: rounds where it names none, and pairs where its answer can be checked.

    Args:
        num_simulations: simulator calls.
        num_rounds: rounds; the fit chooses when None.
        seed: of the fit.
        check_fraction: share of the calls for a check.
        stop_when: when it may end early.
        config: constants.
        amortised: whether it asks about every x.
        known_distance: whether it keeps pairs by a distance of the user's.

    Raises:
        TypeError, ValueError: if they do not go together.
    """
    alike = config.proposal == "truncated" and config.tolerances is None and not known_distance
    adaptive = num_rounds is None and alike and not amortised
    if num_rounds is None:
        num_rounds = 1 if amortised else default_rounds(num_simulations)
    if amortised:
        check_amortised(config, num_rounds)
    checked = answers_elsewhere(config, num_rounds) and not known_distance
    kept = check_fraction if checked else 0.0
    return Plan(num_simulations, num_rounds, seed, config, kept, stop_when, adaptive=adaptive)


def answers_elsewhere(config: ABIConfig, num_rounds: int) -> bool:
    """Whether the answer is flows of theta given x whose pairs have the prior's theta given x."""
    from_prior = config.proposal == "truncated" or num_rounds == 1
    return config.adjustment == "conditional" and from_prior


def check_amortised(config: ABIConfig, num_rounds: int) -> None:
    """Refuse what an answer at every x cannot be made by.

    Raises:
        ValueError: if there are several rounds, or the constants look for pairs near one x.
    """
    if num_rounds != 1:
        raise ValueError(
            f"`num_rounds` must be 1 without an x_o to narrow the proposal to; got {num_rounds}. "
            "Leave it out, and refine the posterior at an x_o later."
        )
    check_all_kept(config, "x_o is None")


def check_all_kept(config: ABIConfig, where: str) -> None:
    """Refuse constants that look for pairs near one x, where there is not one alone.

    Raises:
        ValueError: if they do.
    """
    near = config.accept_fraction is not None or config.tolerances is not None
    if config.adjustment != "conditional" or config.proposal != "truncated" or near:
        raise ValueError(
            "`config` must have adjustment='conditional', proposal='truncated', and neither "
            f"accept_fraction nor tolerances, where {where}: these keep pairs near one x."
        )


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
