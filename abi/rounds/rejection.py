"""Approximate rejection sampling (ARS), under a hard budget of simulator calls.

    theta ~ proposal; simulate X | theta up to R times until MSW_hat(pi_X, pi_{x_o}) <= eps;
    keep the pair, or drop theta                                              (Algorithm 4)

With R unbounded the kept pairs follow proposal(theta) p(X | theta, X in A) exactly. Dropping theta
after R calls weighs theta by 1 - (1 - P_theta(A))^R instead of 1: the bias of Theorem 2.2. The
share of dropped theta is part of the result.

The budget never decides which theta survive: a theta is begun only if R calls are still to be had,
and calls it leaves unused return to the budget. Stopping in the middle of a theta would favour
those that are accepted early, which is the same bias once more and an invisible one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from simulators import Failure, Simulations

Propose = Callable[[int, int], Tensor]
"""(number, key) -> theta (number, d); the key separates the random streams of the calls."""
Simulate = Callable[[Tensor, int], Simulations]
"""(theta, key) -> simulations."""
Score = Callable[[Tensor], Tensor]
"""x (n, p) -> estimated distance of its posterior to that of x_o, (n,)."""

_LEAST_PAIRS = 50  # below this neither network nor generator can be fitted
_FIRST_WAVE = 32  # a mistake in the simulator shows after 32 calls, not after the whole budget
_MAX_WAVE = 50_000  # bounds the memory of one wave
_MAX_ROWS = 100_000  # and of one call of the simulator for theta that wait long


@dataclass(frozen=True, eq=False)
class Sampled:
    """Pairs inside the acceptance region, and what they cost.

    Attributes:
        theta: kept parameters, (n, d).
        x: their simulations, (n, p).
        num_proposed: theta that were tried.
        num_dropped: theta dropped after R calls without acceptance.
        num_calls: simulator calls made, failures included.
        failures: simulations that gave no usable result; each cost its theta one call.
        reused: of the pairs so far that could have been among these, in their order, as many as
            go with them; None where all do.
    """

    theta: Tensor
    x: Tensor
    num_proposed: int
    num_dropped: int
    num_calls: int
    failures: tuple[Failure, ...]
    reused: int | None = None

    @property
    def dropped_fraction(self) -> float:
        """Share of the proposed theta that were dropped, in [0, 1]."""
        return self.num_dropped / max(1, self.num_proposed)


def approximate_rejection(
    propose: Propose,
    simulate: Simulate,
    score: Score,
    tolerance: float,
    *,
    max_retries: int,
    num_calls: int,
    num_proposals: int | None = None,
    on_calls: Callable[[int], None] | None = None,
) -> Sampled:
    """Draw pairs (theta, X) with X inside the tolerance, with at most ``num_calls`` calls.

    Args:
        propose: draws from the current proposal.
        simulate: the simulator, failures reported.
        score: estimated MSW distance to the posterior of x_o.
        tolerance: eps_{t-1}; infinity accepts every finite simulation at its first call.
        max_retries: R, calls a theta may use.
        num_calls: hard budget of simulator calls.
        num_proposals: N, theta to try; as many as the budget allows when omitted.
        on_calls: told the calls made so far.
    """
    reserve = max_retries if tolerance < float("inf") else 1
    waves: list[_Wave] = []
    calls = proposed = 0
    while calls + reserve <= num_calls:
        count = (num_calls - calls) // reserve
        if num_proposals is not None:
            count = min(count, num_proposals - proposed)
        if count == 0:
            break
        count = min(count, _MAX_WAVE if waves else _FIRST_WAVE)
        wave = _run_wave(
            propose(count, len(waves)), simulate, score, tolerance, reserve, len(waves)
        )
        waves.append(wave)
        proposed += count
        calls += wave.num_calls
        if on_calls is not None:
            on_calls(calls)
    theta = torch.cat([wave.theta for wave in waves if len(wave.x)] or [torch.empty(0, 0)])
    x = torch.cat([wave.x for wave in waves if len(wave.x)] or [torch.empty(0, 0)])
    failures = tuple(failure for wave in waves for failure in wave.failures)
    return Sampled(theta, x, proposed, proposed - len(theta), calls, failures)


@dataclass(frozen=True, eq=False)
class _Wave:
    theta: Tensor
    x: Tensor
    num_calls: int
    failures: tuple[Failure, ...]


def _run_wave(
    theta: Tensor, simulate: Simulate, score: Score, tolerance: float, tries: int, wave: int
) -> _Wave:
    """Give each theta up to ``tries`` calls; pairs come back in the order theta was proposed."""
    waiting = torch.arange(len(theta))
    rows, results, failures = [], [], []
    calls = spent = 0
    while spent < tries and len(waiting):
        block = _block(spent, tries, len(waiting))
        runs = simulate(theta[waiting].repeat_interleave(block, dim=0), wave * tries + spent)
        calls += block * len(waiting)
        spent += block
        failures += list(runs.failures)
        hit = score(runs.x) <= tolerance if len(runs.x) else torch.empty(0, dtype=torch.bool)
        found, first = _first_hits(runs.index[hit] // block)
        rows.append(waiting[found])
        results.append(runs.x[hit][first])
        still = torch.ones(len(waiting), dtype=torch.bool)
        still[found] = False
        waiting = waiting[still]
    row = torch.cat(rows)
    order = row.argsort()
    filled = [x for x in results if len(x)]
    x = torch.cat(filled)[order] if filled else torch.empty(0, 0)
    return _Wave(theta[row[order]], x, calls, tuple(failures))


def _block(spent: int, tries: int, waiting: int) -> int:
    """Calls each waiting theta makes next, the first accepted one being kept.

    One at a time at first; after many, a tenth of those made, which wastes a tenth at most and
    takes the number of steps from R to 10 log R.
    """
    affordable = max(1, _MAX_ROWS // waiting)
    return min(1 + spent // 10, tries - spent, affordable)


def _first_hits(positions: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct values of an increasing tensor, and where each comes first."""
    found, counts = torch.unique_consecutive(positions, return_counts=True)
    return found, counts.cumsum(dim=0) - counts


