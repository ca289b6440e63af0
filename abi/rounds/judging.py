"""Every round judges the answer before it; pairs of its own judge the last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from simulators.random import child_seed
from simulators.running.engines import Engine
from simulators.summary import summary

from ..config import ABIConfig
from ..encoders.choice import OWN_ENCODER
from ..generators.base import GenerativeModel, two_samples
from ..generators.conditional import ConditionalFlows
from ..generators.flow import FlowModel
from ..plan import StopWhen
from ..quantiles.distance import QuantileTable, msw_distance
from ..quantiles.kernel import LearnedKernel
from ..verdict.judge import judge, resolved, untold, verdict_of
from ..verdict.record import Check, Distance, RoundCheck, Verdict
from .calls import SimulatorCalls
from .checks import CheckPairs, candidates_of, check_regions, draw_checks, draws_inside
from .problem import Problem
from .reach import Reach
from .record import Moments, RoundRecord, RoundState
from .regions.leaning import leaning_on
from .regions.region import AnyRegion, inside_all
from .rejection import Sampled

_ROUND_PAIRS, _ROUND_DRAWS = 200, 30  # of the judgement of a round's answer


def judge_before(before: RoundState, sampled: Sampled, problem: Problem, seed: int) -> Check | None:
    """The answer of the round before, judged by this round's fresh pairs, which it has not seen.

    Those of them count that lie in its middle, and so near x_o: they are draws of the prior there.
    None where it cannot be asked at their x.
    """
    q = ConditionalFlows.of(before.model)
    if q is None or not isinstance(before.kernel, LearnedKernel) or not len(sampled.theta):
        return None
    names, prior = problem.parameter_names, problem.prior
    # Beyond regions that were left, all theta are fresh; inside them the first are earlier pairs.
    own = check_regions(before.model, prior, before.regions, child_seed(seed, 0))
    regions = (*before.left, *own)
    middle = inside_all(regions, sampled.theta).nonzero()[:_ROUND_PAIRS, 0]
    pairs = CheckPairs(sampled.theta[middle], sampled.x[middle], regions, 0, 0)
    return _judged(q, before.kernel, pairs, names, child_seed(seed, 1), _ROUND_DRAWS, False)


def is_enough(check: Check | None, stop_when: StopWhen) -> bool:
    """Whether the answer that a check is of satisfies what a fit was asked to stop at."""
    if stop_when is None or check is None or check.p_value is None or check.rejects:
        return False
    if stop_when == "passes":
        return all(map(resolved, check.parameters))
    largest = check.largest_bias
    return largest is not None and largest <= stop_when


def moved_between(first: GenerativeModel, second: GenerativeModel) -> Distance:
    """MSW distance between two answers at x_o, in the second's sds, beside that of two samples."""
    (a, _), (again, b) = two_samples(first), two_samples(second)
    unit = b.std(dim=0).clamp_min(1e-30)
    value, chance = (float(msw_distance(some / unit, b / unit)) for some in (a, again))
    return Distance(value, chance)


def moments(model: GenerativeModel) -> Moments:
    """Mean and sd of each parameter in an answer at x_o."""
    draws = two_samples(model)[0].double()
    return Moments(tuple(draws.mean(dim=0).tolist()), tuple(draws.std(dim=0).tolist()))


def from_marginals(model: GenerativeModel, kernel: LearnedKernel) -> Distance:
    """Distance from an answer's marginals to the quantile network's own, in the answer's sds."""
    network = kernel.network
    table = network.table(kernel.x_o[None])
    own = QuantileTable(table.values[0], table.directions, table.levels)
    units = [(part - network.theta_center) / network.theta_scale for part in two_samples(model)]
    first, second = (
        QuantileTable.from_samples(part, table.directions, table.levels) for part in units
    )
    width = float(units[0].std(dim=0).mean().clamp_min(1e-30))
    value, chance = (
        float(msw_distance(first, other, mixing=1.0)) / width for other in (own, second)
    )
    return Distance(value, chance)


@dataclass(frozen=True, eq=False)
class Answer:
    """A fitted answer with all that judging it needs.

    Attributes:
        q: its flows at any x.
        kernel: MSW distance of x to x_o.
        reach: what the fit has simulated.
        names: of the parameters.
        records: of the rounds.
        everywhere: whether all x are asked about, and none is x_o.
    """

    q: ConditionalFlows
    kernel: LearnedKernel
    reach: Reach
    names: tuple[str, ...]
    records: tuple[RoundRecord, ...]
    everywhere: bool = False

    __repr__ = summary


_NOT_CONDITIONAL = (
    "its generator knows the posterior at x_o alone, and no pair has that x; fit with "
    "proposal='truncated' and adjustment='conditional'"
)
_KNOWN_DISTANCE = "its distance is to the posterior at x_o; fit without distance="


class Fit(Protocol):
    """As much of a fit as tells why it answers at x_o alone."""

    @property
    def model(self) -> GenerativeModel:
        """The answer."""
        ...

    @property
    def rounds(self) -> tuple[RoundRecord, ...]:
        """One record a round."""
        ...

    @property
    def config(self) -> ABIConfig:
        """Its constants."""
        ...


def why_at_x_o_alone(fit: Fit) -> str:
    """Why an answer knows no x but its own."""
    model, encoder, config = fit.model, fit.rounds[-1].encoder, fit.config
    if encoder is None:
        return _KNOWN_DISTANCE
    conditional = isinstance(model, FlowModel) and config.adjustment == "conditional"
    if not conditional or ConditionalFlows.of(model) is not None:
        return _NOT_CONDITIONAL
    if encoder == OWN_ENCODER:
        return "its encoder is a module of yours, which abi.load(path, encoder=...) takes"
    return "its file is of an earlier version, which kept no encoders; fit again"


