"""The answer of a fit: a frozen posterior for the observation it was fitted to, with a verdict.

Where its flows are conditional, and its rounds cut the prior, it answers at other x near x_o too
(:mod:`abi.rounds.reach`), and pairs that no training saw have judged it there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from simulators.random import as_count, child_seed
from simulators.running.engines import Engine, check_workers, open_engine
from validation import as_posterior

from .config import ABIConfig
from .encoders.choice import OWN_ENCODER
from .files.storage import read_posterior, write_posterior
from .generators.base import GenerativeModel
from .generators.conditional import ConditionalFlows
from .generators.flow import FlowModel
from .quantiles.kernel import Kernel, LearnedKernel
from .rounds.checks import CheckPairs, draws_inside
from .rounds.judging import NOT_CONDITIONAL, Answer, check_calls, judge_further, not_judged
from .rounds.problem import Plan, Problem, answers_elsewhere, pose
from .rounds.progress import FitProgress
from .rounds.reach import MOST_ROWS, Reach
from .rounds.record import RoundRecord, RoundState
from .rounds.regions import narrowed
from .rounds.steps import Work
from .training.torch_settings import usual_torch
from .verdict.record import Verdict

DRAWS_KEY = 1
"""Of the seed of draws."""
CHECK_KEY = 2
"""Of the fit's seed, for the check of its answer."""


