"""The answer of a fit: a frozen posterior for the observation it was fitted to, with a verdict.

Where its flows are conditional, and its rounds cut the prior, it answers at other x near x_o too
(:mod:`abi.rounds.reach`), and pairs that no training saw have judged it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from simulators.arguments import as_path, as_tensor
from simulators.arguments import sample_shape as as_size
from simulators.base import as_rows
from simulators.random import as_count, child_seed
from simulators.running.engines import Engine, Workers, check_workers, open_engine
from validation.threads import one_thread

from .config import ABIConfig
from .encoders.layout import as_observations, is_observation
from .files.storage import write_posterior
from .generators.base import GenerativeModel
from .generators.conditional import ConditionalFlows
from .pictures import in_a_notebook, plot, plot_predictive, plot_rounds, summary
from .plan import Plan
from .quantiles.kernel import Kernel, LearnedKernel, layout_of
from .refining import refine
from .rounds.checks import CheckPairs
from .rounds.judging import Answer, for_tests, judge_further, not_judged, why_at_x_o_alone
from .rounds.problem import Problem, posed_again
from .rounds.reach import Reach
from .rounds.record import RoundRecord, RoundState
from .training.torch_settings import usual_torch
from .verdict.judge import untold
from .verdict.record import Verdict

DRAWS_KEY, CHECK_KEY = 1, 2  # of the seed of draws; of the fit's seed, for its check


@dataclass(frozen=True, eq=False, repr=False)
class ABIPosterior:
    """The posterior of theta at x_o: draws, density, verdict, and how :func:`abi.fit` made it.

    Attributes:
        model: the trained generative model of theta.
        x_o: the observation, (p,); None where the fit is of every x: then give the methods an x.
        parameter_names: d names.
        rounds: what each round did and cost, one :class:`RoundRecord` each.
        accepted: the theta that the model was trained on, (k, d).
        seed: seed of the fit.
        config: settings of the fit.
        verdict: may the answer be trusted? ``print(posterior.verdict)`` says so in ten lines.
        kernel: the MSW distance of x to x_o that was learned; None where ``distance`` was given.
        reach: what the fit has simulated, from which it tells at what other x it answers.
        pairs: the pairs that the verdict rests on; None if the fit kept none.
        problem: prior and simulator of the fit; None after loading from a file.
        state: the pairs of its rounds, which :meth:`refine` uses; None after loading from a file.
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

    refine, summary, _repr_html_ = refine, summary, in_a_notebook
    plot, plot_predictive, plot_rounds = plot, plot_predictive, plot_rounds

    def __repr__(self) -> str:
        names = ", ".join(self.parameter_names[:5]) + (", ..." if self.theta_dim > 5 else "")
        failed = self.verdict.failures + sum(record.failures for record in self.rounds)
        calls = f"{self.num_simulations:,} calls" + f", {failed:,} of them failed" * (failed > 0)
        return f"ABIPosterior of {names}, {calls}; {self.verdict.headline}"

    @property
    def theta_dim(self) -> int:
        """Number of parameters d."""
        return len(self.parameter_names)

    @property
    def answer(self) -> Answer | None:
        """What testing the answer needs; None where the posterior is known at x_o alone."""
        q, kernel, reach = ConditionalFlows.of(self.model), self.kernel, self.reach
        if q is None or reach is None or not isinstance(kernel, LearnedKernel):
            return None
        return Answer(q, kernel, reach, self.parameter_names, self.rounds, self.x_o is None)

    @property
    def observation(self) -> Tensor:
        """x_o, (p,); a ValueError where the fit is of every x and so has none."""
        if self.x_o is None:
            raise ValueError(
                "`x` must be given: the fit is amortised, a posterior for every x. Draw at one by "
                "sample(shape, x=x); refine(x_o) makes a fit at one, which can also be drawn."
            )
        return self.x_o

    @property
    def num_simulations(self) -> int:
        """Simulator calls made in all: those of verdicts and failed ones included."""
        return self.verdict.num_calls + sum(r.simulator_calls + r.check_calls for r in self.rounds)

    def sample(
        self, sample_shape: Sequence[int] = (), x: Tensor | None = None, *, seed: int = 0
    ) -> Tensor:
        """Draw from the posterior, ``(*sample_shape, d)``, float32.

        Args:
            sample_shape: a tuple, such as ``(1000,)``.
            x: another observation, (p,) or (1, p), near enough to the fit's own; that when omitted.
            seed: the same seed gives the same draws.

        Raises:
            ValueError: if the fit cannot answer at ``x``, or another argument is not as described.
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

    def sample_batched(self, sample_shape: Sequence[int], x: Any, *, seed: int = 0) -> Tensor:
        """Draw at several observations x (n, p) at once, ``(*sample_shape, n, d)``.

        Sets of items are a list of them. A ValueError names the rows it cannot answer at.
        """
        shape, (q, rows) = as_size(sample_shape), self._elsewhere(x, several=True)
        draws = q.sample(shape.numel(), rows, child_seed(seed, DRAWS_KEY))
        return draws.reshape(*shape, len(rows), self.theta_dim)

    def log_prob(self, theta: Tensor, x: Tensor | None = None) -> Tensor:
        """Log density of the posterior, (n,); -inf outside the prior's support.

        Args:
            theta: points, (n, d).
            x: another observation, (p,), or one for each theta, (n, p); the fit's when omitted.

        Raises:
            NotImplementedError: if the generative model has no density ("potnet" and "wgan").
            ValueError: if the fit cannot answer at ``x``, or theta has another shape.
        """
        theta = as_rows(theta, self.theta_dim, "point")
        if self._is_own(x):
            return self.model.log_prob(theta)
        q, rows = self._elsewhere(x)
        if len(rows) == 1:
            return q.log_prob(theta[:, None], rows)[:, 0]
        if len(rows) != len(theta):
            raise ValueError(
                f"`x` must be one observation, or {len(theta)}, as theta has rows; got {len(rows)}."
            )
        return q.log_prob(theta[None], rows)[0]

    def log_prob_batched(self, theta: Tensor, x: Tensor) -> Tensor:
        """Log density at theta (K, n, d), row by row given x (n, p): (K, n)."""
        q, rows = self._elsewhere(x)
        return q.log_prob(as_tensor(theta, "theta", torch.float32), rows)

    def check(
        self,
        num_simulations: int = 600,
        *,
        simulator: Callable[..., Any] | None = None,
        prior: Any = None,
        workers: Workers = 1,
        timeout: float | None = None,
    ) -> ABIPosterior:
        """The same posterior, tested on more pairs: its verdict is sharper.

        Args:
            num_simulations: simulator calls to spend on it.
            simulator: the simulator of the fit; needed if the posterior was loaded from a file.
            prior: the prior of the fit; the simulator's own when omitted.
            workers: processes that simulate at the same time, or a cluster, as for :func:`fit`.
            timeout: seconds after which a simulation counts as failed.

        Raises:
            ValueError: if the answer is known at x_o alone, or prior or simulator are missing.
        """
        num_simulations = as_count(num_simulations, "num_simulations", 1)
        check_workers(workers, timeout)
        if self.answer is None:
            raise ValueError(f"`check`: the answer cannot be checked: {why_at_x_o_alone(self)}.")
        given = self.problem, simulator, prior, self.x_o, self.parameter_names, timeout
        problem = posed_again(*given, layout=layout_of(self.kernel))
        with closing(open_engine(workers, timeout)) as engine:
            return self.checked(num_simulations, problem, engine)

    def checked(
        self, num_calls: int, problem: Problem, engine: Engine, slow_dir: Path | None = None
    ) -> ABIPosterior:
        """The posterior tested on so many more pairs; unchanged where it cannot be tested."""
        if (answer := self.answer) is None:
            return self
        seed = child_seed(self.seed, CHECK_KEY, 0 if self.pairs is None else self.pairs.num_calls)
        how = problem, engine, slow_dir, seed
        with one_thread(), usual_torch():
            pairs, verdict = judge_further(answer, self.pairs, num_calls, *how)
        return replace(self, pairs=pairs, verdict=verdict)

    def check_pairs(self, num_draws: int = 1_000, *, seed: int = 0) -> tuple[Any, Tensor, Tensor]:
        """(q, theta, x) for a test of :mod:`validation`: ``sbc(*posterior.check_pairs())``.

        theta (n, d) and x (n, p) are the pairs behind the verdict, in the answer's high-density
        region, q this posterior there with ``num_draws`` at each x. Of x with gaps: the values that
        x_o has; or 0 in gaps, and p columns more. A ValueError says so if the fit kept no pairs.
        """
        if self.pairs is None or (answer := self.answer) is None:
            raise ValueError(f"`check_pairs`: {self.verdict.headline}.")
        return for_tests(answer, self.pairs, num_draws, seed)

    def save(self, path: str | Path) -> None:
        """Write the posterior to one safetensors file, which :func:`abi.load` reads; no pickle."""
        kept = [part.name for part in fields(self) if part.name not in ("problem", "state")]
        write_posterior(as_path(path, "path"), **{name: getattr(self, name) for name in kept})

    def to_arviz(
        self, num_samples: int = 1000, seed: int = 0, *, prior: Any = None, simulator: Any = None
    ) -> Any:
        """The fit as ArviZ data: InferenceData (ArviZ 0.x) or a DataTree (1.x).

        Its groups are ``posterior``, ``observed_data``, ``sample_stats`` (the log density of each
        draw) and ``rounds`` (the numbers of :attr:`rounds`).

        Args:
            num_samples: draws of the posterior; they are independent, so one chain holds them all.
            seed: of the draws.
            prior: the prior of the fit, to add a group ``prior`` of as many draws.
            simulator: the simulator of the fit, to add ``posterior_predictive`` and, with
                ``prior``, ``prior_predictive``. Each costs ``num_samples`` calls; NaN if failed.
        """
        from .files.arviz_data import to_arviz

        return to_arviz(self, num_samples, seed, prior, simulator)

    def to_zuko(self) -> nn.Module:
        """A copy of the posterior as a zuko flow over theta, to build on.

        ``flow = posterior.to_zuko()`` is a torch module, and ``flow()`` a distribution with
        ``log_prob`` and ``sample`` on the prior's support. Fitted with
        ``ABIConfig(likelihood=False)`` it can be trained further.

        Raises:
            NotImplementedError: if the generative model has no density.
        """
        from .files.zuko_module import as_zuko

        return as_zuko(self.model)

    def _is_own(self, x: Tensor | None) -> bool:
        """Whether x is the observation of the fit, as it is where none is given."""
        x_o = self.observation if x is None else self.x_o
        return x is None or (x_o is not None and is_observation(x, x_o, layout_of(self.kernel)))

    def _elsewhere(self, x: Any, several: bool = False) -> tuple[ConditionalFlows, Tensor]:
        """q(theta | x), and x as rows (n, p) at each of which it holds."""
        if (answer := self.answer) is None:
            raise ValueError(f"`x` must be the observation of the fit: {why_at_x_o_alone(self)}.")
        rows = as_observations(x, len(answer.kernel.x_o), layout_of(self.kernel), several)
        answer.reach.require(answer.q, rows)
        return answer.q, rows