def for_tests(
    answer: Answer, pairs: CheckPairs, num_draws: int, seed: int
) -> tuple[Any, Tensor, Tensor]:
    """(q, theta, x) of the pairs for tests of :mod:`validation`, q's draws inside their region."""
    from validation.posteriors.shared_draws import SharedDraws
    from validation.posteriors.stored_samples import StoredSamples

    draws, enough = draws_inside(answer.q, pairs.regions, pairs.x, num_draws, seed)
    theta, x = pairs.theta[enough], answer.kernel.layout.as_numbers(pairs.x[enough])
    stored = StoredSamples(x, draws[:, enough])
    return SharedDraws(InsideDraws(answer.q, pairs.regions), stored), theta, x


@dataclass(frozen=True, eq=False)
class InsideDraws:
    """An answer's draws inside some regions, at any x, as tests of :mod:`validation` take them.

    Where x has gaps they take its numbers (:meth:`~abi.encoders.layout.Layout.as_numbers`).
    """

    q: ConditionalFlows
    regions: tuple[AnyRegion, ...]

    def sample(self, num_samples: int, x: Tensor, seed: int = 0) -> Tensor:
        """Draw (num_samples, n, d) at x (n, p).

        Raises:
            ValueError: if hardly a draw at one of the x lies inside.
        """
        draws, enough = draws_inside(self.q, self.regions, self._with_gaps(x), num_samples, seed)
        if not enough.all():
            raise ValueError(
                f"`x`: at {int((~enough).sum())} of {len(x)} rows hardly a draw lies where the "
                "answer was checked; leave them out."
            )
        return draws

    def log_prob(self, theta: Tensor, x: Tensor) -> Tensor:
        """Log density at theta (K, n, d) given x (n, p), up to a constant at each x, (K, n)."""
        return self.q.relative_log_prob(theta, self._with_gaps(x))

    def _with_gaps(self, x: Tensor) -> Tensor:
        encoders = self.q.encoders
        return encoders.layout.from_numbers(x, encoders.x_dim)


def judge_further(
    answer: Answer,
    known: CheckPairs | None,
    num_calls: int,
    problem: Problem,
    engine: Engine,
    slow_dir: Path | None,
    seed: int,
) -> tuple[CheckPairs, Verdict]:
    """Draw so many pairs more than are known, and judge the answer by all of them.

    However many of the calls fail, the answer is there, and they are counted.
    """
    key = child_seed(seed, 0)
    simulate = SimulatorCalls(problem, engine, slow_dir, key, most_failures=1.0)
    prior, model = problem.prior, answer.q.model
    if answer.everywhere:
        regions: tuple[AnyRegion, ...] = ()
    elif known is None:
        regions = check_regions(model, prior, answer.reach.regions, child_seed(seed, 1))
    else:
        regions = known.regions
    pairs = draw_checks(prior, regions, num_calls, simulate, child_seed(seed, 2))
    pairs = pairs if known is None else known.joined(pairs)
    return pairs, judge_answer(answer, pairs, child_seed(seed, 3))


def judge_answer(answer: Answer, pairs: CheckPairs, seed: int) -> Verdict:
    """The verdict on the last answer, by pairs of its own."""
    q, kernel, records = answer.q, answer.kernel, answer.records
    marginals, edge, everywhere = None, None, answer.everywhere
    if not everywhere:
        marginals = from_marginals(q.model, kernel)
        edge = leaning_on(q.model, answer.reach.regions)
    key = child_seed(seed, 0)
    return verdict_of(
        _judged(q, kernel, pairs, answer.names, key, everywhere=everywhere),
        x_o_p_value=records[-1].x_o_p_value,
        num_calls=pairs.num_calls,
        failures=pairs.failures,
        rounds=rounds_of(records),
        moved=records[-1].moved,
        marginals=marginals,
        edge=edge,
        everywhere=everywhere,
        seed=seed,
    )


def rounds_of(records: tuple[RoundRecord, ...]) -> tuple[RoundCheck, ...]:
    """What the rounds say of each other's answers."""
    judged, calls = [], 0
    for record in records:
        if record.before is not None:
            judged.append(RoundCheck(record.round - 1, calls, record.before))
        calls += record.simulator_calls
    return tuple(judged)


def not_judged(fit: Fit, conditional: bool) -> Verdict:
    """The verdict where there are no pairs, whether the answer is conditional or not."""
    reason, last = why_at_x_o_alone(fit), fit.rounds[-1]
    if conditional:
        reason = "no check pairs were kept; posterior.check(600) makes some"
    verdict = untold(reason, last.x_o_p_value)
    return replace(verdict, rounds=rounds_of(fit.rounds), moved=last.moved)


def _judged(
    q: ConditionalFlows,
    kernel: LearnedKernel,
    pairs: CheckPairs,
    names: tuple[str, ...],
    seed: int,
    num_draws: int | None = None,
    controls: bool = True,
    *,
    everywhere: bool = False,
) -> Check:
    asked = {} if num_draws is None else {"most_draws": num_draws}
    key = child_seed(seed, 0)
    judged = candidates_of(q, kernel, pairs, key, **asked, everywhere=everywhere)
    left_out = int((~judged.kept).sum())
    return judge(
        judged.candidates,
        names,
        None if everywhere else judged.members,
        child_seed(seed, 1),
        left_out=left_out,
        controls=controls,
    )
