"""Pairs that check an answer, and q's draws beside them: what a verdict is made from.

Theta are drawn from the prior cut to the middle of the answer itself, the region T that holds 99%
of it, within the regions of the rounds, and simulated; no network ever sees them. There, near x_o,
errors of an answer show that the wider regions of its rounds average away: a mean that was off by a
whole sd showed as nothing among pairs from the rounds' regions, and as -.28 +- .11 sds among pairs
from the answer's own. Given x, such a theta has the law

    p(theta | x, T)  =  p(theta | x) cut to T,

so q's draws are cut to T alike. An x of whose q less than one draw in four lies in T is left out:
that depends on x alone, and changes the law of theta given x at none of the others.

Theta come from the prior exactly, or the null would not be exact: draws of the prior that lie in T,
or draws of a flow with its base stretched, accepted with probability proportional to
p(theta) / q_wide(theta) (but for 0.5% of the weight, at T's edge), whichever keeps more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce

import torch
from torch import Tensor

from simulators import Prior, sample_prior
from simulators.random import child_seed, torch_generator
from simulators.summary import summary
from validation.swaps.candidates import Candidates
from validation.swaps.context import statement
from validation.swaps.rest import rest_of_x

from ..generators.base import GenerativeModel
from ..generators.conditional import ConditionalFlows
from ..generators.flow import FlowModel
from ..quantiles.kernel import LearnedKernel
from .calls import SimulatorCalls
from .regions.drawing import STRETCHES, can_resample, sample_inside, weighted_draws
from .regions.placing import FEW_DRAWS, Placed
from .regions.region import AnyRegion, inside_all

_LEAST_DRAWS, _MOST_DRAWS, _VALUES = 25, 50, 125
_FLOWS = 2  # of a region
_FIRST = 20  # simulations of a check
_OUTSIDE = 0.01  # of the answer's draws
_TRIES = 6  # times K draws at an x, of which K must lie inside
_SERVED = 0.75  # of the x that want more, in the next go
_LEAST_INSIDE = 0.25  # of the first K
_AT_X_O = 1_000
_MEMBER_DRAWS = 500
_PILOT, _LEAST_ACCEPTED = 1_000, 0.004
_PRICE = 8  # of a flow's draw, in draws of the prior
_ENOUGH = 0.1  # of a pilot: nothing cheaper is looked for
_TRUNCATED = 0.005  # of the weight, which is left out


@dataclass(frozen=True, eq=False)
class CheckPairs:
    """Pairs from the prior cut to the answer's region, which no training saw.

    Attributes:
        theta: (n, d).
        x: (n, p).
        regions: in all of which theta lies; the last is the answer's own. None where all x are
            asked about.
        num_calls: simulator calls made for them.
        failures: calls that gave no usable result.
    """

    theta: Tensor
    x: Tensor
    regions: tuple[AnyRegion, ...]
    num_calls: int
    failures: int

    __repr__ = summary

    def joined(self, other: CheckPairs) -> CheckPairs:
        """These and others from the same regions."""
        return replace(
            self,
            theta=torch.cat([self.theta, other.theta]),
            x=torch.cat([self.x, other.x]) if len(self.x) and len(other.x) else (
                self.x if len(self.x) else other.x
            ),
            num_calls=self.num_calls + other.num_calls,
            failures=self.failures + other.failures,
        )  # fmt: skip


def check_regions(
    model: GenerativeModel, prior: Prior, before: tuple[AnyRegion, ...], seed: int
) -> tuple[AnyRegion, ...]:
    """The rounds' regions, and the middle of an answer.

    A flow leaks beyond the regions that its training pairs come from, and so does its middle. There
    it has learned nothing, and nothing is asked of it: of two moons after 5,000 calls 29% of T lay
    beyond, where z-scores had a variance of 100, and of .96 inside.
    """
    placed = Placed(region_model(model), prior, before, seed, num_draws=FEW_DRAWS)
    return (*before, placed.ending(_OUTSIDE))


def region_model(model: GenerativeModel) -> GenerativeModel:
    """What the density of an answer's region is read from: two flows at most, which cost less."""
    return model.first(_FLOWS) if isinstance(model, FlowModel) else model


