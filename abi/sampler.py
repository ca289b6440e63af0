"""Adaptive Bayesian inference: Algorithm 2 of Lu & Wong (2025), one function a step."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from simulators import Prior, Simulations, sample_prior, simulate
from simulators.engines import Engine, open_engine
from simulators.random import child_seed

from .answer import Pairs, fit_answer, fit_generator
from .config import ABIConfig
from .kernel import FixedKernel, Kernel, LearnedKernel, train_kernel
from .origin import from_origin, origin_of
from .posterior import ABIPosterior
from .problem import Plan, Problem, check_varies, check_width, pose
from .progress import FitProgress
from .rejection import Sampled, acceptance_tolerance, approximate_rejection
from .rounds import RoundRecord, RoundState
from .run_folder import RunFolder
from .support import allowed

_LEAST_PAIRS = 50  # below this neither network nor generator can be fitted
_ENOUGH_TO_JUDGE, _MAX_FAILURES = 32, 0.9
_MAX_TRIES = 200  # draws of the proposal a theta inside the support may take


def fit(
    prior: Prior | Callable[[int], Any],
    simulator: Callable[..., Any],
    x_o: Tensor,
    *,
    num_simulations: int = 20_000,
    num_rounds: int = 2,
    seed: int = 0,
    config: ABIConfig | None = None,
    distance: Callable[[Tensor], Tensor] | None = None,
    parameter_names: Sequence[str] | None = None,
    workers: int = 1,
    timeout: float | None = None,
    run_dir: str | Path | None = None,
    progress: bool = True,
) -> ABIPosterior:
    """Fit the posterior of theta given one observation, from draws of prior and simulator alone.

    Args:
        prior: anything with ``sample((n,)) -> (n, d)``, or a function n -> (n, d). Its ``support``
            and ``log_prob`` are used where it offers them; no density is needed.
        simulator: theta (n, d) -> x (n, p): a task of :mod:`simulators` or your own function.
        x_o: the observation, (p,) or (1, p).
        num_simulations: hard budget of simulator calls, retries included.
        num_rounds: T; the budget is shared equally.
        seed: the fit is a function of its arguments and this seed, whatever the workers.
        config: constants; ``ABIConfig.paper()`` gives the published algorithm.
        distance: a known distance x (n, p) -> (n,) to the posterior at x_o, in place of the learned
            MSW distance (Appendix C.1).
        parameter_names: d names; the simulator's own, or theta_1 ..., when omitted.
        workers: processes that simulate.
        timeout: seconds one simulation may take.
        run_dir: folder to keep each round in, so that :func:`resume` can go on.
        progress: show a live bar.

    Returns:
        A posterior for ``x_o``; ``posterior.rounds`` tells what each round did.

    Raises:
        ValueError: on arguments that do not fit together, each named in one line; and if a round
            keeps too few pairs to go on.
        FileExistsError: if ``run_dir`` already holds a run.

    Source: Lu & Wong (2025), Algorithm 2.
    """
    plan = Plan(num_simulations, num_rounds, seed, config or ABIConfig())
    problem = pose(prior, simulator, x_o, parameter_names)
    origin = origin_of(prior, simulator)
    folder = None if run_dir is None else RunFolder.create(run_dir, problem, plan, origin)
    fixed = None if distance is None else FixedKernel(distance)
    return run(problem, plan, None, fixed, folder, workers, timeout, progress)


def resume(
    run_dir: str | Path,
    prior: Prior | Callable[[int], Any] | None = None,
    simulator: Callable[..., Any] | None = None,
    *,
    distance: Callable[[Tensor], Tensor] | None = None,
    workers: int = 1,
    timeout: float | None = None,
    progress: bool = True,
) -> ABIPosterior:
    """Go on with an interrupted fit; the result is that of a fit that was never interrupted.

    Args:
        run_dir: the folder given to :func:`fit`.
        prior: the prior of the fit, where it cannot be imported from where it was.
        simulator: the simulator of the fit, where it cannot be imported from where it was.
        distance: the known distance of the fit, if it had one.
        workers: processes that simulate.
        timeout: seconds one simulation may take.
        progress: show a live bar.

    Raises:
        ValueError: if the folder holds no run, or the arguments do not fit it.
    """
    folder = RunFolder.open(run_dir)
    plan, x_o, names, origin = folder.request()
    prior, simulator = from_origin(origin, prior, simulator)
    problem = pose(prior, simulator, x_o, names)
    fixed = None if distance is None else FixedKernel(distance)
    state = folder.last_state(plan, x_o, fixed)
    return run(problem, plan, state, fixed, folder, workers, timeout, progress)


def run(
    problem: Problem,
    plan: Plan,
    state: RoundState | None,
    fixed: FixedKernel | None,
    folder: RunFolder | None,
    workers: int,
    timeout: float | None,
    progress: bool,
) -> ABIPosterior:
    """Run the rounds that are left, from ``state`` on."""
    engine = open_engine(workers, timeout)
    threads = torch.get_num_threads()
    try:
        # The networks are small: one thread is as fast, and its sums do not depend on the machine.
        torch.set_num_threads(1)
        with FitProgress(plan.num_rounds, plan.num_simulations, progress) as shown:
            if state is not None:
                shown.resume(state.records)
            while state is None or len(state.records) < plan.num_rounds:
                state = _Round(problem, plan, engine, shown, fixed).run(state)
                if folder is not None:
                    folder.save(state)
    finally:
        torch.set_num_threads(threads)
        engine.close()
    return ABIPosterior(
        model=state.model,
        x_o=problem.x_o,
        parameter_names=problem.parameter_names,
        rounds=state.records,
        accepted=state.accepted,
        seed=plan.seed,
        config=plan.config,
    )


@dataclass(frozen=True, eq=False)
class _Round:
    """One round: everything it reads stands here, everything it makes is in its state."""

    problem: Problem
    plan: Plan
    engine: Engine
    shown: FitProgress
    fixed: FixedKernel | None

    def run(self, before: RoundState | None) -> RoundState:
        """Steps 3 to 10 of Algorithm 2."""
        started = time.perf_counter()
        number = 1 if before is None else len(before.records) + 1
        seed = child_seed(self.plan.seed, number)
        sampled = self._sample(before, seed)
        theta, x = self._pool(before, sampled)
        kernel, network_log = self._train(before, theta, x, seed)
        scores = kernel(x)
        tolerance = self._tolerance(before, scores, number)
        kept = scores <= tolerance
        if int(kept.sum()) < 2:
            raise ValueError(
                f"`tolerances`: round {number} keeps {int(kept.sum())} of {len(x)} pairs within "
                f"{tolerance:g}; raise the tolerance or num_simulations."
            )
        on_epoch = self.shown.phase("fitting the generator")
        pairs = Pairs(theta, x, kept)
        fit_model = fit_answer if number == self.plan.num_rounds else fit_generator
        accepted, model, generator_log = fit_model(
            kernel, pairs, self.problem, self.plan.config, child_seed(seed, 3), on_epoch
        )
        record = RoundRecord(
            round=number,
            tolerance=tolerance,
            proposed=sampled.num_proposed,
            dropped_fraction=sampled.dropped_fraction,
            pairs=len(theta),
            accepted=int(kept.sum()),
            simulator_calls=sampled.num_calls,
            failures=len(sampled.failures),
            encoder=kernel.encoder if isinstance(kernel, LearnedKernel) else None,
            network=network_log,
            generator=generator_log,
            seconds=time.perf_counter() - started,
        )
        self.shown.finish(record)
        records = (*(before.records if before else ()), record)
        return RoundState(kernel, tolerance, model, theta, x, accepted, records)

    def _sample(self, before: RoundState | None, seed: int) -> Sampled:
        """Step 3: pairs from the current proposal, by approximate rejection sampling."""
        sampled = approximate_rejection(
            lambda count, key: self._propose(before, count, child_seed(seed, 0, key)),
            lambda theta, key: self._simulate(theta, child_seed(seed, 1, key)),
            _accept_all if before is None else before.kernel,
            float("inf") if before is None else before.tolerance,
            max_retries=self.plan.config.max_retries,
            num_calls=self.plan.calls_per_round,
            num_proposals=self.plan.config.pairs_per_round,
            on_calls=self.shown.calls,
        )
        check_varies(sampled.x)
        return sampled

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

    def _simulate(self, theta: Tensor, seed: int) -> Simulations:
        # Few rows may all fail by chance; many that do mean a broken simulator.
        limit = 1.0 if len(theta) < _ENOUGH_TO_JUDGE else _MAX_FAILURES
        runs = simulate(
            self.problem.simulator, theta, engine=self.engine, seed=seed, max_failure_fraction=limit
        )
        check_width(runs.x, self.problem.x_o)
        return runs

    def _pool(self, before: RoundState | None, sampled: Sampled) -> tuple[Tensor, Tensor]:
        """The pairs inside A_{t-1}: this round's, and earlier ones that belong there too."""
        theta, x = sampled.theta, sampled.x
        if before is not None and self.plan.config.reuse_simulations:
            inside = before.kernel(before.x) <= before.tolerance
            theta = torch.cat([before.theta[inside], theta]) if len(x) else before.theta[inside]
            x = torch.cat([before.x[inside], x]) if len(x) else before.x[inside]
        if len(theta) < _LEAST_PAIRS:
            raise ValueError(
                f"`num_simulations`: {sampled.num_calls} calls left {len(theta)} pairs within the "
                f"tolerance, fewer than {_LEAST_PAIRS}; ask for more simulations or fewer rounds, "
                "or raise accept_fraction or max_retries."
            )
        return theta, x

    def _train(
        self, before: RoundState | None, theta: Tensor, x: Tensor, seed: int
    ) -> tuple[Kernel, Any]:
        """Steps 4 to 6: train the quantile network behind the kernel statistic."""
        if self.fixed is not None:
            return self.fixed, None
        previous = before.kernel if before and isinstance(before.kernel, LearnedKernel) else None
        on_epoch = self.shown.phase("training the quantile network")
        return train_kernel(
            theta,
            x,
            self.problem.x_o,
            self.plan.config,
            child_seed(seed, 2),
            previous,
            on_epoch,
            item_dim=self.problem.item_dim,
        )

    def _tolerance(self, before: RoundState | None, scores: Tensor, number: int) -> float:
        """Section 2.2.2: given, or the alpha-quantile of the scores."""
        config = self.plan.config
        if config.tolerances is not None:
            return config.tolerances[number - 1]
        # A network of its own measures in units of its own: the last tolerance does not apply.
        comparable = before is not None and (config.fine_tune or self.fixed is not None)
        previous = before.tolerance if before and comparable else float("inf")
        return acceptance_tolerance(scores, previous, config.accept_fraction, config.min_accepted)


def _accept_all(x: Tensor) -> Tensor:
    """The first round has no region yet: A_0 is the whole space."""
    return torch.zeros(len(x))