@dataclass(frozen=True, eq=False, repr=False)
class ABIPosterior:
    """pi_ABI(theta | x_o): draws, a density where the generator has one, and how it was made.

    Attributes:
        verdict: may it be trusted? ``print(posterior.verdict)`` says so in ten lines.
        model: the last round's generative model.
        x_o: the observation it belongs to, (p,).
        parameter_names: d names.
        rounds: one record a round.
        accepted: the draws the model was fitted to, (k, d).
        seed: the seed of the fit.
        config: the constants of the fit.
        kernel: the MSW distance that the quantile network predicts; None for a known one.
        reach: what the fit has simulated, to tell at which other x it answers.
        pairs: what the verdict rests on; None where the fit kept no pairs.
        problem: prior and simulator of the fit; None in a posterior that was loaded.
    """

    model: GenerativeModel
    x_o: Tensor
    parameter_names: tuple[str, ...]
    rounds: tuple[RoundRecord, ...]
    accepted: Tensor
    seed: int
    config: ABIConfig
    verdict: Verdict
    kernel: Kernel | None = None
    reach: Reach | None = None
    pairs: CheckPairs | None = None
    problem: Problem | None = None

    def __repr__(self) -> str:
        names = ", ".join(self.parameter_names[:5]) + (", ..." if self.theta_dim > 5 else "")
        return f"ABIPosterior of {names}, {self.num_simulations:,} calls; {self.verdict.headline}"

    @property
    def theta_dim(self) -> int:
        """Number of parameters d."""
        return len(self.parameter_names)

    @property
    def answer(self) -> Answer | None:
        """The flows, with all that judging them needs; None where they know no x but x_o."""
        q = ConditionalFlows.of(self.model)
        if q is None or self.reach is None or not isinstance(self.kernel, LearnedKernel):
            return None
        return Answer(q, self.kernel, self.reach, self.parameter_names, self.rounds)

    @property
    def num_simulations(self) -> int:
        """Simulator calls really made: those of the check, retries and failures included."""
        checked = 0 if self.pairs is None else self.pairs.num_calls
        return checked + sum(record.simulator_calls for record in self.rounds)

    def sample(
        self, sample_shape: Sequence[int] = (), x: Tensor | None = None, *, seed: int = 0
    ) -> Tensor:
        """Draw ``(*sample_shape, d)``, float32.

        Args:
            sample_shape: for example ``(1000,)``.
            x: another observation, (p,) or (1, p), that the fit reaches; its own when omitted.
            seed: the same seed gives the same draws; pass another for new ones.

        Raises:
            ValueError: if the fit does not reach ``x``, or ``sample_shape`` or ``seed`` is not what
                it must be.
        """
        shape = as_shape(sample_shape)
        key = child_seed(seed, DRAWS_KEY)
        if self._is_own(x):
            # A stream of its own: noise that others draw at the same seed must not go with theta.
            draws = self.model.sample(shape.numel(), key)
        else:
            row = self._rows(x)
            if len(row) > 1:
                raise ValueError(
                    f"`x` must be one observation; got {len(row)}. sample_batched takes several."
                )
            draws = self._elsewhere(row).sample(shape.numel(), row, key)[:, 0]
        return draws.reshape(*shape, self.theta_dim)

    def sample_batched(self, sample_shape: Sequence[int], x: Tensor, *, seed: int = 0) -> Tensor:
        """Draw ``(*sample_shape, n, d)`` at observations x (n, p) that the fit reaches.

        Raises:
            ValueError: naming the rows of ``x`` that it does not reach, and why.
        """
        shape = as_shape(sample_shape)
        rows = self._rows(x)
        draws = self._elsewhere(rows).sample(shape.numel(), rows, child_seed(seed, DRAWS_KEY))
        return draws.reshape(*shape, len(rows), self.theta_dim)

    def log_prob(self, theta: Tensor, x: Tensor | None = None) -> Tensor:
        """Log density at theta (n, d) -> (n,), -inf outside the prior's box.

        Args:
            theta: (n, d).
            x: another observation, (p,) or (1, p), or one for each theta, (n, p); the fit's own
                when omitted.

        Raises:
            NotImplementedError: if the generator has no density.
            ValueError: if the fit does not reach ``x``, or theta has the wrong shape.
        """
        theta = torch.as_tensor(theta, dtype=torch.float32)
        if theta.ndim != 2 or theta.shape[1] != self.theta_dim:
            raise ValueError(
                f"`theta` must have shape (n, {self.theta_dim}); got {tuple(theta.shape)}."
            )
        if self._is_own(x):
            return self.model.log_prob(theta)
        rows = self._rows(x)
        if len(rows) not in (1, len(theta)):
            raise ValueError(
                f"`x` must be one observation, or one for each of the {len(theta)} rows of theta; "
                f"got {len(rows)}."
            )
        q = self._elsewhere(rows)
        return q.log_prob(theta[:, None], rows)[:, 0] if len(rows) == 1 else (
            q.log_prob(theta[None], rows)[0]
        )  # fmt: skip

    def log_prob_batched(self, theta: Tensor, x: Tensor) -> Tensor:
        """Log density at theta (K, n, d) given x (n, p), (K, n).

        Raises:
            ValueError: naming the rows of ``x`` that the fit does not reach, and why.
        """
        rows = self._rows(x)
        return self._elsewhere(rows).log_prob(torch.as_tensor(theta, dtype=torch.float32), rows)

    def check(
        self,
        num_simulations: int = 600,
        *,
        simulator: Callable[..., Any] | None = None,
        prior: Any = None,
        workers: int = 1,
        timeout: float | None = None,
    ) -> ABIPosterior:
        """The same posterior with more check pairs, and so a sharper verdict.

        Args:
            num_simulations: more simulator calls.
            simulator: of the fit; needed where the posterior was loaded.
            prior: of the fit; the simulator's own when omitted.
            workers: processes that simulate.
            timeout: seconds one simulation may take.

        Raises:
            ValueError: if the answer cannot be checked, or prior or simulator are missing.
        """
        num_simulations = as_count(num_simulations, "num_simulations", 1)
        if (answer := self.answer) is None:
            raise ValueError(f"`check`: the answer cannot be checked: {self._why_not()}.")
        problem = self.problem
        if simulator is not None:
            own = getattr(simulator, "prior", None) if prior is None else prior
            if own is None:
                raise ValueError("`prior` must be given: the simulator brings none of its own.")
            problem = pose(own, simulator, self.x_o, self.parameter_names)
        if problem is None:
            raise ValueError(
                "`simulator` must be given, and `prior` if it has none: a loaded posterior holds "
                "neither."
            )
        check_workers(workers, timeout)
        engine = open_engine(workers, timeout)
        seed = child_seed(self.seed, CHECK_KEY, 0 if self.pairs is None else self.pairs.num_calls)
        try:
            with usual_torch():
                simulate = check_calls(problem, engine, None, seed)
                pairs, verdict = judge_further(
                    answer, self.pairs, num_simulations, problem, simulate, seed
                )
        finally:
            engine.close()
        return replace(self, problem=problem, pairs=pairs, verdict=verdict)

    def check_pairs(self, num_draws: int = 1_000, *, seed: int = 0) -> tuple[Any, Tensor, Tensor]:
        """(q, theta, x) for a test of :mod:`validation`, as in ``colt(*posterior.check_pairs())``.

        theta (n, d) and x (n, p) are the pairs behind the verdict, and q draws from this posterior
        as they were drawn: inside its high-density region.

        Args:
            num_draws: draws at each x that q holds.
            seed: of the draws.

        Raises:
            ValueError: if there are no pairs.
        """
        pairs, answer = self.pairs, self.answer
        if pairs is None or answer is None:
            raise ValueError(f"`check_pairs`: {self.verdict.headline}.")
        draws, enough = draws_inside(answer.q, pairs.regions, pairs.x, num_draws, seed)
        theta, x = pairs.theta[enough], pairs.x[enough]
        stored = (theta, x, draws[:, enough])
        return as_posterior(stored, layout="samples_first"), theta, x

    def save(self, path: str | Path) -> None:
        """Write the posterior to one file (safetensors; no pickle), to be read by ``abi.load``."""
        kept = [part.name for part in fields(self) if part.name != "problem"]
        write_posterior(Path(path), **{name: getattr(self, name) for name in kept})

    def to_arviz(
        self,
        num_samples: int = 1000,
        seed: int = 0,
        *,
        prior: Any = None,
        simulator: Any = None,
    ) -> Any:
        """The fit as ArviZ data: InferenceData (0.x) or a DataTree (1.x).

        Beside ``posterior`` stand ``observed_data``, ``sample_stats`` with the log-density of each
        draw, and ``rounds``, one value a round of :attr:`rounds`.

        Args:
            num_samples: draws, put into one chain, for they are independent.
            seed: seed of the draws.
            prior: the prior of the fit, for a group ``prior`` of as many draws.
            simulator: the simulator of the fit, for ``posterior_predictive`` and, with the prior,
                ``prior_predictive``; each costs ``num_samples`` calls, and a failed one is NaN.
        """
        from .files.arviz_data import to_arviz

        return to_arviz(self, num_samples, seed, prior, simulator)

    def to_zuko(self) -> nn.Module:
        """The posterior as a zuko flow over theta, to train on, to compose, or to draw from.

        ``flow = posterior.to_zuko()`` is a module; ``flow()`` is a distribution whose ``log_prob``,
        ``sample`` and ``rsample`` are those of this posterior, the prior's support included. It is
        a copy: training it leaves the posterior as it is.

        Raises:
            NotImplementedError: if the generator has no density.
        """
        from .generators.flow_module import as_zuko

        return as_zuko(self.model)

    def _is_own(self, x: Tensor | None) -> bool:
        """Whether x is the observation of the fit."""
        if x is None:
            return True
        given = torch.as_tensor(x, dtype=torch.float32).reshape(-1)
        return given.shape == self.x_o.shape and torch.equal(given, self.x_o)

    def _rows(self, x: Tensor | None) -> Tensor:
        """Observations (n, p), or say what is wrong with them."""
        rows = torch.as_tensor(x, dtype=torch.float32)
        rows = rows[None] if rows.ndim == 1 else rows
        if rows.ndim != 2 or rows.shape[1] != len(self.x_o):
            raise ValueError(
                f"`x` must hold {len(self.x_o)} values an observation, as x_o does; got shape "
                f"{tuple(torch.as_tensor(x).shape)}."
            )
        bad = int((~torch.isfinite(rows)).any(dim=1).sum())
        if bad:
            raise ValueError(f"`x` must be finite; {bad} of {len(rows)} rows hold NaN or infinity.")
        return rows

    def _elsewhere(self, x: Tensor) -> ConditionalFlows:
        """q(theta | x), where it holds at every row of x (n, p)."""
        if (answer := self.answer) is None:
            raise ValueError(f"`x` must be the observation of the fit: {self._why_not()}.")
        doubts = answer.reach.doubts(answer.q, x)
        bad = [row for row, doubt in enumerate(doubts) if doubt is not None]
        if bad:
            which = "" if len(x) == 1 else f" row {bad[0]} ({len(bad)} of {len(x)} rows)"
            raise ValueError(
                f"`x`{which}: the fit around x_o does not reach it: {doubts[bad[0]]}. Fit again "
                "with it as x_o, or with num_rounds=1, which answers at every x; "
                "validation.PerObservation fits one x after another."
            )
        return answer.q

    def _why_not(self) -> str:
        """Why the answer knows no x but its own."""
        if self.rounds[-1].encoder == OWN_ENCODER and isinstance(self.model, FlowModel):
            return "its encoder is a module of yours, which abi.load(path, encoder=...) takes"
        if self.config.adjustment == "conditional" and isinstance(self.model, FlowModel):
            return "this file is of an earlier version, which kept no encoders; fit again"
        return NOT_CONDITIONAL