def acceptance_tolerance(
    scores: Tensor, previous: float, fraction: float, min_accepted: int
) -> float:
    """eps_t: the alpha-quantile of the scores within eps_{t-1} (Section 2.2.2).

    The network has changed since eps_{t-1} was set; where fewer than two scores are within it, too
    few to fit anything to, the quantile of all of them is taken.

    Args:
        scores: estimated distances of the round's pairs, (n,).
        previous: eps_{t-1}.
        fraction: alpha.
        min_accepted: the least number to keep, where there are as many.
    """
    within = scores[scores <= previous]
    candidates = (within if len(within) > 1 else scores).sort().values
    wanted = max(int(fraction * len(candidates)), min_accepted)
    return float(candidates[min(wanted, len(candidates)) - 1])


def in_turn(theta: Tensor) -> Propose:
    """Hand out rows drawn beforehand."""
    taken = 0

    def take(count: int, key: int) -> Tensor:
        nonlocal taken
        taken += count
        return theta[taken - count : taken]

    return take


def accept_all(x: Tensor) -> Tensor:
    """The first round has no region yet: A_0 is the whole space."""
    return torch.zeros(len(x))


def check_kept(kept: Tensor, number: int, tolerance: float) -> None:
    """Refuse a tolerance that leaves nothing to fit to, of the pairs kept (n,).

    Raises:
        ValueError: naming the round and the tolerance.
    """
    if int(kept.sum()) < 2:
        raise ValueError(
            f"`tolerances`: round {number} keeps {int(kept.sum())} of {len(kept)} pairs within "
            f"{tolerance:g}; raise the tolerance or num_simulations."
        )


def check_enough(sampled: Sampled, num_pairs: int, pairs_per_round: int | None) -> None:
    """Refuse to train on next to no pairs.

    Raises:
        ValueError: naming what limits them.
    """
    if num_pairs >= _LEAST_PAIRS:
        return
    limited = sampled.num_proposed == pairs_per_round
    name = "pairs_per_round" if limited else "num_simulations"
    cure = "more pairs a round" if limited else "more simulations or fewer rounds"
    lost = sampled.failures
    failed = f", of which {len(lost)} failed ({lost[0].reason})," if lost else ""
    cure += ", or correct the simulator" if lost else ", or raise max_retries"
    raise ValueError(
        f"`{name}`: {sampled.num_calls} calls{failed} left {num_pairs} pairs to train on, "
        f"fewer than {_LEAST_PAIRS}; ask for {cure}."
    )