def draw_checks(
    prior: Prior,
    regions: tuple[AnyRegion, ...],
    num_calls: int,
    simulate: SimulatorCalls,
    seed: int,
) -> CheckPairs:
    """Draw theta from the prior cut to the regions and simulate; failures are counted."""
    theta = _accepted(prior, regions, num_calls, child_seed(seed, 0)) if regions else None
    if theta is None:
        theta = sample_inside(prior, regions, num_calls, child_seed(seed, 1))
    # The first few tell how slow the others are: slow ones are kept on the disk as they come.
    parts = [part for part in (theta[:_FIRST], theta[_FIRST:]) if len(part)]
    made = [simulate(part, key) for key, part in enumerate(parts)]
    found = [CheckPairs(runs.theta, runs.x, regions, 0, len(runs.failures)) for runs in made]
    none = CheckPairs(theta[:0], torch.empty(0, 0), regions, 0, 0)  # the middle may lie outside
    pairs = reduce(CheckPairs.joined, found, none)
    return replace(pairs, num_calls=len(theta))


Proposal = Callable[[int, int], tuple[Tensor, Tensor]]
"""(number, seed) -> theta (n, d) and log p(theta) 1_T(theta) / proposal(theta) + constant."""


def _accepted(
    prior: Prior, regions: tuple[AnyRegion, ...], num_samples: int, seed: int
) -> Tensor | None:
    """Draws of the prior inside the regions, by rejection; None where that is hopeless.

    Of the proposals, the prior itself and q with its base stretched, the one that keeps most for
    its price: draws of a flow cost far more than those of the prior, most of which a box excludes.
    """
    first, *others = _proposals(prior, regions)
    share = _PRICE * _acceptance(first(_PRICE * _PILOT, child_seed(seed, 0))[1])
    draw, price = first, _PRICE
    for other in others if share < _ENOUGH else ():
        kept = _acceptance(other(_PILOT, child_seed(seed, 0))[1])
        if kept > share:
            share, draw, price = kept, other, 1
    drawn: list[tuple[Tensor, Tensor]] = []
    found = 0
    while share > _LEAST_ACCEPTED:  # larger weights may come up, and fewer be kept
        count = int(price * (1.3 * (num_samples - found) / share + _PILOT))
        drawn.append(draw(count, child_seed(seed, 1, len(drawn))))
        theta, log_weights = (torch.cat(parts) for parts in zip(*drawn, strict=True))
        uniform = torch.rand(len(theta), generator=torch_generator(child_seed(seed, 2))).double()
        taken = uniform.log() <= log_weights - _bound(log_weights)
        found = int(taken.sum())
        if found >= num_samples:
            return theta[taken][:num_samples]
        share = price * found / len(theta)
    return None


def _proposals(prior: Prior, regions: tuple[AnyRegion, ...]) -> list[Proposal]:
    def of_prior(count: int, seed: int) -> tuple[Tensor, Tensor]:
        theta = sample_prior(prior, count, seed)
        return theta, torch.where(inside_all(regions, theta), 0.0, -torch.inf).double()

    if not can_resample(regions[-1].model, prior):
        return [of_prior]

    def of_q(stretch: float, count: int, seed: int) -> tuple[Tensor, Tensor]:
        theta, log_weights = weighted_draws(prior, regions[-1], count, stretch, seed)
        inside = inside_all(regions[:-1], theta)
        return theta, log_weights.where(inside, -torch.inf)

    return [of_prior, *(partial(of_q, stretch) for stretch in STRETCHES)]


def _acceptance(log_weights: Tensor) -> float:
    """Share of draws that rejection keeps."""
    bound = _bound(log_weights)
    return float((log_weights - bound).exp().clamp_max(1.0).mean()) if bound > -torch.inf else 0.0


def _bound(log_weights: Tensor) -> float:
    """The bound that rejection takes for the largest weight: all but 0.5% of theirs is below it.

    The very largest of a flow's weights belong to theta at the edge that it hardly draws.
    """
    ordered = log_weights.sort(descending=True).values
    if not torch.isfinite(ordered[0]):
        return -torch.inf
    w = (ordered - ordered[0]).exp()
    above = w.cumsum(dim=0) - torch.arange(1, len(w) + 1) * w  # of the first k, beyond the k-th
    return float(ordered[(above <= _TRUNCATED * w.sum()).sum() - 1])


@dataclass(frozen=True, eq=False)
class Judged:
    """Candidates of the pairs whose x could be judged, and what q says at x_o.

    Attributes:
        candidates: of those pairs.
        kept: which of the pairs they are, (n,).
        at_x_o: q's draws at x_o inside the regions, (m, d).
        members: of each flow's draws at x_o the mean, in sds of ``at_x_o``, and the log of their
            sd over its own, (M, d, 2).
    """

    candidates: Candidates
    kept: Tensor
    at_x_o: Tensor
    members: Tensor