def answered(work: Work, state: RoundState, engine: Engine, shown: FitProgress) -> ABIPosterior:
    """The answer after the last round, checked by the pairs kept for that."""
    problem, plan = work.problem, work.plan
    posterior = posterior_after(state, problem.x_o, problem.parameter_names, plan)
    posterior = replace(posterior, problem=problem)
    answer = posterior.answer
    if answer is None or not plan.num_check:
        return posterior
    shown.phase("checking the answer")
    seed = child_seed(plan.seed, CHECK_KEY)
    simulate = check_calls(problem, engine, work.slow_dir, seed)
    pairs, verdict = judge_further(answer, None, plan.num_check, problem, simulate, seed)
    return replace(posterior, pairs=pairs, verdict=verdict)


def posterior_after(
    state: RoundState, x_o: Tensor, names: tuple[str, ...], plan: Plan
) -> ABIPosterior:
    """The answer as a round leaves it, not yet checked."""
    conditional = answers_elsewhere(plan.config, len(state.records))
    kernel = state.kernel if isinstance(state.kernel, LearnedKernel) else None
    reach = None
    if conditional and kernel is not None and ConditionalFlows.of(state.model) is not None:
        near = state.x[kernel(state.x) <= state.tolerance]
        # Later rows are the last round's own, and nearest to the answer.
        reach = Reach(tuple(map(narrowed, state.regions)), near[-MOST_ROWS:].clone())
    return ABIPosterior(
        model=state.model,
        x_o=x_o,
        parameter_names=names,
        rounds=state.records,
        accepted=state.accepted,
        seed=plan.seed,
        config=plan.config,
        verdict=not_judged(state.records, reach is not None),
        kernel=kernel,
        reach=reach,
    )


def load(path: str | Path, *, encoder: nn.Module | None = None) -> ABIPosterior:
    """Read a posterior written by :meth:`ABIPosterior.save`.

    Files of earlier versions hold neither encoders nor a verdict: they answer at their x_o, and
    the verdict says what they lack.

    Args:
        path: the file.
        encoder: the module of yours that the fit was given, if it was: files hold no code, and
            without it the posterior answers at its own x_o alone.

    Raises:
        ValueError: if the file is not a posterior of this format, or is from a newer version.
    """
    return ABIPosterior(**read_posterior(Path(path), encoder))


def as_shape(sample_shape: Any) -> torch.Size:
    """A tuple of numbers of draws as a size, or say what is wrong with it."""
    try:
        counts = [operator.index(count) for count in sample_shape]
    except TypeError:
        counts = [-1]
    if min(counts, default=0) < 0:
        raise ValueError(
            "`sample_shape` must be a tuple of non-negative integers, such as (5,); "
            f"got {sample_shape!r}."
        )
    return torch.Size(counts)
