"""How many calls the next round makes, and how many rounds are left.

The rounds of a plan share its calls in growing parts. Where the fit may choose, rounds are added as
long as each region holds less than a tenth of the pairs before: the posterior is narrower than what
was simulated shows, and a few pairs find its place as well as many. An added round makes as many
calls as the one before, of more than five parameters d/5 times as many, for there a flow that has
seen few pairs is too sure of itself; a quarter of all is left for two more. Once no region is worth
making after that, the calls that are left make one round; and so they do at once where an answer of
more than three parameters, from a thousand pairs or more, fills half of where they come from. Such
answers never came down to a quarter, a region worth making, in the rounds that followed (SLCP), and
their networks were a fifth of the time. One from fewer pairs may fill it for want of knowledge: of
the cosine model, 3,000 calls, one observation fell from a C2ST of .95 to .56 by the rounds that it
had lost. A fit that may stop early has the rounds to stop after.

Of predator-prey fits at 1,000 calls, whose posterior is a millionth of the prior, six observations
fell from a mean C2ST of .77 to .63, and one of near extinction, 10,000 calls, from .87 to .54.
Posteriors that fill more than a tenth of each region have the rounds of the plan. Of GLMs with ten
parameters, 10,000 calls, regions that came of rounds as large as the one before left out 3.5% of
the exact posterior, of rounds twice as large .8%, and C2ST fell from .594 to .578 (eight fits).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..plan import Plan

_NARROW = 0.1  # of the pairs inside
_MOST, _LEFT = 0.4, 0.25  # of the calls that are left, in a round; of all, for those after it
_AFTER = 2  # rounds at most, where regions have narrowed and none is added
_LEAST = 100  # calls of a round that is added
_FEW = 5  # parameters, for which it makes as many calls as the one before


class Done(Protocol):
    """As much of a round as says how to go on."""

    @property
    def simulator_calls(self) -> int:
        """Calls that it made."""
        ...

    @property
    def narrowed(self) -> float | None:
        """Share of its pairs in the region that it found; None where it made none."""
        ...

    @property
    def filled(self) -> bool:
        """Whether its answer fills where its theta come from."""
        ...


@dataclass(frozen=True)
class Made:
    """A round that has made its calls, and is taken to find as large a region as most."""

    simulator_calls: int
    narrowed: float | None = 1.0
    filled: bool = False


@dataclass(frozen=True)
class Next:
    """The next round: its calls, and how many rounds are left with it."""

    calls: int
    rounds_left: int


def next_round(plan: Plan, done: Sequence[Done], theta_dim: int, *, given: bool = False) -> Next:
    """The next round of a plan, after those that are done.

    Args:
        plan: how much may be done.
        done: the rounds so far, those before the plan among them.
        theta_dim: d, parameters.
        given: whether the first round has simulations that were made before, and makes no calls.
    """
    if not plan.adaptive:
        return _planned(plan, done, 1 + int(given))
    budget = plan.num_simulations - plan.num_check
    left, rounds, added, narrowing = budget, plan.num_rounds, 0, False
    for k, before in enumerate(done):
        left -= before.simulator_calls if k >= int(given) else 0
        added = _added(before, left, budget, theta_dim)
        narrowing = narrowing or added > 0
        rounds -= int(not added)
        if narrowing and not added:
            rounds = min(rounds, 1 if before.narrowed is None else _AFTER)
    if added:
        return Next(added, rounds)
    settled = bool(done) and done[-1].filled and plan.stop_when is None
    rounds = 1 if settled else max(rounds, 1)
    weights = [plan.config.growth**k for k in range(rounds)]
    return Next(int(left / sum(weights)), rounds)


def _planned(plan: Plan, done: Sequence[Done], first: int) -> Next:
    """As it was planned. Where several posteriors fill the prior, all that is left is one round."""
    numbers = range(len(done) + 1, plan.last_round + 1)
    if plan.num_observations > 1 and any(before.narrowed is None for before in done):
        return Next(sum(plan.calls(number, first) for number in numbers), 1)
    now = plan.calls(numbers[0], first) if numbers[0] >= first else 0
    return Next(now, len(numbers))


def _added(before: Done, left: int, budget: int, theta_dim: int) -> int:
    """Calls of a round that is added after one; 0 where none is."""
    if before.narrowed is None or before.narrowed >= _NARROW:
        return 0
    wanted = before.simulator_calls * max(1.0, theta_dim / _FEW)
    calls = int(min(wanted, _MOST * left))
    return calls if calls >= _LEAST and left - calls >= _LEFT * budget else 0