def candidates_of(
    q: ConditionalFlows,
    kernel: LearnedKernel,
    pairs: CheckPairs,
    seed: int,
    most_draws: int = _MOST_DRAWS,
    *,
    everywhere: bool = False,
) -> Judged:
    """Draw from q at the x of the pairs, inside their regions; the true theta among them.

    Where it is asked about ``everywhere``, all pairs count alike, whatever their x.
    """
    num_draws = draws_for(pairs.theta.shape[1], most_draws)
    drawn, enough = draws_inside(q, pairs.regions, pairs.x, num_draws, child_seed(seed, 0))
    theta, x, drawn = pairs.theta[enough], pairs.x[enough], drawn[:, enough]
    here = q.sample(_AT_X_O, kernel.x_o[None], child_seed(seed, 1))[:, 0]
    inside = inside_all(pairs.regions, here)
    here = here[inside] if inside.sum() >= num_draws else here
    together = torch.cat([theta[None], drawn])
    distance = None if everywhere else kernel(x) if len(x) else torch.empty(0)
    candidates = Candidates.of(
        theta,
        drawn,
        _context(together, None if everywhere else here),
        distance,
        q.relative_log_prob(together, x) if len(x) else torch.empty(1 + num_draws, 0),
        seed=child_seed(seed, 2),
        rest=rest_of_x(q.encoders.layout.as_numbers(x), together),
    )
    own = q.of_members(kernel.x_o, _MEMBER_DRAWS, child_seed(seed, 3))
    unit = here.std(dim=0).clamp_min(1e-30)
    place = (own.mean(dim=1) - here.mean(dim=0)) / unit
    members = torch.stack([place, (own.std(dim=1) / unit).clamp_min(1e-30).log()], dim=2)
    return Judged(candidates, enough, here, members)


def draws_for(theta_dim: int, most: int = _MOST_DRAWS) -> int:
    """K, draws of q beside each true theta: those of many parameters cost more."""
    return max(_LEAST_DRAWS, min(most, _VALUES // theta_dim))


def draws_inside(
    q: ConditionalFlows, regions: tuple[AnyRegion, ...], x: Tensor, num_draws: int, seed: int
) -> tuple[Tensor, Tensor]:
    """Draws of q at x (n, p) inside the regions, (K, n, d), and at which x there are K, (n,)."""
    theta_dim = q.model.trend.dim
    found = torch.zeros(num_draws, len(x), theta_dim)
    filled = torch.zeros(len(x), dtype=torch.long)
    waiting, tried, asked = torch.arange(len(x)), 0, num_draws
    while len(waiting) and tried < _TRIES * num_draws:
        draws = q.sample(asked, x[waiting], child_seed(seed, tried))
        inside = inside_all(regions, draws.flatten(0, 1)).reshape(draws.shape[:2])
        place = filled[waiting] + inside.cumsum(dim=0) - 1
        row, column = (inside & (place < num_draws)).nonzero(as_tuple=True)
        found[place[row, column], waiting[column]] = draws[row, column]
        filled[waiting] = (filled[waiting] + inside.sum(dim=0)).clamp_max(num_draws)
        if tried == 0:
            reached = inside.float().mean(dim=0) >= _LEAST_INSIDE
        tried += asked
        waiting = ((filled < num_draws) & reached).nonzero()[:, 0]
        if len(waiting):  # most of them want a few draws more
            missing = (num_draws - filled[waiting]) * tried / filled[waiting].clamp_min(1)
            wanted = math.ceil(float(missing.quantile(_SERVED)))
            asked = max(num_draws // 4, min(num_draws, wanted))
    return found, filled == num_draws


def _context(together: Tensor, here: Tensor | None) -> Tensor:
    """What q says at each x, less the same at x_o: means and log sds, in their spread, (n, 2 d).

    Less its mean where there is no x_o.
    """
    if together.shape[1] < 2:
        return torch.zeros(together.shape[1], 2 * together.shape[2])
    said = statement(together)
    at = said.mean(dim=0)
    if here is not None:
        at = torch.cat([here.mean(dim=0), here.std(dim=0).clamp_min(1e-30).log()])
    spread = said.std(dim=0)
    return (said - at) / torch.where(spread > 0, spread, torch.ones_like(spread))
