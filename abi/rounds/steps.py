"""One round of Algorithm 2, one method a step."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from simulators import Simulations, sample_prior
from simulators.random import child_seed
from simulators.running.engines import Engine

from ..config import ABIConfig
from ..generators.base import GenerativeModel, Progress
from ..generators.support import allowed
from ..plan import Plan
from ..quantiles.kernel import FixedKernel, Kernel, LearnedKernel, train_kernel
from ..verdict.record import Check, Distance
from .answer import Fitted, Pairs, fit_answer, fit_generator, pool_answer
from .calls import SimulatorCalls, made_before
from .judging import is_enough, judge_before, moments, moved_between
from .plausibility import plausibility
from .problem import Problem, check_varies
from .progress import FitProgress
from .record import Pool, RoundRecord, RoundState
from .regions.finding import Bounds, bounds
from .regions.leaning import refilled
from .regions.region import inside_all
from .rejection import (
    Sampled,
    accept_all,
    acceptance_tolerance,
    approximate_rejection,
    check_enough,
    check_kept,
    in_turn,
)
from .schedule import Done, Made, Next, next_round

_REGION_FLOWS, _REGION_STEPS = 2, 1 / 3  # flows: two see tails that one misses
_MAX_TRIES = 200  # draws of the proposal a theta inside the support may take


@dataclass(frozen=True, eq=False)
class Work:
    """What a fit is asked to do, and with what."""

    problem: Problem
    plan: Plan
    fixed: FixedKernel | None
    slow_dir: Path | None  # for simulations of a slow round while it lasts
    simulations: Simulations | None


@dataclass(frozen=True, eq=False)
class Round:
    """One round: everything it reads stands here, everything it makes is in its state."""

    work: Work
    engine: Engine
    shown: FitProgress

    @property
    def problem(self) -> Problem:
        """What is asked."""
        return self.work.problem

    @property
    def plan(self) -> Plan:
        """How much may be done."""
        return self.work.plan

    def run(self, before: RoundState | None) -> RoundState:
        """Steps 3 to 10 of Algorithm 2."""
        started = time.perf_counter()
        number = 1 if before is None else len(before.records) + 1
        seed = child_seed(self.plan.seed, number)
        ahead = self._next(before)
        self.shown.expect(number - 1 + ahead.rounds_left)
        sampled = self._sample(before, ahead.calls, seed)
        judged = self._judge(before, sampled, child_seed(seed, 6))
        theta, x, past = self._pool(before, sampled)
        last = is_enough(judged, self.plan.stop_when) or ahead.rounds_left == 1
        kernel, network_log = self._train(before, theta, x, seed, last)
        scores = kernel(x)
        tolerance = self._tolerance(before, scores, number)
        kept = scores <= tolerance
        check_kept(kept, number, tolerance)
        regions = before.regions if before else ()
        pairs = Pairs(theta, x, kept, past)
        accepted, model, generator_log = self._fit(kernel, pairs, seed, last)
        settings = self._settings("learning the likelihood", seed, last)
        pooled = pool_answer(model, pairs, regions, *settings, last=last)
        model, found = pooled if last else model, Bounds(regions)
        if self._truncates and not last:
            found = self._bounds(before, pooled, theta, sampled.num_calls, child_seed(seed, 4))
        encoder = kernel.encoder if isinstance(kernel, LearnedKernel) else None
        record = RoundRecord(
            round=number,
            tolerance=tolerance,
            proposed=sampled.num_proposed,
            dropped_fraction=sampled.dropped_fraction,
            pairs=len(theta),
            accepted=int(kept.sum()),
            simulator_calls=sampled.num_calls,
            failures=len(sampled.failures),
            encoder=encoder,
            network=network_log,
            generator=generator_log,
            seconds=time.perf_counter() - started,
            x_o_p_value=self._plausibility(x, encoder, child_seed(seed, 5)),
            before=judged,
            moved=self._moved(before, model),
            answer=None if self._asks_none else moments(model),
            narrowed=found.share,
            filled=found.filled,
        )
        self.shown.finish(record)
        records = (*before.records, record) if before else (record,)
        return RoundState(
            kernel, tolerance, model, theta, x, accepted, records,
            found.regions, found.left, last, past=past,
        )  # fmt: skip

    def _fit(self, kernel: Kernel, pairs: Pairs, seed: int, last: bool) -> Fitted:
        """Steps 9 and 12: the next proposal, or the answer."""
        settings = self._settings("fitting the generator", seed, last)
        if last or self._truncates:
            return fit_answer(kernel, pairs, *settings, last=last)
        return fit_generator(pairs.theta[pairs.accepted], *settings)

    def _settings(
        self, phase: str, seed: int, last: bool
    ) -> tuple[Problem, ABIConfig, int, Progress]:
        """What a model is fitted to and by, of the flows and of their likelihood."""
        return self.problem, self._config(last), child_seed(seed, 3), self.shown.phase(phase)

    def _bounds(
        self, before: RoundState | None, model: GenerativeModel, theta: Tensor, made: int, seed: int
    ) -> Bounds:
        """Where the theta of the next round lie; this one made so many calls."""
        self.shown.phase("finding the region")
        regions, calls = before.regions if before else (), self._next(before, Made(made)).calls
        return bounds(model, self.problem, regions, theta, calls, seed)

    def _plausibility(self, x: Tensor, encoder: str | None, seed: int) -> float | None:
        """Of x_o among the round's x; None where none is asked about."""
        x_o = self.problem.asked
        return None if x_o is None else plausibility(x, x_o, seed, encoder, self.problem.layout)

    def _judge(self, before: RoundState | None, sampled: Sampled, seed: int) -> Check | None:
        """What this round's fresh pairs say of the answer before, which has not seen them."""
        if before is None or not self._truncates or self._asks_none:
            return None
        self.shown.phase("judging the round before")
        return judge_before(before, sampled, self.problem, seed)

    def _moved(self, before: RoundState | None, model: GenerativeModel) -> Distance | None:
        """How far the answer at x_o moved; None where there is none to compare."""
        return None if before is None or self._asks_none else moved_between(before.model, model)

    @property
    def _asks_none(self) -> bool:
        """Whether the rounds have no x_o of their own: all x are asked about, or several."""
        return self.problem.asked is None

    @property
    def _truncates(self) -> bool:
        """Whether proposals are the prior cut to a region; not where the distance is known."""
        return self.plan.config.proposal == "truncated" and self.work.fixed is None

    @property
    def _kept_share(self) -> float:
        """alpha: what is asked for, or all pairs where the answer is a flow that is given x."""
        config = self.plan.config
        if config.accept_fraction is not None:
            return config.accept_fraction
        return 1.0 if self._truncates and config.adjustment == "conditional" else 0.5

    def _config(self, last: bool) -> ABIConfig:
        """The constants of a round's model; that of a region has fewer flows, and fewer steps.

        No narrower ones: half as wide, they found a wave's regions too late (C2ST .58 -> .69).
        """
        config = self.plan.config
        if last:
            return config
        training = config.generator_training
        training = replace(training, num_steps=math.ceil(_REGION_STEPS * training.num_steps))
        num_flows = min(config.num_flows, _REGION_FLOWS)
        return replace(config, num_flows=num_flows, generator_training=training)

    def _next(self, before: RoundState | None, *made: Made) -> Next:
        """The round to come; simulations made before leave the budget to the others."""
        done: tuple[Done, ...] = (*(before.records if before else ()), *made)
        given = self.work.simulations is not None
        return next_round(self.plan, done, self.problem.theta_dim, given=given)

    def _sample(self, before: RoundState | None, num_calls: int, seed: int) -> Sampled:
        """Step 3: pairs from the current proposal."""
        if before is None and self.work.simulations is not None:
            return made_before(self.work.simulations, self.problem, child_seed(seed, 1))
        simulate = SimulatorCalls(self.problem, self.engine, self.work.slow_dir, seed)
        if self._truncates:
            self.shown.phase("proposing")
            wanted = min(num_calls, self.plan.config.pairs_per_round or num_calls)
            theta, reused = self._inside(before, wanted, child_seed(seed, 0))
            sampled = approximate_rejection(
                in_turn(theta), simulate, accept_all, float("inf"),
                max_retries=1, num_calls=len(theta), on_calls=self.shown.calls,
            )  # fmt: skip
            sampled = replace(sampled, reused=reused)
        else:
            sampled = approximate_rejection(
                lambda count, key: self._propose(before, count, child_seed(seed, 0, key)), simulate,
                accept_all if before is None else before.kernel,
                float("inf") if before is None else before.tolerance,
                max_retries=self.plan.config.max_retries, num_calls=num_calls,
                num_proposals=self.plan.config.pairs_per_round, on_calls=self.shown.calls,
            )  # fmt: skip
        check_varies(sampled.x)
        return sampled

    def _inside(self, before: RoundState | None, num: int, seed: int) -> tuple[Tensor, int | None]:
        """Draws of the prior inside the regions, and how many of the pairs so far go with them."""
        if before is None:
            return sample_prior(self.problem.prior, num, seed), None
        left = before.left if self.plan.config.reuse_simulations else ()
        return refilled(
            self.problem.prior, before.regions, left, before.theta, num, seed, before.worked
        )

    def _propose(self, before: RoundState | None, count: int, seed: int) -> Tensor:
        """Draw theta (count, d) from the prior or the last generator, inside the support."""
        if before is None:
            return sample_prior(self.problem.prior, count, seed)
        kept: list[Tensor] = []
        missing = count
        for attempt in range(_MAX_TRIES):
            theta = before.model.sample(missing, child_seed(seed, attempt))
            kept.append(theta[allowed(self.problem.prior, self.problem.support, theta)])
            missing -= len(kept[-1])
            if missing == 0:
                return torch.cat(kept)
        raise ValueError(
            f"`prior`: fewer than 1 in {_MAX_TRIES} draws of the generator has positive prior "
            "density; check the prior's log_prob and support."
        )

    def _pool(self, before: RoundState | None, sampled: Sampled) -> Pool:
        """This round's pairs, and earlier ones that could have been its own."""
        pool = Pool(sampled.theta, sampled.x, None)
        if before is not None and self.plan.config.reuse_simulations:
            if self._truncates:
                inside = inside_all(before.regions, before.theta)
            else:
                inside = before.kernel(before.x) <= before.tolerance
            if sampled.reused is not None:
                inside &= inside.cumsum(dim=0) <= sampled.reused
            pool = before.joined(inside, pool.theta, pool.x)
            if not self._truncates:  # no likelihood is learned, which alone looks at them
                pool = pool._replace(past=None)
        check_enough(sampled, len(pool.theta), self.plan.config.pairs_per_round)
        return pool

    def _train(
        self, before: RoundState | None, theta: Tensor, x: Tensor, seed: int, last: bool
    ) -> tuple[Kernel, Any]:
        """Steps 4 to 6: train the quantile network behind the kernel statistic.

        Where all pairs are kept and flows are given x, it is asked for an encoder and, at last, for
        distances to be shown.
        """
        if self.work.fixed is not None:
            return self.work.fixed, None
        previous = before.kernel if before and isinstance(before.kernel, LearnedKernel) else None
        on_epoch = self.shown.phase("training the quantile network")
        config = self.plan.config
        choosing = config.fine_tune or config.tolerances is not None or self._kept_share < 1.0
        whole = choosing or config.adjustment != "conditional"
        return train_kernel(
            theta, x, self.problem.x_o, config, child_seed(seed, 2), previous, on_epoch,
            support=self.problem.support, layout=self.problem.layout, own=self.problem.encoder,
            extent="whole" if whole else "network" if last else "encoder",
        )  # fmt: skip

    def _tolerance(self, before: RoundState | None, scores: Tensor, number: int) -> float:
        """Section 2.2.2: given, or the alpha-quantile of the scores."""
        config = self.plan.config
        if config.tolerances is not None:
            return config.tolerances[number - 1]
        # A network of its own measures in units of its own: the last tolerance does not apply.
        comparable = before is not None and (config.fine_tune or self.work.fixed is not None)
        previous = before.tolerance if before and comparable else float("inf")
        return acceptance_tolerance(scores, previous, self._kept_share, config.min_accepted)
