"""The answer of a fit: a frozen posterior for the observation it was fitted to, with a verdict.

Where its flows are conditional, and its rounds cut the prior, it answers at other x near x_o too
(:mod:`abi.rounds.reach`), and pairs that no training saw have judged it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from simulators.arguments import sample_shape as as_size
from simulators.random import as_count, child_seed
from simulators.running.engines import Engine, check_workers, open_engine

from .config import ABIConfig
from .files.storage import write_posterior
from .generators.base import GenerativeModel
from .generators.conditional import ConditionalFlows
from .plan import Plan
from .quantiles.kernel import Kernel, LearnedKernel
from .refining import refine
from .rounds.checks import CheckPairs
from .rounds.judging import Answer, for_tests, judge_further, not_judged, why_at_x_o_alone
from .rounds.problem import Problem, posed_again
from .rounds.reach import Reach, as_observations
from .rounds.record import RoundRecord, RoundState
from .training.torch_settings import usual_torch
from .verdict.judge import untold
from .verdict.record import Verdict

DRAWS_KEY, CHECK_KEY = 1, 2  # of the seed of draws; of the fit's seed, for its check


@dataclass(frozen=True, eq=False, repr=False)
class ABIPosterior:
    """pi_ABI(theta | x_o): draws, a density where the generator has one, and how it was made.

    Attributes:
        verdict: may it be trusted? ``print(posterior.verdict)`` says so in ten lines.
        model: the last round's generative model.
        x_o: the observation it belongs to, (p,); None where it is amortised, and x must be given.
        parameter_names: d names.
        rounds: one record a round.
        accepted: the draws the model was fitted to, (k, d).
        seed: the seed of the fit.
        config: the constants of the fit.
        kernel: the MSW distance that the quantile network predicts; None for a known one.
        reach: what the fit has simulated, to tell at which other x it answers.
        pairs: what the verdict rests on; None where the fit kept no pairs.
        problem: prior and simulator of the fit; None in a posterior that was loaded.
        state: the pairs of its rounds; None in a posterior that was loaded.
    """

    model: GenerativeModel
    x_o: Tensor | None
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
    state: RoundState | None = None

    refine = refine

    @classmethod
    def after(cls, state: RoundState, plan: Plan, problem: Problem) -> ABIPosterior:
        """The answer that rounds leave, not yet checked."""
        found = cls.found(state, plan, problem.asked, problem.parameter_names)
        return replace(found, problem=problem, state=state)

    @classmethod
    def found(
        cls, state: RoundState, plan: Plan, x_o: Tensor | None, names: tuple[str, ...]
    ) -> ABIPosterior:
        """The same where prior and simulator are not known."""
        kernel = state.kernel if isinstance(state.kernel, LearnedKernel) else None
        reach, verdict = Reach.of(state, plan.config), untold("not yet judged")
        made = state.model, x_o, names, state.records, state.accepted, plan.seed, plan.config
        fit = cls(*made, verdict, kernel, reach)
        return replace(fit, verdict=not_judged(fit, reach is not None))

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
        q, kernel, reach = ConditionalFlows.of(self.model), self.kernel, self.reach
        if q is None or reach is None or not isinstance(kernel, LearnedKernel):
            return None
        names, everywhere = self.parameter_names, self.x_o is None
        return Answer(q, kernel, reach, names, self.rounds, everywhere)

    @property
    def observation(self) -> Tensor:
        """x_o; a ValueError where the fit is amortised."""
        if self.x_o is None:
            raise ValueError(
                "`x` must be given: the fit is amortised, a posterior for every x. Use "
                "sample(shape, x=x), or refine(x_o) for a fit at one."
            )
        return self.x_o

    @property
    def num_simulations(self) -> int:
        """Simulator calls really made: those of the check, retries and failures included."""
        in_rounds = sum(record.simulator_calls + record.check_calls for record in self.rounds)
        return self.verdict.num_calls + in_rounds

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
        shape = as_size(sample_shape)
        key = child_seed(seed, DRAWS_KEY)
        if self._is_own(x):
            # A stream of its own: noise that others draw at the same seed must not go with theta.
            draws = self.model.sample(shape.numel(), key)
        else:
            q, rows = self._elsewhere(x)
            if len(rows) > 1:
                raise ValueError(
                    f"`x` must be one observation; got {len(rows)}. sample_batched takes several."
                )
            draws = q.sample(shape.numel(), rows, key)[:, 0]
        return draws.reshape(*shape, self.theta_dim)

    def sample_batched(self, sample_shape: Sequence[int], x: Tensor, *, seed: int = 0) -> Tensor:
        """Draw ``(*sample_shape, n, d)`` at x (n, p); a ValueError names rows out of reach."""
        shape = as_size(sample_shape)
        q, rows = self._elsewhere(x)
        draws = q.sample(shape.numel(), rows, child_seed(seed, DRAWS_KEY))
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
            got = tuple(theta.shape)
            raise ValueError(f"`theta` must have shape (n, {self.theta_dim}); got {got}.")
        if self._is_own(x):
            return self.model.log_prob(theta)
        q, rows = self._elsewhere(x)
        if len(rows) == 1:
            return q.log_prob(theta[:, None], rows)[:, 0]
        if len(rows) != len(theta):
            raise ValueError(
                f"`x` must be one observation, or one for each of the {len(theta)} rows of theta; "
                f"got {len(rows)}."
            )
        return q.log_prob(theta[None], rows)[0]

    def log_prob_batched(self, theta: Tensor, x: Tensor) -> Tensor:
        """Log density at theta (K, n, d) given x (n, p), (K, n); x as above."""
        q, rows = self._elsewhere(x)
        return q.log_prob(torch.as_tensor(theta, dtype=torch.float32), rows)

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
        check_workers(workers, timeout)
        if self.answer is None:
            raise ValueError(f"`check`: the answer cannot be checked: {why_at_x_o_alone(self)}.")
        problem = posed_again(self.problem, simulator, prior, self.x_o, self.parameter_names)
        engine = open_engine(workers, timeout)
        try:
            return self.checked(num_simulations, problem, engine)
        finally:
            engine.close()

    def checked(
        self, num_calls: int, problem: Problem, engine: Engine, slow_dir: Path | None = None
    ) -> ABIPosterior:
        """The posterior judged by so many more pairs; as it is where it cannot be."""
        if (answer := self.answer) is None:
            return self
        seed = child_seed(self.seed, CHECK_KEY, 0 if self.pairs is None else self.pairs.num_calls)
        how = problem, engine, slow_dir, seed
        with usual_torch():
            pairs, verdict = judge_further(answer, self.pairs, num_calls, *how)
        return replace(self, pairs=pairs, verdict=verdict)

    def check_pairs(self, num_draws: int = 1_000, *, seed: int = 0) -> tuple[Any, Tensor, Tensor]:
        """(q, theta, x) for a test of :mod:`validation`, as in ``colt(*posterior.check_pairs())``.

        theta (n, d) and x (n, p) are the pairs behind the verdict, and q draws from this posterior
        as they were drawn: inside its high-density region. A ValueError where there are none.
        """
        if self.pairs is None or (answer := self.answer) is None:
            raise ValueError(f"`check_pairs`: {self.verdict.headline}.")
        return for_tests(answer, self.pairs, num_draws, seed)

    def save(self, path: str | Path) -> None:
        """Write the posterior to one file (safetensors; no pickle), to be read by ``abi.load``."""
        kept = [part.name for part in fields(self) if part.name not in ("problem", "state")]
        write_posterior(Path(path), **{name: getattr(self, name) for name in kept})

    def to_arviz(
        self, num_samples: int = 1000, seed: int = 0, *, prior: Any = None, simulator: Any = None
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
        """Whether x is the observation of the fit, as it is where none is given."""
        if x is None:
            return len(self.observation) > 0
        given = torch.as_tensor(x, dtype=torch.float32).reshape(-1)
        return self.x_o is not None and torch.equal(given, self.x_o)

    def _elsewhere(self, x: Tensor | None) -> tuple[ConditionalFlows, Tensor]:
        """q(theta | x), and x as rows (n, p) at each of which it holds."""
        if (answer := self.answer) is None:
            raise ValueError(f"`x` must be the observation of the fit: {why_at_x_o_alone(self)}.")
        rows = as_observations(x, len(answer.kernel.x_o))
        answer.reach.require(answer.q, rows)
        return answer.q, rows
